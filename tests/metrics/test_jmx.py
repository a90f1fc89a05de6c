"""The bridge's thread, run in the test's own thread, with scripted JVMs."""

from collections.abc import Callable, Iterator

import pytest

from brimline.metrics import catalogue
from brimline.metrics.bridge_jar import NoBridge
from brimline.metrics.jmx import BridgeState, BridgeStatus, JmxBridge, next_pause
from brimline.metrics.jmx_child import Child, ChildGone, Wake
from brimline.metrics.metric import MetricFamily
from tests.metrics.jvm_model import JvmModel

PARTITIONS = (("orders", "0"), ("orders", "1"))


class ScriptedChild:
    """Obeys like the JVM; ``idle`` says what happens whenever the bridge has nothing to tell it."""

    def __init__(self, idle: Callable[[], None], says: tuple[str, ...] = ()) -> None:
        self.jvm = JvmModel()
        self.ended = False
        self._idle = idle
        self._lines = list(says)

    def send(self, data: bytes) -> None:
        self.jvm.read(data)
        self._lines.append(f"applied {self.jvm.serials[-1]} {len(self.jvm.beans)}")

    def read_line(self) -> str:
        return self._lines.pop(0)

    def wait_for(self, wake: Wake) -> None:
        self._idle()

    def end(self) -> None:
        self.ended = True

    def kill(self) -> None:
        self.ended = True


class Stage:
    """A bridge, the children it will get, and the families that it sees."""

    def __init__(self) -> None:
        self.children: list[Child | Exception] = []
        self.families: tuple[MetricFamily, ...] = (catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (1, 2)),)
        self.states: list[BridgeState] = []
        self.bridge = JmxBridge(lambda: self.families, self._launch, on_state=self.states.append, clock=lambda: 0.0)

    def _launch(self) -> Child:
        child = self.children.pop(0)
        if isinstance(child, Exception):
            raise child
        return child

    def close(self) -> None:
        """What ``JmxBridge.close`` does, seen from the thread."""
        self.bridge._closing.set()

    def die(self) -> None:
        raise ChildGone("the JVM ended with exit code 137")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr("brimline.metrics.jmx.FIRST_PAUSE_SECONDS", 0.0)
    stage = Stage()
    yield stage
    stage.bridge.close()


def test_the_first_batch_is_everything(stage: Stage) -> None:
    child = ScriptedChild(stage.close)
    stage.children = [child]

    stage.bridge.run()

    assert list(child.jvm.beans.values()) == [1, 2]
    assert child.ended
    assert [state.status for state in stage.states] == [BridgeStatus.SERVING, BridgeStatus.STOPPED]


def test_a_jvm_that_died_is_replaced_and_told_everything_anew(stage: Stage) -> None:
    first, second = ScriptedChild(stage.die), ScriptedChild(stage.close)
    stage.children = [first, second]

    stage.bridge.run()

    assert second.jvm.beans == first.jvm.beans
    assert first.ended
    assert stage.bridge.state.restarts == 1
    assert "the JVM ended with exit code 137" in {state.complaint for state in stage.states}


def test_only_the_newest_families_are_told(stage: Stage) -> None:
    steps = iter([(3, 4), (9, 9)])

    def idle() -> None:
        # Two changes while the JVM was busy: the first one is never seen
        for values in steps:
            stage.families = (catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, values),)
            stage.bridge.changed()
        if len(child.jvm.serials) == 2:
            stage.close()

    child = ScriptedChild(idle)
    stage.children = [child]

    stage.bridge.run()

    assert list(child.jvm.beans.values()) == [9, 9]
    assert child.jvm.serials == [1, 2]


def test_a_change_of_nothing_is_not_sent(stage: Stage) -> None:
    idles: list[int] = []

    def idle() -> None:
        idles.append(1)
        if len(idles) == 3:
            stage.close()

    child = ScriptedChild(idle)
    stage.children = [child]

    stage.bridge.run()

    assert child.jvm.serials == [1]


def test_a_missing_java_is_a_state_with_a_sentence(stage: Stage) -> None:
    stage.children = [NoBridge("no java on the PATH"), ScriptedChild(stage.close)]

    stage.bridge.run()

    assert (stage.states[0].status, stage.states[0].complaint) == (BridgeStatus.WAITING, "no java on the PATH")


def test_a_refused_name_is_told_and_the_others_are_served(stage: Stage) -> None:
    stage.children = [ScriptedChild(stage.close, says=("refused 0 MalformedObjectNameException: odd",))]

    stage.bridge.run()

    assert stage.states[0].status is BridgeStatus.SERVING
    assert stage.states[0].complaint == "JMX refused a bean: MalformedObjectNameException: odd"


def test_the_bridges_own_metrics() -> None:
    state = BridgeState(status=BridgeStatus.SERVING, beans=12, restarts=3)

    assert {family.name: tuple(family.values) for family in state.families()} == {
        "jmx_bridge_up": (1,),
        "jmx_bridge_restarts": (3,),
        "jmx_beans": (12,),
    }


@pytest.mark.parametrize(
    ("last", "lived", "pause"),
    [(0.0, 0.1, 1.0), (1.0, 0.1, 2.0), (32.0, 5.0, 60.0), (60.0, 59.0, 60.0), (60.0, 61.0, 1.0)],
)
def test_pauses_double_until_a_jvm_lives(last: float, lived: float, pause: float) -> None:
    assert next_pause(last, lived) == pause
