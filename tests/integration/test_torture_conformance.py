"""The disk-full conformance kit at a real broker: stock Kafka loses a log dir, one behind a gateway does not."""

import json
from collections.abc import Iterator

import pytest

from brimline.sandbox.jars import ivy
from brimline.sandbox.jars.cache import cache_dir, install
from brimline.sandbox.jars.lock import Coordinates, LockedJar
from tests.integration.cluster import brimline

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.usefixtures("real_volumes")]


PLUGIN = LockedJar(
    "0.3.1",
    Coordinates("io.strimzi", "kafka-quotas-plugin", "0.3.1"),
    "6f1fd30adbe26adb0e7411b653077ea920e13f6ac0adb769b6348ee47876175d",
)
PLUGIN_KEYS = {
    "class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
    "static.produce": "1000000000",
    "static.storage.check-interval": "5",
    "static.storage.per.volume.limit.min.available.bytes": "30000000",
    "static.kafka.admin.bootstrap.servers": "ADDRESS",
}


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


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_stock_kafka(version: str) -> None:
    assert seen("--sandbox", version) == {
        "broker": "lives",
        "acknowledged": "all there",
        "told": "an error without a cause",
        "other disk": "goes on",
        "reads": "fails",
        "deletes": "fails",
        "recovers": "after a restart",
    }


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_with_the_quotas_plug_in(version: str) -> None:
    (jar,) = install([PLUGIN], cache_dir() / "jars" / "quotas-plugin" / PLUGIN.version, ivy.retrieve)

    assert seen("--sandbox", version, "--jar", str(jar), *plugin_options()) == {
        "broker": "lives",
        "acknowledged": "all there",
        "told": "nothing",
        "other disk": "stops",
        "reads": "goes on",
        "deletes": "works",
        "recovers": "by itself",
    }


def plugin_options() -> Iterator[str]:
    for key, value in PLUGIN_KEYS.items():
        yield "--property"
        yield f"client.quota.callback.{key}={value}"
