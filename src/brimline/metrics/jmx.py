"""Keeps the JMX bridge alive and its beans equal to the board's families.

Invariant: nobody waits for the JVM but the bridge's own thread. ``changed`` only leaves a note; the thread takes the
newest families when it comes to it, so a slow or hung JVM costs freshness of the beans and nothing else, and there
is no queue that could grow.

A JVM that ends by itself is started again after a pause, which doubles as long as it does not live for a while; the
new one is told everything anew.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from brimline.metrics import catalogue
from brimline.metrics.bridge_jar import NoBridge, find_jar, find_tool
from brimline.metrics.jmx_child import Child, ChildGone, JvmChild, Wake
from brimline.metrics.jmx_protocol import BeanTable, end_of_batch
from brimline.metrics.jmx_settings import JmxSettings
from brimline.metrics.metric import MetricFamily

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
STEADY_SECONDS = 60.0
"""A JVM that lived this long was all right: the next pause is the first again."""
CLOSE_SECONDS = 2.0


class BridgeStatus(Enum):
    STARTING = "starting"
    SERVING = "serving"
    WAITING = "waiting"
    """It ended, or could not start; ``complaint`` says why. The next attempt comes by itself."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeState:
    status: BridgeStatus = BridgeStatus.STARTING
    beans: int = 0
    batches: int = 0
    """How many updates the JVM has confirmed."""
    restarts: int = 0
    complaint: str | None = None

    def families(self) -> tuple[MetricFamily, ...]:
        """The bridge's own metrics."""
        return (
            catalogue.JMX_BRIDGE_UP.single(int(self.status is BridgeStatus.SERVING)),
            catalogue.JMX_BRIDGE_RESTARTS.single(self.restarts),
            catalogue.JMX_BEANS.single(self.beans),
        )


class JmxBridge:
    """One JVM and the thread that feeds it. Make it only when a JMX port is configured."""

    def __init__(
        self,
        families: Callable[[], Sequence[MetricFamily]],
        launch: Callable[[], Child],
        *,
        on_state: Callable[[BridgeState], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``on_state`` is called from the bridge's thread whenever its status changes."""
        self._families = families
        self._launch = launch
        self._on_state = on_state
        self._clock = clock
        self._wake = Wake()
        self._closing = threading.Event()
        self._child: Child | None = None
        self._state = BridgeState()
        self._thread = threading.Thread(target=self.run, name="jmx-bridge", daemon=True)

    @classmethod
    def to_jvm(
        cls,
        settings: JmxSettings,
        families: Callable[[], Sequence[MetricFamily]],
        on_state: Callable[[BridgeState], None] = lambda _: None,
    ) -> "JmxBridge":
        return cls(families, lambda: JvmChild(settings), on_state=on_state)

    @property
    def state(self) -> BridgeState:
        return self._state

    def start(self) -> None:
        """Returns at once; the first JVM starts in the background."""
        self._thread.start()

    def changed(self) -> None:
        """The families are other ones now. Returns at once, from any thread."""
        self._wake.set()

    def close(self) -> None:
        """End the JVM. Waits for it, a moment at most."""
        self._closing.set()
        self._wake.set()
        self._join()
        if self._thread.is_alive() and (child := self._child):
            child.kill()
            self._join()
        if not self._thread.is_alive():
            self._wake.close()

    def _join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join(CLOSE_SECONDS)

    def run(self) -> None:
        """The thread: JVM after JVM, until ``close``."""
        pause = 0.0
        while not self._closing.is_set():
            began = self._clock()
            complaint = self._serve_once()
            if self._closing.is_set():
                break
            self._become(BridgeStatus.WAITING, beans=0, complaint=complaint, restarts=self._state.restarts + 1)
            pause = next_pause(pause, self._clock() - began)
            if self._closing.wait(pause):
                break
        self._become(BridgeStatus.STOPPED, beans=0)

    def _serve_once(self) -> str:
        """From the start of a JVM to its end; returns why it ended."""
        try:
            child = self._child = self._launch()
        except (ChildGone, NoBridge) as error:
            return str(error)
        try:
            self._feed(child)
        except ChildGone as gone:
            return str(gone)
        finally:
            self._child = None
            child.end()
        return "closed"

    def _feed(self, child: Child) -> None:
        table = BeanTable()
        serial = 0
        while not self._closing.is_set():
            update = table.update(self._families())
            if update or not serial:
                serial += 1
                child.send(update + end_of_batch(serial))
                beans, refusal = _confirmed(child, serial)
                self._become(BridgeStatus.SERVING, beans=beans, batches=self._state.batches + 1, complaint=refusal)
            child.wait_for(self._wake)

    def _become(self, status: BridgeStatus, **changes: int | str | None) -> None:
        before = self._state
        self._state = replace(before, status=status, **changes)  # type: ignore[arg-type]
        if before.status is not status or self._state.complaint != before.complaint:
            self._on_state(self._state)


def next_pause(last: float, lived: float) -> float:
    """How long to wait after a JVM that lived for ``lived`` seconds and was itself waited for, or 0."""
    if lived >= STEADY_SECONDS:
        return FIRST_PAUSE_SECONDS
    return min(max(last * 2, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)


def why_no_jmx() -> str | None:
    """What this machine lacks for a bridge, in one sentence; ``None`` if nothing."""
    if find_tool("java") is None:
        return "no java on the PATH or in JAVA_HOME: JMX needs a Java 11 or newer, or no JMX port"
    try:
        find_jar()
    except NoBridge as error:
        return str(error)
    return None


def _confirmed(child: Child, serial: int) -> tuple[int, str | None]:
    """Wait for the batch's end: the number of beans, and the last name that JMX refused, if any."""
    refusal = None
    while True:
        word, *rest = child.read_line().split(" ", 2)
        if word == "applied" and int(rest[0]) == serial:
            return int(rest[1]), refusal
        if word == "refused":
            refusal = f"JMX refused a bean: {rest[-1]}"
