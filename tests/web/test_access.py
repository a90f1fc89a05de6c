"""Who may see the pages of ``brimline web``."""

import base64
from http import HTTPStatus

import pytest

from brimline.guard.http import HttpRequest
from brimline.model import BadInput
from brimline.web.access import Access, access_for

TOKEN = "a-token-of-some-length"


def status(access: Access, **headers: str) -> HTTPStatus:
    refused = access.refusal(HttpRequest(method="GET", path="/", headers=headers))
    return HTTPStatus.OK if refused is None else refused.status


@pytest.mark.parametrize("host", ["127.0.0.1:9828", "localhost:9828", "localhost", "[::1]:9828", "127.0.0.1"])
def test_this_machine_needs_no_token(host: str) -> None:
    assert status(Access(None), host=host) is HTTPStatus.OK


@pytest.mark.parametrize("host", ["evil.example:9828", "evil.example", "", "10.0.0.1:9828", "127.0.0.1.evil.example"])
def test_a_name_of_somebody_else_that_leads_here_learns_nothing(host: str) -> None:
    assert status(Access(None), host=host) is HTTPStatus.FORBIDDEN


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer {TOKEN}", basic(f"me:{TOKEN}"), basic(f":{TOKEN}")])
def test_the_token_opens(given: str) -> None:
    assert status(Access(TOKEN), host="anywhere", authorization=given) is HTTPStatus.OK


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer wrong", basic("me:wrong"), basic(TOKEN), "Basic ???", f"Digest {TOKEN}", "Bearer \xff"],
)
def test_nothing_else_does(given: str) -> None:
    refused = Access(TOKEN).refusal(HttpRequest(method="GET", path="/", headers={"authorization": given}))

    assert refused is not None
    assert refused.status is HTTPStatus.UNAUTHORIZED
    assert refused.headers["WWW-Authenticate"].startswith("Basic ")


def test_more_than_loopback_needs_a_token() -> None:
    with pytest.raises(BadInput, match=r"--host 0\.0\.0\.0 is not loopback: add --token-file"):
        access_for("0.0.0.0", None)
    with pytest.raises(BadInput, match="too short"):
        access_for("0.0.0.0", "secret")

    assert access_for("0.0.0.0", TOKEN).token == TOKEN
    assert access_for("::1", None).token is None
