"""What can go wrong with the fleet pipeline as a whole, each error one sentence for the person who reads it.

A bad snapshot is none of these: it is set aside in the table ``quarantine``, and nothing else is affected.

::

    BrimlineError
    └── FleetError              a part is missing, or Spark cannot be had
        ├── WarehouseBusy       another run is in progress on this warehouse
        ├── NoTable             (in ``tables.show``) a table was never written
        ├── LandingFailed       the landing place cannot be listed
        ├── JobFailed           Spark gave up on the ingest
        └── SparkGone           the JVM has ended under a run
"""

import re

from brimline.model.failures import BrimlineError


class FleetError(BrimlineError):
    """Everything the fleet pipeline raises on purpose."""


class WarehouseBusy(FleetError):
    """Two runs would take the same files in."""


class LandingFailed(FleetError):
    """The landing place cannot be listed; the tables stay as they are."""


class JobFailed(FleetError):
    """A batch could not be taken in; the next run begins with it."""


class SparkGone(FleetError):
    """Nothing more can be asked in this session."""

    def __init__(self) -> None:
        super().__init__("Spark's JVM ended; the next run resumes there")


_NO_LOGIN = re.compile(
    # Where machines of a cloud ask for credentials; elsewhere nothing answers there
    r"169\.254\.|credential|access.?denied|invalid.?access.?key|signature.?does.?not.?match|403 Forbidden|code 403",
    re.IGNORECASE,
)


def said_by_store(place: str, error: Exception) -> str:
    """What went wrong with a place, in one line. An object store that lets nobody in says it in a page of its own."""
    if place.startswith(("s3:", "s3a:")) and _NO_LOGIN.search(str(error)):
        return (
            "S3 denied access: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or give this machine a role), and "
            "AWS_REGION"
        )
    return " ".join(str(error).split())


_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE)
_HANDED_ON = "An exception was thrown"
_CALLED = "An error occurred while calling"
"""How py4j begins; what Java said is on the next line, after a colon."""
_NO_BRIMLINE = "No module named 'brimline"


def said_by(error: Exception) -> str:
    """Spark's errors are pages: what an error in Python said at its end, else the first line that says something."""
    text = str(error)
    said = [line for line in _TRACEBACK.findall(text) if _HANDED_ON not in line]
    lines = (line.strip().removeprefix(": ") for line in text.splitlines() if not line.startswith(_CALLED))
    if said and _NO_BRIMLINE in said[0]:
        return f"{said[0]}: the workers need a Python with brimline[fleet] (docs/fleet.md says how to send them one)"
    return str(said[0]) if said else next((line for line in lines if line), type(error).__name__)
