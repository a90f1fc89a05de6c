"""Whether the tables that answer still stand: a round in which nothing landed leaves them as they are.

Every commit of such a table says what it was made from: the versions of the tables of facts, and the time that it
speaks of. It stands while the facts are the same, no broker has become silent since, and for an hour at most, for the
windows of history move on. ``age_seconds`` and the like are of the time that the table speaks of.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from brimline import __version__
from brimline.fleet.jobs.inputs import Inputs
from brimline.fleet.jobs.moments import STALE_AFTER_SECONDS
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.schemas import BRONZE
from brimline.fleet.tables.warehouse import Warehouse

_FACTS, _NOW = "brimline.facts", "brimline.now"
_AT_MOST = timedelta(hours=1)


def made_from(inputs: Inputs) -> dict[str, str]:
    """What a commit says."""
    return {_FACTS: _facts(inputs.warehouse), _NOW: inputs.now.isoformat()}


def stand(inputs: Inputs, tables: Iterable[Table]) -> bool:
    facts = _facts(inputs.warehouse)
    return all(_stands(inputs, inputs.warehouse.told(table), facts) for table in tables)


def _stands(inputs: Inputs, told: Mapping[str, object], facts: str) -> bool:
    if told.get(_FACTS) != facts:
        return False
    made_at = datetime.fromisoformat(str(told[_NOW]))
    if not timedelta(0) <= inputs.now - made_at < _AT_MOST:
        return False
    heard = {row[name] for row in inputs.newest for name in (c.TAKEN_AT, c.SEGMENTS_TAKEN_AT)}
    silent_at = [at + timedelta(seconds=STALE_AFTER_SECONDS) for at in heard if isinstance(at, datetime)]
    # A second on either side: tables count whole ones
    return not any(made_at - timedelta(seconds=1) <= at <= inputs.now + timedelta(seconds=1) for at in silent_at)


def _facts(warehouse: Warehouse) -> str:
    found = {table: warehouse.opened(table) for table in BRONZE}
    versions = [f"{table.value} {each.version()}" for table, each in found.items() if each is not None]
    return ", ".join([__version__, *versions])
