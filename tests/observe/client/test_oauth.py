"""OAUTHBEARER: a token from a file or from an endpoint, kept while it is good, and what is said when there is none."""

import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from kafka.net.sasl.oauth import SaslMechanismOAuth

from brimline.model import BadInput, FailureKind
from brimline.observe.client.config import ClientConfig, SecurityProtocol
from brimline.observe.client.failures import failure_of
from brimline.observe.client.oauth import TokenError, TokenProvider, TokenSource
from brimline.observe.properties.java_properties import parse_properties

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLER = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
LOGIN = f'{MODULE} clientId="us" clientSecret="hush" scope="kafka";'


class Endpoint:
    """Hands out a new token each time; ``status`` and ``body`` may be changed."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, dict[str, list[str]]]] = []
        self.status, self.body = 200, ""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.asked.append((self.headers["Authorization"], parse_qs(form)))
                body = endpoint.body or f'{{"access_token": "token-{len(endpoint.asked)}", "expires_in": 100}}'
                self.send_response(endpoint.status)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    running = Endpoint()
    yield running
    running.server.shutdown()
    running.server.server_close()


def config_of(**properties: str) -> ClientConfig:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": LOGIN}
    given |= {key.replace("_", "."): value for key, value in properties.items()}
    text = "".join(f"{key}={value}\n" for key, value in given.items())
    return ClientConfig.from_properties("localhost:9092", parse_properties(text.encode(), "client.properties"))


def test_a_token_is_asked_for_with_id_and_secret_and_kept_while_it_is_good(endpoint: Endpoint) -> None:
    source = config_of(
        sasl_oauthbearer_token_endpoint_url=endpoint.url, sasl_login_callback_handler_class=HANDLER
    ).token_source
    assert source is not None
    now = [0.0]
    provider = TokenProvider(source, lambda: now[0])

    tokens = [provider.token(), provider.token()]
    now[0] = 81.0
    tokens.append(provider.token())

    assert tokens == ["token-1", "token-1", "token-2"]
    login = b64encode(b"us:hush").decode()
    assert endpoint.asked[0] == (f"Basic {login}", {"grant_type": ["client_credentials"], "scope": ["kafka"]})


def test_the_names_of_newer_clients_are_read(endpoint: Endpoint) -> None:
    source = config_of(
        sasl_oauthbearer_token_endpoint_url=endpoint.url,
        sasl_jaas_config=f"{MODULE} ;",
        sasl_oauthbearer_client_credentials_client_id="we",
        sasl_oauthbearer_client_credentials_client_secret="quiet",
        sasl_oauthbearer_scope="all",
    ).token_source

    assert source == TokenSource(url=endpoint.url, client_id="we", client_secret="quiet", scope="all")
    assert "quiet" not in repr(source)


def test_kafka_python_sends_what_a_file_holds(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("aaa.bbb.\n")
    options = config_of(sasl_oauthbearer_token_endpoint_url=f"file://{file}").kafka_python_options()

    mechanism = SaslMechanismOAuth(**options)
    first = mechanism.auth_bytes()
    file.write_text("ccc.ddd.")

    assert first == b"n,,\x01auth=Bearer aaa.bbb.\x01\x01"
    assert mechanism.auth_bytes() == b"n,,\x01auth=Bearer ccc.ddd.\x01\x01"


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (401, "{}", "answered 401 Unauthorized"),
        (200, "no json", "did not answer with a token"),
        (200, "{}", "did not answer with a token"),
        (200, '{"access_token": "two words"}', "holds none"),
    ],
)
def test_an_endpoint_without_a_token_is_named(endpoint: Endpoint, status: int, body: str, why: str) -> None:
    endpoint.status, endpoint.body = status, body

    with pytest.raises(TokenError) as failed:
        TokenProvider(TokenSource(url=endpoint.url, client_id="us", client_secret="hush")).token()

    failure = failure_of(failed.value, "broker 1", SecurityProtocol.SASL_SSL)
    assert failure.kind is FailureKind.NOT_AUTHENTICATED
    assert failure.message.startswith("broker 1 was not asked: no token: ")
    assert why in failure.message
    assert "hush" not in failure.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="cannot be read: No such file"):
        TokenProvider(TokenSource(url=f"file://{tmp_path}/token")).token()


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({}, "sasl.oauthbearer.token.endpoint.url is missing"),
        ({"sasl_oauthbearer_token_endpoint_url": "ftp://x"}, "https:, http: or file:"),
        (
            {"sasl_oauthbearer_token_endpoint_url": "https://x", "sasl_jaas_config": f"{MODULE} ;"},
            "no client id",
        ),
        (
            {"sasl_oauthbearer_token_endpoint_url": "file:/t", "sasl_login_callback_handler_class": "our.Own"},
            "Java classes cannot be loaded here",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(properties: dict[str, str], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        config_of(**properties)
