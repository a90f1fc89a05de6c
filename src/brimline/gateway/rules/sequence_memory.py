"""What stands refused of idempotent producers (``decide.sequences``), kept where a kill of this process loses nothing.

**Invariant.** Once ``put`` has returned, the entry survives a kill -9 (``sequence_file``). Whoever refuses a batch puts
the entry first and sends the refusal after. At no instant is the older entry of a key gone before the newer one is
whole: no record is written over; the newer one goes to an empty slot, and then the older one's slot is cleared. Of two
records of one key the later one counts. One slot more than the capacity makes that possible when all are in use.

A power cut may lose what the kernel had not written back. That does no harm: it ends the broker beside this gateway and
every connection through it, so nothing is left in flight that could overtake, and a client that comes back begins with
the lowest sequence it has.
"""

import time
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from brimline.decide.sequences import DEFAULT_EXPIRY_SECONDS, RefusedSequence
from brimline.gateway.rules.sequence_file import SequenceFile, SequenceRecord

DEFAULT_CAPACITY = 65_536
"""One entry is one producer on one refused partition; in all three megabytes of file."""
_HALF_OF_KEY = 8
_EXPIRED_AT_ONCE = 500
"""Forgetting takes a microsecond or two, and frames are waiting."""


def key_of(producer_id: int, topic: str, partition: int) -> bytes:
    """The topic by its name, so that it is the same for clients that send names and for those that send ids.

    Its first half is the same for all keys of a topic.
    """
    whose = blake2b(b"%d %d %s" % (producer_id, partition, topic.encode()), digest_size=_HALF_OF_KEY).digest()
    return _half_of(topic) + whose


@lru_cache(maxsize=1024)
def _half_of(topic: str) -> bytes:
    return blake2b(topic.encode(), digest_size=_HALF_OF_KEY).digest()


class SteadyTimeOfDay:
    """Seconds by the day's clock when it was made, counted on by a clock that never jumps.

    Entries carry the day's time because they must make sense to the next process. Within one process nobody who sets
    the clock shall make them expire early, or never.
    """

    def __init__(
        self, time_of_day: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._steady = steady
        self._offset = time_of_day() - steady()

    def __call__(self) -> int:
        return int(self._offset + self._steady())


class SequenceMemory:
    """For one thread of one process: a second one that opens the same file gets ``BadInput``.

    ``warnings`` are for the log. ``evicted`` counts the entries that had to give way while they still counted.
    """

    def __init__(
        self,
        path: Path,
        *,
        now: int,
        capacity: int = DEFAULT_CAPACITY,
        expiry_seconds: int = DEFAULT_EXPIRY_SECONDS,
    ) -> None:
        self.evicted = 0
        self._capacity = capacity
        self._expiry_seconds = expiry_seconds
        self._file = SequenceFile(path, slots=capacity + 1)
        self.warnings = tuple(self._file.warnings)
        # In the order in which they were put: the first is the oldest.
        self._records: dict[bytes, SequenceRecord] = {}
        self._by_topic: dict[bytes, dict[bytes, None]] = {}
        self._serial = 0
        self._recall(now)
        used = {record.slot for record in self._records.values()}
        self._never_used = max(used, default=-1) + 1
        self._cleared = [slot for slot in range(self._never_used) if slot not in used]

    @property
    def is_empty(self) -> bool:
        return not self._records

    @property
    def held(self) -> int:
        return len(self._records)

    def get(self, key: bytes) -> RefusedSequence | None:
        record = self._records.get(key)
        return None if record is None else record.entry

    def put(self, key: bytes, entry: RefusedSequence) -> None:
        if key not in self._records and len(self._records) >= self._capacity:
            self._make_room(entry.refused_at)
        before = self._take_out(key)
        self._serial += 1
        record = SequenceRecord(self._serial, self._empty_slot(), key, entry)
        self._file.store(record)
        self._put_in(record)
        if before is not None:
            self._clear(before)

    def forget(self, key: bytes) -> None:
        record = self._take_out(key)
        if record is not None:
            self._clear(record)

    def forget_all(self) -> None:
        """Clients were past this gateway meanwhile: what was refused here may be stored, and never comes again."""
        for key in list(self._records):
            self.forget(key)

    def forget_expired(self, now: int) -> None:
        """Some of them. To be called every second or so, that the memory may be empty again after the last refusal."""
        for oldest in list(islice(self._records.values(), _EXPIRED_AT_ONCE)):
            if not oldest.entry.has_expired(now, self._expiry_seconds):
                break
            self.forget(oldest.key)

    def close(self) -> None:
        self._file.close()

    def _recall(self, now: int) -> None:
        """An entry from the future, after the clock was set back, counts as one of now: it must not last for longer."""
        for record in sorted(self._file.records):
            self._serial = record.serial
            older = self._take_out(record.key)
            if older is not None:
                self._file.clear(older.slot)
            if record.entry.has_expired(now, self._expiry_seconds):
                self._file.clear(record.slot)
                continue
            refused_at = min(record.entry.refused_at, now)
            self._put_in(record._replace(entry=record.entry._replace(refused_at=refused_at)))

    def _put_in(self, record: SequenceRecord) -> None:
        self._records[record.key] = record
        self._by_topic.setdefault(record.key[:_HALF_OF_KEY], {})[record.key] = None

    def _take_out(self, key: bytes) -> SequenceRecord | None:
        record = self._records.pop(key, None)
        if record is not None:
            topic = key[:_HALF_OF_KEY]
            del self._by_topic[topic][key]
            if not self._by_topic[topic]:
                del self._by_topic[topic]
        return record

    def _make_room(self, now: int) -> None:
        """The oldest entry of a topic that has no fewer than the average gives way: one topic cannot push out all.

        Such a topic stays the first, so that it is not looked for every time.
        """
        self.forget_expired(now)
        if len(self._records) < self._capacity:
            return
        average = len(self._records) / len(self._by_topic)
        while len(self._by_topic[topic := next(iter(self._by_topic))]) < average:
            self._by_topic[topic] = self._by_topic.pop(topic)
        self.forget(next(iter(self._by_topic[topic])))
        self.evicted += 1

    def _empty_slot(self) -> int:
        if self._cleared:
            return self._cleared.pop()
        self._never_used += 1
        return self._never_used - 1

    def _clear(self, record: SequenceRecord) -> None:
        self._file.clear(record.slot)
        self._cleared.append(record.slot)
