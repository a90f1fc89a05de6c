"""Which OffsetCommits are refused once a volume is past its line (``decide.commits``); off unless a key says otherwise.

Only they are: who joins, leaves or says that it is alive is not, nor what takes offsets away or ends a transaction.
TxnOffsetCommit passes, too: refused, it would end in an abort, and the work would be done and written again.

A refusal comes at once. One that waited would make heartbeats wait, which take the same connection, and lose members.

**A commit that cannot be read ends its connection.** Passed on, one of an encoding that brokers take and we do not
would be all that somebody needs to write on behind the line; what is not acknowledged is not lost. Clients get there
by no version, because none is offered here that could not be read.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from brimline.decide.commits import LOAD_IN_PROGRESS, OFFSETS_TOPIC, OffsetsTopic
from brimline.documents.gateway_state import CommittingGroup, RefusedCommits
from brimline.gateway.net.connection import Connection
from brimline.gateway.rules.fences import Fences
from brimline.gateway.rules.placement import Placement
from brimline.model import Bytes
from brimline.wire.offset_commit import OffsetCommit, read_offset_commit, refusing_answer
from brimline.wire.primitives import WireError
from brimline.wire.request_stream import Request

SPELL = 60.0
"""Seconds without a refusal that end a spell of them."""
MOST_GROUPS = 1000
_SHOWN = 5
_LONGEST_NAME = 100


@dataclass(slots=True)
class CommitCount:
    """Requests and bytes: since the start, and of each group in this spell. Changed by the forwarder's thread alone."""

    requests: int = 0
    bytes: int = 0
    last: float = float("-inf")
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, group: str, size: int, now: float) -> None:
        if now - self.last > SPELL:
            self.groups = {}
        elif len(self.groups) >= MOST_GROUPS and group not in self.groups:
            # Anybody can make up groups: those that wrote most are kept
            self.groups = dict(self._largest(MOST_GROUPS // 2))
        requests, total = self.groups.get(group, (0, 0))
        self.groups[group] = (requests + 1, total + size)
        self.requests, self.bytes, self.last = self.requests + 1, self.bytes + size, now

    def state(self, now: float) -> RefusedCommits:
        lately = self._largest(_SHOWN) if now - self.last <= SPELL else []
        return RefusedCommits(
            requests=self.requests,
            bytes=Bytes(self.bytes),
            largest=tuple(
                CommittingGroup(group=_printable(group), requests=requests, bytes=Bytes(size))
                for group, (requests, size) in lately
            ),
        )

    def _largest(self, most: int) -> list[tuple[str, tuple[int, int]]]:
        return sorted(self.groups.copy().items(), key=lambda each: -each[1][1])[:most]


class CommitRule:
    def __init__(
        self, fences: Fences, placement: Callable[[], Placement], offsets: Callable[[], OffsetsTopic | None]
    ) -> None:
        self.is_on = False
        self.past_line: frozenset[str] = frozenset()
        """Log dirs; replaced by the thread that looks at the disks."""
        self.count = CommitCount()
        self._fences = fences
        self._placement = placement
        self._offsets = offsets

    @property
    def wants(self) -> bool:
        return self.is_on and bool(self.past_line or self._fences.snapshot.followers_in_force)

    def judge(self, connection: Connection, request: Request) -> None:
        if connection.must_log_in:  # the broker says no
            connection.forward([request.frame], request.correlation_id)
            return
        try:
            commit = read_offset_commit(request.payload, request.version)
        except WireError:
            connection.end_after_this("unreadable-commit")
            return
        if self._is_refused(commit):
            self.count.add(commit.group, len(request.frame), time.monotonic())
            connection.answer(refusing_answer(commit, request.correlation_id, LOAD_IN_PROGRESS))
        else:
            connection.forward([request.frame], request.correlation_id)

    def _is_refused(self, commit: OffsetCommit) -> bool:
        offsets = self._offsets()
        if offsets is None:
            return False
        partition = offsets.partition_of(commit.group)
        if partition not in offsets.led:
            return False
        if (OFFSETS_TOPIC, partition) in self._fences.snapshot.followers_in_force:
            return True
        return self._placement().log_dir_of(OFFSETS_TOPIC, partition) in self.past_line


def _printable(group: str) -> str:
    """It becomes part of log lines, and anybody can send anything."""
    return "".join(each if each.isprintable() else "?" for each in group[:_LONGEST_NAME])
