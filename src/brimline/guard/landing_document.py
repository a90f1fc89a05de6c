"""The part of ``/v1/state`` about snapshots."""

from collections.abc import Mapping

from brimline.guard.landing_task import LandingReport
from brimline.model.secrets import without_login

Json = Mapping[str, object]


def landing_document(report: LandingReport | None, uri: str, seconds: float) -> Json | None:
    """``None`` where no snapshots are wanted."""
    if report is None:
        return None
    return {
        "uri": without_login(uri),
        "last": report.name,
        "lastBytes": report.bytes,
        "lastSeconds": None if report.took is None else round(report.took, 3),
        "ageSeconds": None if report.landed is None else round(seconds - report.landed, 3),
        "sent": report.sent,
        "failed": report.failed,
        "dropped": report.dropped,
        "spool": {"snapshots": report.waiting, "bytes": report.waiting_bytes},
        "failure": report.failure,
    }
