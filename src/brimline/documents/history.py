"""``/v1/history``, and ``brimline history --output json``: what happened on a broker, as one timeline.

``what`` is the stable name of an event, ``word`` the same for people. ``level`` is info, warning or error. ``by``: the
guard, the gateway, or the person who did it. ``incomplete`` has sentences about places that could not be read.

Members are added, never changed or removed, while ``version`` stays.
"""

import json
from dataclasses import dataclass, replace
from datetime import datetime

from brimline.documents.codec import to_json
from brimline.documents.notices import EVENT_PREFIX

FORMAT, VERSION = "brimline.history", 1

_WORDS = {
    "disk-full": "FULL",
    "disk-ok": "ROOM",
    "disk-unknown": "UNKNOWN",
    "clients-refused": "REFUSED",
    "refusals-over": "REFUSED",
    "follower-full": "NO ROOM",
    "follower-released": "ROOM",
    "follower-throttle": "THROTTLE",
    "moves-paused": "MOVES",
    "moves-paused-again": "MOVES",
    "moves-resumed": "MOVES",
    "moves-failed": "MOVES",
    "ballast-allocated": "BALLAST",
    "ballast-released": "BALLAST",
    "ballast-restored": "BALLAST",
    "reclaim-over": "RECLAIM",
    "reclaim-held": "HELD",
    "reclaim-stuck": "STUCK",
    "reclaim-paused": "PAUSED",
    "reclaim-resumed": "RESUMED",
    "not-cordoned": "OPEN",
    "cordon-failed": "CORDON",
    "shed-over": "SHED",
    "shed-failed": "SHED",
    "skipped-no-more": "SKIPPING",
    "skips-expired": "SKIPPING",
    "stopping": "STOPPED",
    "needs-restart": "RELOADED",
    "broker-answers": "BROKER",
    "broker-silent": "BROKER",
    "gateway-answers": "GATEWAY",
    "gateway-silent": "GATEWAY",
    "interception": "ASIDE",
    "broker-gone": "BROKER",
    "broker-back": "BROKER",
    "peers-silent": "PEERS",
    "peers-answer": "PEERS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    at: datetime
    what: str
    level: str
    by: str
    sentence: str

    @property
    def word(self) -> str:
        """For people: at most ten letters."""
        return _WORDS.get(self.what, self.what.removeprefix(EVENT_PREFIX).upper())


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The oldest first. ``left_out``: older ones that were not asked for or did not fit."""

    format: str = FORMAT
    version: int = VERSION
    broker: int
    events: tuple[Happening, ...]
    left_out: int = 0
    incomplete: tuple[str, ...] = ()

    def newest(self, most: int) -> "Timeline":
        left_out = max(len(self.events) - most, 0)
        return replace(self, events=self.events[left_out:], left_out=self.left_out + left_out)


def history_text(history: Timeline) -> str:
    document = to_json(history)
    for event, member in zip(history.events, document["events"], strict=True):
        member["word"] = event.word
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
