"""The part of ``/v1/state`` about moves into full log dirs."""

from collections.abc import Mapping

from brimline.guard.gateway_document import failure_document, time_text
from brimline.guard.move_pause_task import MoveReport
from brimline.guard.move_sentences import how_to_cancel, move_sentence
from brimline.model import BrokerId

Json = Mapping[str, object]


def move_document(report: MoveReport, broker: BrokerId, servers: str, *, enforced: bool) -> Json | None:
    if report.is_quiet:
        return None
    return {
        "paused": report.is_held,
        "since": None if report.pause is None else time_text(report.pause.since),
        "valueBefore": None if report.pause is None else report.pause.before,
        "logDirs": [
            {"logDir": log_dir, "partitions": [str(each) for each in found]} for log_dir, found in report.moves.items()
        ],
        "failure": failure_document(report.failure),
        "does": move_sentence(report, enforced=enforced),
        "whatToDo": how_to_cancel(report.moves, broker, servers) if report.moves else None,
    }
