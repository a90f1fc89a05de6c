"""What people may see of a value, and that no error keeps what they may not."""

import pytest

from brimline.fleet.session.errors import FleetError
from brimline.model import BadInput, Failure, FailureKind, ObservationFailed
from brimline.model.secrets import shown, without_login


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("s3://key:secret@bucket/a@b", "s3://…@bucket/a@b"),
        ("s3://key:sec/ret+/@bucket/a@b", "s3://…@bucket/a@b"),
        ("s3://key@bucket/a", "s3://…@bucket/a"),
        ("a s3://k:s@b, then s3://k:s@c", "a s3://…@b, then s3://…@c"),
        ("s3://b/a@b?region=x&secret_key=s/e&scheme=http", "s3://b/a@b?region=x&secret_key=…&scheme=http"),
        ("abfs://c@a.example/?sig=x;token=y", "abfs://…@a.example/?sig=…;token=…"),
        ("/a/b@c", "/a/b@c"),
        ("CLIENT://127.0.0.1:9092,ADMIN://host:9093", "CLIENT://127.0.0.1:9092,ADMIN://host:9093"),
    ],
)
def test_logins_are_hidden_and_nothing_else(text: str, seen: str) -> None:
    assert without_login(text) == seen


@pytest.mark.parametrize(
    "key",
    [
        "sasl.jaas.config",
        "listener.name.client.scram-sha-256.sasl.jaas.config",
        "brimline.admin.ssl.keystore.password",
        "ssl.keystore.key",
        "brimline.jmx.javax.net.ssl.keyStorePassword",
        "sasl.oauthbearer.client.credentials.client.secret",
    ],
)
def test_a_value_whose_key_says_that_it_is_a_secret_is_not_shown(key: str) -> None:
    assert shown(key, "s3cret") == "…"
    assert shown(key, "") == ""


@pytest.mark.parametrize("key", ["brimline.state.dir", "ssl.keystore.location", "listeners"])
def test_other_values_are(key: str) -> None:
    assert shown(key, "/a/b") == "/a/b"


def test_an_error_keeps_no_login() -> None:
    failure = Failure(kind=FailureKind.UNREACHABLE, message="s3://key:secret@bucket does not answer")

    for error in (BadInput("at s3://key:secret@bucket"), FleetError("s3://key:secret@b"), ObservationFailed(failure)):
        assert "secret" not in f"{error} {error!r} {error.args}"
    assert str(failure) == "s3://…@bucket does not answer"
