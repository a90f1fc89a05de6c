"""A client that speaks DescribeLogDirs as KIP-1187 has it, written from the KIP's text alone.

Its version 5 is not the one that Kafka 4.3 ships: the request says whether remote information is wanted, every
partition of the answer has two more sizes, and no log dir says whether it is cordoned.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka.protocol.metadata import ApiVersionsRequest

from brimline.wire.primitives import Reader, Writer
from tests.integration.raw_kafka import CORRELATION_ID, RawConnection, framed, header, raw_connection, request

API_KEY, VERSION = 35, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """-1 is the KIP's word for "not known"."""

    local: int
    remote: int
    only_local: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedLogDir:
    error_code: int
    path: str
    total_bytes: int
    usable_bytes: int
    partitions: Mapping[tuple[str, int], Sizes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    error_code: int
    log_dirs: tuple[DescribedLogDir, ...]


def describe(address: str, *, include_remote_info: bool) -> Described:
    """As clients do: they ask for the versions first."""
    with raw_connection(address) as connection:
        connection.answers(request(ApiVersionsRequest(), 2))
        return describe_over(connection, include_remote_info=include_remote_info)


def describe_over(connection: RawConnection, *, include_remote_info: bool) -> Described:
    """All topics."""
    writer = Writer(flexible=True)
    writer.count(None)
    writer.int8(int(include_remote_info))
    writer.no_tags()
    return _read(connection.answers(framed(header(API_KEY, VERSION, flexible=True) + writer.finish())))


def _read(payload: bytes) -> Described:
    reader = Reader(payload, flexible=True)
    assert reader.int32() == CORRELATION_ID
    reader.skip_tags()
    reader.int32()  # throttle time
    described = Described(
        error_code=reader.int16(),
        log_dirs=tuple(_read_log_dir(reader) for _ in range(reader.count_not_null(smallest_element=1))),
    )
    reader.skip_tags()
    assert reader.remaining == 0
    return described


def _read_log_dir(reader: Reader) -> DescribedLogDir:
    error_code, path = reader.int16(), reader.string()
    partitions = {}
    for _ in range(reader.count_not_null(smallest_element=1)):
        topic = reader.string()
        for _ in range(reader.count_not_null(smallest_element=1)):
            partition, local = reader.int32(), reader.int64()
            reader.int64()  # offset lag
            reader.boolean()  # is future
            partitions[topic, partition] = Sizes(local=local, remote=reader.int64(), only_local=reader.int64())
            reader.skip_tags()
        reader.skip_tags()
    total_bytes, usable_bytes = reader.int64(), reader.int64()
    reader.skip_tags()
    return DescribedLogDir(
        error_code=error_code, path=path, total_bytes=total_bytes, usable_bytes=usable_bytes, partitions=partitions
    )
