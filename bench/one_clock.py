"""How soon guard and gateway know of a full disk that the other one has found, and of its release.

Whoever finds looks every 100 ms, whoever is told would look once in ten hours: so it knows from the other or not at
all. Both write a line when they have judged a volume anew; what lies between the two lines is the figure. A file comes
and goes in one go, which no fill rate tells beforehand.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from brimline.sandbox import Sandbox
from tests.integration.full_disks import BY_PERCENT, fill_beyond_limit, two_disks
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.waiting import eventually

CROSSINGS = 100
"""Of each kind."""
LIMITS = {**BY_PERCENT, "brimline.cordon": "false"}
FINDS = {**LIMITS, "disk.usage.check.interval.ms": "100"}
IS_TOLD = {**LIMITS, "disk.usage.check.interval.ms": "36000000", "brimline.disk.fast.sampling": "false"}
FULL, ROOM = ("fenced", "disk-full"), ("released", "disk-ok")
"""Events of gateway and guard."""
GOAL_SECONDS = 1.0
HEADER = "| what | p50 | p99 | longest | goal for p99 |\n|---|---|---|---|---|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    what: str
    seconds: list[float]

    def row(self) -> str:
        taken = sorted(self.seconds)
        p50, p99, longest = (f"{taken[round(part * (len(taken) - 1))]:.3f} s" for part in (0.5, 0.99, 1))
        return f"| {self.what} | {p50} | {p99} | {longest} | under {GOAL_SECONDS:g} s |"


def figures() -> Iterator[Delays]:
    with Sandbox(two_disks("4.3.1")) as sandbox:
        yield from _measured(sandbox, "the gateway finds", "the guard knows", of_gateway=FINDS, of_guard=IS_TOLD)
        yield from _measured(sandbox, "the guard finds", "the gateway knows", of_gateway=IS_TOLD, of_guard=FINDS)


def _measured(
    sandbox: Sandbox, finds: str, knows: str, of_gateway: dict[str, str], of_guard: dict[str, str]
) -> Iterator[Delays]:
    keys = {**ENFORCING, "brimline.state.dir": str(state_dir(sandbox)), **of_guard}
    with tempfile.TemporaryDirectory() as logs, ExitStack() as stack:
        running = stack.enter_context(gateway(sandbox, Path(logs, "gateway"), of_gateway))
        watching = stack.enter_context(guard(sandbox, Path(logs, "guard"), keys))
        eventually(lambda: watching.state()["gateway"]["up"])
        found: dict[tuple[str, str], list[float]] = {FULL: [], ROOM: []}
        for number in range(CROSSINGS):
            # Not in step with anybody's rhythm
            time.sleep(0.25 * (number % 10) / 10)
            foreign = fill_beyond_limit(sandbox, sandbox.broker(1).log_dirs[1])
            found[FULL].append(_between(running, watching, FULL, number))
            sandbox.unfill(foreign)
            found[ROOM].append(_between(running, watching, ROOM, number))
    for events, what in ((FULL, "a full disk"), (ROOM, "room again")):
        yield Delays(what=f"{finds} {what}, {knows}", seconds=found[events])


def _between(running: RunningGateway, watching: RunningGuard, events: tuple[str, str], number: int) -> float:
    """Between the two lines of this crossing; their clock has milliseconds."""

    def times(said: list[dict[str, str]], event: str) -> list[datetime]:
        lines = (line for line in said if line["event"] == event and "volume-1" in line["log_dirs"])
        return [datetime.fromisoformat(line["time"]) for line in lines]

    of_gateway, of_guard = events
    seen: list[list[datetime]] = []

    def both() -> bool:
        beyond = number + (of_guard == "disk-ok")  # its first line is of its start
        seen[:] = [times(running.said(), of_gateway)[number:], times(watching.said(), of_guard)[beyond:]]
        return all(seen)

    eventually(both)
    return abs((seen[0][0] - seen[1][0]).total_seconds())
