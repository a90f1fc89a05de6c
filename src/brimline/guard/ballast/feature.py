"""The ballasts in words: for the guard's log, for ``/v1/state`` and so for ``brimline status``.

The ballasts of all volumes: a task, a thread and a ledger of its own for every log dir.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from brimline.act.ledger.entries import BallastAct
from brimline.act.ledger.ledger import Ledger
from brimline.decide.ballast import BallastDecision
from brimline.disks.task import DiskReport
from brimline.guard.ballast.task import BallastStatus, BallastTask
from brimline.model import Bytes, human_bytes
from brimline.service.clock import Clock
from brimline.service.log_lines import say
from brimline.service.worker import Worker
from brimline.settings.config import GuardConfig

Json = Mapping[str, object]

_ACTS = {
    BallastAct.ALLOCATED: (logging.INFO, "there is a ballast of {size} now: {path}"),
    BallastAct.RESTORED: (logging.INFO, "there is room again, and the ballast of {size} is back: {path}"),
    BallastAct.RELEASED: (
        logging.ERROR,
        "the volume runs out, {usable} were usable: the ballast was given back ({path}); make room now, there is "
        "nothing more to give",
    ),
}
_NOT_WANTED = "the ballast was removed: brimline.ballast.bytes is {wanted} ({path})"


class BallastNews:
    """One volume's ballast in the log: a line for every act, one for what keeps it from being done, none in between."""

    def __init__(self) -> None:
        self._hindrance: str | None = None

    def tell(self, status: BallastStatus) -> None:
        for warning in status.warnings:
            say(logging.WARNING, "ledger", warning)
        if status.act is not None:
            level, sentence = _ACTS[status.act]
            if status.decision is BallastDecision.RELEASE_NOT_WANTED:
                level, sentence = logging.INFO, _NOT_WANTED
            words = {"size": human_bytes(status.size), "usable": human_bytes(status.usable), "path": status.path}
            say(
                level,
                status.act.value,
                sentence.format(**words, wanted=status.wanted),
                path=status.path,
                device=status.device,
                usable_bytes=status.usable,
            )
        hindrance = _hindrance(status)
        if hindrance not in (None, self._hindrance):
            say(logging.WARNING, "ballast-failed" if status.failure else "ballast-waits", str(hindrance))
        self._hindrance = hindrance


def ballast_sentence(status: BallastStatus) -> str:
    """What there is, and what is done about it."""
    hindrance = _hindrance(status)
    if hindrance is not None:
        return hindrance
    if status.is_in_place:
        return f"{human_bytes(status.size)} to be given back when the volume runs out: {status.path}"
    return f"not wanted: {status.path}"


def ballast_document(statuses: Sequence[BallastStatus], wanted: Bytes) -> Json | None:
    told = [status for status in statuses if not status.is_quiet]
    if not told and not wanted:
        return None
    return {
        "wantedBytes": wanted,
        "volumes": [
            {
                "device": status.device,
                "path": status.path,
                "bytes": status.size,
                "inPlace": status.is_in_place,
                "releases": status.releases,
                "unrecorded": status.unrecorded,
                "failure": status.failure,
                "does": ballast_sentence(status),
            }
            for status in told
        ],
    }


def _hindrance(status: BallastStatus) -> str | None:
    if status.failure is not None:
        return f"{status.failure}; it is tried again and again"
    if status.unrecorded:
        return f"the ledger cannot be written: {status.unrecorded} acts on {status.path} are not on record yet"
    if status.size < status.wanted and status.act is None:
        lacking = human_bytes(Bytes(status.wanted - status.size))
        return f"no ballast at the moment: it is made as soon as {lacking} can be spared ({status.path})"
    return None


class Ballasts:
    """``look`` has the disks read again; ``publish`` is told of all ballasts whenever one has been looked after."""

    def __init__(
        self,
        config: GuardConfig,
        clock: Clock,
        wanted: Callable[[], Bytes],
        look: Callable[[], None],
        publish: Callable[[Sequence[BallastStatus], Bytes], None],
    ) -> None:
        self._wanted = wanted
        self._publish = publish
        self._tasks: list[BallastTask] = []
        self.workers = [self._worker(path, config, clock, look) for path in config.broker.log_dirs]

    @property
    def statuses(self) -> tuple[BallastStatus, ...]:
        """A volume's each; none before the first look."""
        return tuple(status for task in self._tasks if (status := task.status) is not None)

    def decided(self, disks: DiskReport) -> None:
        """From the disks' thread; returns at once."""
        for task in self._tasks:
            task.decided(disks)

    def _worker(self, path: str, config: GuardConfig, clock: Clock, look: Callable[[], None]) -> Worker:
        news = BallastNews()

        def changed(status: BallastStatus) -> None:
            self._publish(self.statuses, self._wanted())
            news.tell(status)

        worker = Worker(f"ballast of {path}", lambda: task.step())
        task = BallastTask(
            path,
            config.broker.log_dirs,
            Ledger(config.state_dir, config.node_id, clock.now, sleep=_impatiently),
            clock,
            self._wanted,
            worker.wake,
            look,
            changed,
        )
        self._tasks.append(task)
        return worker


def _impatiently(seconds: float) -> None:
    """A release does not wait for long for a ledger that somebody else holds: it comes first, and its entry is late."""
    time.sleep(seconds / 10)
