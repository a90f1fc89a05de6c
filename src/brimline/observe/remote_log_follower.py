"""The remote segments of a broker's partitions, kept up to date: reads only what is new in ``__remote_log_metadata``.

**Invariant.** The table of a partition reflects every record of its metadata partition up to the position that the
follower holds there, and nothing beyond. A partition that is new to the table has records that were passed over, so its
metadata partition is read again from the beginning; one that is no longer asked for is forgotten.

The connection may break at any time: positions and table outlive it.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from uuid import UUID

from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.errors import KafkaError as ClientError
from kafka.errors import UnsupportedCodecError

from brimline.model import Failure, FailureKind
from brimline.observe.client_config import ClientConfig
from brimline.observe.failures import failure_of
from brimline.observe.remote_log import PartitionKey, RemoteLogTable
from brimline.wire.remote_log_metadata import TOPIC, RemoteSegment, metadata_partition

_POLL_RECORDS = 5000
_FETCH_WAIT_MS = 250
# kafka-python insists on fetch wait < request timeout < idle time.
_SHORTEST_REQUEST_TIMEOUT_MS = 1000
_IDLE_BEYOND_TIMEOUT_MS = 60_000

Segments = Mapping[PartitionKey, Mapping[UUID, RemoteSegment]]


class RemoteLogFollower:
    """Used by one thread. ``skipped_records`` counts what could not be decoded."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._consumer: KafkaConsumer | None = None
        self._table = RemoteLogTable([])
        self._positions: dict[int, int] = {}
        self._sources: dict[PartitionKey, int] = {}

    @property
    def skipped_records(self) -> int:
        return self._table.skipped_records

    def follow(
        self,
        partitions: Iterable[PartitionKey],
        metadata_partitions: int,
        stall_timeout: timedelta,
        leaderless: Collection[int] = (),
    ) -> Segments | Failure:
        """Read up to the present ends. A silence of ``stall_timeout`` is a failure; what was read so far is kept.

        ``leaderless`` metadata partitions cannot be read now: what depends on them is left out of the answer.
        """
        self._choose({key: metadata_partition(*key, metadata_partitions) for key in partitions})
        sources = sorted(set(self._sources.values()) - set(leaderless))
        if not sources:
            return {}
        try:
            if self._consumer is None:
                self._consumer = KafkaConsumer(**_consumer_options(self._config, stall_timeout))
            self._catch_up(self._consumer, sources, int(stall_timeout.total_seconds() * 1000))
        except UnsupportedCodecError as error:
            self.close()
            return Failure(kind=FailureKind.UNREADABLE, message=f"{TOPIC} cannot be decompressed: {error}")
        except ClientError as error:
            self.close()
            return failure_of(error, TOPIC, self._config.security_protocol)
        except TimeoutError:
            self.close()
            return Failure(kind=FailureKind.TIMED_OUT, message=f"reading {TOPIC} stalled")
        return {key: self._table.segments[key] for key, source in self._sources.items() if source not in leaderless}

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _choose(self, wanted: dict[PartitionKey, int]) -> None:
        new_sources = {source for key, source in wanted.items() if self._sources.get(key) != source}
        for key in set(self._sources) - set(wanted):
            del self._table.segments[key]
        self._sources = wanted
        for source in new_sources:
            self._read_again(source)
        self._positions = {source: at for source, at in self._positions.items() if source in set(wanted.values())}

    def _read_again(self, source: int) -> None:
        self._positions.pop(source, None)
        for key, held_by in self._sources.items():
            if held_by == source:
                self._table.segments[key] = {}

    def _catch_up(self, consumer: KafkaConsumer, chosen: Iterable[int], poll_ms: int) -> None:
        sources = [ClientPartition(TOPIC, source) for source in chosen]
        consumer.assign(sources)
        begin, end = consumer.beginning_offsets(sources), consumer.end_offsets(sources)
        for source in sources:
            at = self._positions.get(source.partition)
            if at is None or not begin[source] <= at <= end[source]:  # the topic was made anew, or trimmed
                self._read_again(source.partition)
                at = begin[source]
            self._positions[source.partition] = at
            consumer.seek(source, at)
        while behind := [source for source in sources if self._positions[source.partition] < end[source]]:
            before = dict(self._positions)
            for records in consumer.poll(timeout_ms=poll_ms).values():
                for record in records:
                    self._table.add(record.value)
            # Positions, not records, tell how far it is: an offset may hold no record.
            self._positions.update((source.partition, consumer.position(source)) for source in sources)
            if all(self._positions[source.partition] == before[source.partition] for source in behind):
                raise TimeoutError


def _consumer_options(config: ClientConfig, timeout: timedelta) -> dict[str, object]:
    """A consumer without a group that never waits longer than ``timeout`` for one answer."""
    request_timeout = max(int(timeout.total_seconds() * 1000), _SHORTEST_REQUEST_TIMEOUT_MS)
    return {
        **config.kafka_python_options(),
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "max_poll_records": _POLL_RECORDS,
        "fetch_max_wait_ms": _FETCH_WAIT_MS,
        "request_timeout_ms": request_timeout,
        "connections_max_idle_ms": request_timeout + _IDLE_BEYOND_TIMEOUT_MS,
    }
