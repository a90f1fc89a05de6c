"""The note that a guard leaves in Kafka for the guards of other replicas: its brakes, and whether it is paused.

It is the metadata of a group's offset (``observe.cluster.group_notes``), so it is small::

    brimline-guard-1   {"version": 1, "writtenAt": "…Z", "paused": {"by": "…", "reason": "…", "since": "…Z"},
                        "brakes": {"minRetentionMs": 86400000, "minRetentionBytes": 0, "protectedTopics": ["audit-.*"],
                                   "sparesCompacted": true, "sparesForEver": true, "sparesTransactions": true}}
"""

import json
from dataclasses import dataclass
from datetime import datetime

from brimline.decide.reclaim.brakes import Brakes, is_quick
from brimline.documents.codec import to_json
from brimline.documents.state_files import read_versioned
from brimline.model import BrimlineError

VERSION = 1
MOST_BYTES = 4000
"""``offset.metadata.max.bytes`` is 4,096 by default."""
_LONGEST_TEXT = 200


class NoteRefused(BrimlineError):
    """It is too large for Kafka, or too much work for its readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedPause:
    by: str
    reason: str
    since: datetime

    @classmethod
    def of(cls, by: str, reason: str, since: datetime) -> "NotedPause":
        return cls(by=by[:_LONGEST_TEXT], reason=reason[:_LONGEST_TEXT], since=since)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardNote:
    version: int = VERSION
    written_at: datetime
    paused: NotedPause | None = None
    brakes: Brakes


def note_text(note: GuardNote) -> str:
    """Raises ``NoteRefused``."""
    slow = _slow(note)
    if slow is not None:
        raise NoteRefused(
            f"{slow!r:.80} of brimline.reclaim.protected.topics would be slow to match: no repeated groups, no "
            f"look-around or back references, at most three of * + {{"
        )
    text = json.dumps(to_json(note), separators=(",", ":"))
    if len(text) > MOST_BYTES:
        raise NoteRefused(f"they take {len(text):,} of {MOST_BYTES:,} bytes: shorten brimline.reclaim.protected.topics")
    return text


def read_note(text: str) -> GuardNote:
    """Raises ``ValueError``, also for a later version."""
    note = read_versioned(GuardNote, text, VERSION)
    slow = _slow(note)
    if slow is not None:
        raise ValueError(f"{slow!r:.80} is too slow to match")
    return note


def _slow(note: GuardNote) -> str | None:
    return next((each for each in note.brakes.protected_topics if not is_quick(each)), None)
