"""The disk-full conformance kit at a real broker: stock Kafka loses a log dir, one behind a gateway does not."""

import json

import pytest

from tests.integration.cluster import brimline

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.usefixtures("real_volumes")]


def seen(*arguments: str) -> dict[str, str]:
    done = brimline("torture", "conformance", "--json", *arguments, timeout=800)
    assert done.returncode == 0, done.stderr
    return {each["name"]: each["verdict"] for each in json.loads(done.stdout)}


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_behind_a_gateway(version: str) -> None:
    assert seen("--sandbox", version, "--brimline") == {
        "broker": "lives",
        "acknowledged": "all there",
        "told": "the cause",
        "other disk": "goes on",
        "reads": "goes on",
        "deletes": "works",
        "recovers": "by itself",
    }


def test_stock_kafka() -> None:
    found = seen("--sandbox", "4.3.1")

    assert found["acknowledged"] == "all there"
    assert found["recovers"] != "by itself"
