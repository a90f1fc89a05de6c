"""The ballasts of all volumes, as the guard has them, and in words: for its log and for ``/v1/state``."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from brimline.act.ledger.entries import BallastAct
from brimline.act.ledger.ledger import Ledger
from brimline.decide.ballast import BallastDecision
from brimline.disks.task import DiskReport
from brimline.documents.codec import like
from brimline.documents.guard_state import BallastDocument, BallastsDocument
from brimline.guard.ballast.findings import explain_ballast, explain_ledger
from brimline.guard.ballast.task import BallastStatus, BallastTask
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model import Bytes, human_bytes
from brimline.service.log_lines import say
from brimline.service.worker import Worker
from brimline.settings import keys

_ACTS = {
    BallastAct.ALLOCATED: (logging.INFO, "ballast of {size} created: {path}"),
    BallastAct.RESTORED: (logging.INFO, "room again: ballast of {size} recreated: {path}"),
    BallastAct.RELEASED: (
        logging.ERROR,
        "volume almost full, {usable} usable: ballast released ({path}); make room now, there is no second ballast",
    ),
}
_NOT_WANTED = "ballast removed: brimline.ballast.bytes is {wanted} ({path})"


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
        return f"{human_bytes(status.size)} released when the volume runs out: {status.path}"
    return f"not wanted: {status.path}"


def ballast_document(statuses: Sequence[BallastStatus], wanted: Bytes) -> BallastsDocument | None:
    told = [status for status in statuses if not status.is_quiet]
    if not told and not wanted:
        return None
    return BallastsDocument(
        wanted_bytes=wanted,
        volumes=tuple(
            like(
                BallastDocument,
                status,
                bytes=status.size,
                in_place=status.is_in_place,
                does=ballast_sentence(status),
            )
            for status in told
        ),
    )


def _hindrance(status: BallastStatus) -> str | None:
    if status.failure is not None:
        return f"{status.failure}; retrying"
    if status.unrecorded:
        return f"the ledger cannot be written: {status.unrecorded} acts on {status.path} are not recorded yet"
    if status.size < status.wanted and status.act is None:
        lacking = human_bytes(Bytes(status.wanted - status.size))
        return f"no ballast yet: waiting for {lacking} of free space ({status.path})"
    return None


class Ballasts(Feature):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._tasks: list[BallastTask] = []
        self.workers = [self._worker(path) for path in core.config.broker.log_dirs]

    @property
    def statuses(self) -> tuple[BallastStatus, ...]:
        """A volume's each; none before the first look."""
        return tuple(status for task in self._tasks if (status := task.status) is not None)

    def decided(self, disks: DiskReport) -> None:
        for task in self._tasks:
            task.decided(disks)

    def document(self, seconds: float) -> Mapping[str, object]:
        return {"ballast": ballast_document(self.statuses, self._wanted())}

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        yield from explain_ballast(looked.config, looked.disks)
        yield from explain_ledger(looked.config, looked.disks)

    def _wanted(self) -> Bytes:
        return Bytes(self.core.config.number(keys.BALLAST_BYTES))

    def _worker(self, path: str) -> Worker:
        core, config = self.core, self.core.config
        news = BallastNews()

        def changed(status: BallastStatus) -> None:
            core.board.put(*ballast_families(self.statuses, self._wanted()))
            news.tell(status)

        worker = Worker(f"ballast of {path}", lambda: task.step())
        task = BallastTask(
            path,
            config.broker.log_dirs,
            Ledger(config.state_dir, core.broker, core.clock.now, sleep=_impatiently),
            core.clock,
            self._wanted,
            worker.wake,
            core.look_at_disks,
            changed,
        )
        self._tasks.append(task)
        return worker


def ballast_families(statuses: Sequence[BallastStatus], wanted: Bytes) -> list[MetricFamily]:
    rows = tuple((str(Path(status.path).parent), status.device) for status in statuses)
    return [
        catalogue.BALLAST_BYTES.family(rows, [status.size for status in statuses]),
        catalogue.BALLAST_WANTED.single(wanted),
        catalogue.BALLAST_RELEASES.family(rows, [status.releases for status in statuses]),
    ]


def _impatiently(seconds: float) -> None:
    """A release does not wait for long for a ledger that somebody else holds: it comes first, and its entry is late."""
    time.sleep(seconds / 10)
