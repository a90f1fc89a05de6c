"""The ballasts in words: for the guard's log, for ``/v1/state`` and so for ``brimline status``."""

import logging
from collections.abc import Mapping, Sequence

from brimline.act.ledger_entries import BallastAct
from brimline.decide.ballast import BallastDecision
from brimline.guard.ballast_task import BallastStatus
from brimline.guard.log_lines import say
from brimline.model import Bytes, human_bytes

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
