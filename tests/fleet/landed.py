"""Landed files for tests: snapshots of a small made-up fleet, and what may be wrong with one."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from brimline.fleet.synth.broker import MadeUp, SynthBroker
from brimline.fleet.synth.spec import FleetSpec
from brimline.landing.header import Header
from brimline.landing.writer import encode

NOW = datetime.now(UTC).replace(microsecond=0)
"""The ingest looks at the clock: what is not of the future must be before it."""
ROUND_NOW = datetime(2025, 1, 31, 12, tzinfo=UTC)
"""What several processes that are compared take for now."""


def broker(number: int = 0, *, ago: timedelta = timedelta(minutes=5), now: datetime = NOW) -> MadeUp:
    """The newest snapshot of a broker, with segments."""
    until = int((now - ago).timestamp() * 1000)
    spec = FleetSpec(until_ms=until, seed=1, clusters=1, brokers=3, replicas=12, segments=4, days=0)
    return SynthBroker(spec, 0, number).newest()


def with_header(made: MadeUp, **changed: object) -> MadeUp:
    return MadeUp(header=replace(made.header, **changed), tables=made.tables)  # type: ignore[arg-type] # any field


def later(made: MadeUp, minutes: float) -> MadeUp:
    """The same facts, looked at again."""
    taken_at_ms = made.header.taken_at_ms + int(minutes * 60_000)
    return with_header(made, taken_at_ms=taken_at_ms, snapshot_id=f"{made.header.snapshot_id[:16]}{taken_at_ms:x}")


def with_column(made: MadeUp, section: str, name: str, values: pa.Array) -> MadeUp:
    table = made.tables[section]
    changed = table.set_column(table.column_names.index(name), table.schema.field(name), values)
    return MadeUp(header=made.header, tables={**made.tables, section: changed})


def land(place: Path, made: MadeUp, name: str | None = None) -> Path:
    return put(place, name or made.header.name, encode(made.header, made.tables))


def put(place: Path, name: str, data: bytes) -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def name_beside(header: Header, name: str) -> str:
    return str(Path(header.name).with_name(name))


def rows_in(tables: Mapping[str, pa.Table]) -> dict[str, int]:
    return {name: len(table) for name, table in tables.items()}
