"""A log dir that the broker took offline is offline for everybody, whatever room its disk has, until a restart."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox
from tests.integration.cluster import brimline_inside
from tests.integration.full_disks import BY_PERCENT, SECOND, create_topic_in, two_disks
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.integration.test_odd_clusters import producing_in_vain
from tests.waiting import eventually

pytestmark = pytest.mark.integration


@dataclass(frozen=True, kw_only=True)
class Broken:
    """The second log dir is offline, and has room again."""

    sandbox: Sandbox
    gateway: RunningGateway
    guard: RunningGuard

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.guard.port}"


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Broken]:
    with Sandbox(two_disks("4.3.1")) as sandbox:
        _, second = sandbox.broker(1).log_dirs
        create_topic_in(sandbox, "orders", second)
        settings = {**BY_PERCENT, **ENFORCING, "brimline.state.dir": str(state_dir(sandbox))}
        with (
            gateway(sandbox, tmp_path / "gateway", BY_PERCENT) as gate,
            guard(sandbox, tmp_path / "guard", settings) as watch,
        ):
            filler = sandbox.fill(second, leave_free=Bytes(0))
            eventually(lambda: gate.fenced() == {SECOND})
            with producing_in_vain(sandbox, 0):  # past the gateway
                eventually(lambda: watch.states()[SECOND] == "offline")
            sandbox.outside(filler).unlink()
            eventually(lambda: _has_room(watch))
            yield Broken(sandbox=sandbox, gateway=gate, guard=watch)


def _has_room(watch: RunningGuard) -> bool:
    volumes = [each for each in watch.state()["volumes"] if each["state"] == "offline"]
    return len(volumes) == 1 and (volumes[0]["bytesToLimit"] or 0) > 0


def test_everybody_says_offline_until_the_broker_is_restarted(broken: Broken) -> None:
    sandbox, watch = broken.sandbox, broken.guard
    _, second = sandbox.broker(1).log_dirs
    config = sandbox.broker(1).node.server_properties.with_name("guard.properties")
    states = watch.samples("brimline_volume_state")
    status = brimline_inside(sandbox, "status", "--url", broken.url)
    doctor = brimline_inside(sandbox, "doctor", "--config", str(config))
    topics = brimline_inside(sandbox, "topics", "--bootstrap-server", sandbox.admin_servers, "--output", "json")
    words = [event["word"] for event in json.loads(watch.get("/v1/history"))["events"]]

    sandbox.broker(1).restart()
    eventually(lambda: watch.states()[SECOND] == "ok")
    eventually(lambda: "notice-over" in watch.events())

    of_second = {row.rpartition('state="')[2].strip('"'): value for row, value in states.items() if SECOND in row}
    assert of_second == {"ok": 0, "full": 0, "unknown": 0, "offline": 1}
    assert (status.returncode, "OFFLINE: " in status.stdout.splitlines()[0]) == (3, True)
    assert not {"ROOM", "RELEASED", "UNCORDONED"} & set(words[words.index("OFFLINE") :]), words
    assert f"holds {second} offline" in doctor.stdout
    assert json.loads(topics.stdout)["offline"] == [{"broker": 1, "logDir": str(second)}]
    assert "not counted" in topics.stderr
