"""A look at a table without a JVM: deltalake's own query engine reads what Spark wrote, deletion vectors included.

Nothing of Spark, pyarrow or numpy is imported: a look takes as long as Python takes to start, and a little.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from brimline.fleet.session.errors import FleetError, said_by_store
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.landing_paths import for_delta


class NoTable(FleetError):
    """It was never written."""


Value = object
_NAME = "shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLook:
    """Which rows of a table, and in which order."""

    columns: Sequence[str] = ()
    """All of them when empty."""
    equal: Mapping[str, str | int] = field(default_factory=dict)
    sort: Sequence[tuple[str, bool]] = ()
    """Columns, each with whether it descends. Unknown comes last."""
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    columns: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]
    total: int
    """Of the rows that were asked for, without the limit."""


def look_at(warehouse: str, table: Table, look: TableLook) -> Shown:
    found = _opened(warehouse, table)
    names = tuple(each.name for each in found.schema().fields)
    for name in (*look.columns, *look.equal, *(name for name, _ in look.sort)):
        if name not in names:
            raise FleetError(f"the table {table.value} has no column {name}: it has {', '.join(names)}")
    columns = tuple(look.columns) or names
    where = _where(look.equal)
    engine = QueryBuilder().register(_NAME, found)
    try:
        limit = "" if look.limit is None else f" LIMIT {look.limit:d}"
        chosen = ", ".join(_quoted(name) for name in columns)
        rows = engine.execute(f"SELECT {chosen} FROM {_NAME}{where}{_order(look.sort)}{limit}").read_all()
        found_rows = list(zip(*(rows.column(place).to_pylist() for place in range(len(columns))), strict=True))
        total = len(found_rows)
        if total == look.limit:  # there may be more
            counted = engine.execute(f"SELECT count(*) FROM {_NAME}{where}").read_all()
            total = int(counted.column(0).to_pylist()[0])
    except DeltaError as error:
        raise FleetError(f"the table {table.value} cannot be read: {error}") from error
    return Shown(columns=columns, rows=found_rows, total=total)


def version_of(warehouse: str, table: Table) -> int | None:
    """``None``: it was never written. Each run that has something new writes a later one."""
    try:
        return _opened(warehouse, table).version()
    except NoTable:
        return None


def tables_in(warehouse: str) -> list[tuple[Table, int]]:
    """The tables that are there, with their rows. Raises ``FleetError`` where there is none at all."""
    found = []
    for table in Table:
        try:
            found.append((table, _opened(warehouse, table).count()))
        except NoTable:
            continue
    if not found:
        raise FleetError(f"no table in {warehouse}: give the place that 'brimline fleet run' writes to")
    return found


def _opened(warehouse: str, table: Table) -> DeltaTable:
    try:
        return DeltaTable(f"{for_delta(warehouse)}/{table.value}")
    except TableNotFoundError:
        raise NoTable(
            f"no table {table.value} in {warehouse} yet: 'brimline fleet run' writes it when there is data"
        ) from None
    except (DeltaError, OSError) as error:
        why = said_by_store(warehouse, error)
        raise FleetError(f"the table {table.value} in {warehouse} cannot be opened: {why}") from error


def _where(equal: Mapping[str, str | int]) -> str:
    terms = [f"{_quoted(name)} = {_literal(value)}" for name, value in equal.items()]
    return f" WHERE {' AND '.join(terms)}" if terms else ""


def _order(sort: Sequence[tuple[str, bool]]) -> str:
    terms = [f"{_quoted(name)} {'DESC' if descends else 'ASC'} NULLS LAST" for name, descends in sort]
    return f" ORDER BY {', '.join(terms)}" if terms else ""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
