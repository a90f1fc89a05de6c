"""What the jobs of a round read, each table and each choice once: five jobs ask for the newest snapshots alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.manifest import Row, newest
from brimline.fleet.tables.warehouse import Wanted, Warehouse, together


@dataclass(frozen=True, kw_only=True)
class Inputs:
    spark: SparkSession
    warehouse: Warehouse
    now: datetime
    """The time that the tables speak of."""
    is_small: bool = True
    """Whether all rows of a table may pass through this process."""
    _read: dict[tuple[str, ...], DataFrame] = field(default_factory=dict)
    _kept: list[DataFrame] = field(default_factory=list)

    def all(self, table: Table) -> DataFrame:
        return self._once((table.value,), lambda: self.warehouse.read(self.spark, table))

    def since(self, table: Table, days: int) -> DataFrame:
        """The rows of the last days. The day first, because it chooses files; then the moment."""
        since = self.now.astimezone(UTC) - timedelta(days=days)

        def read() -> DataFrame:
            rows = self.warehouse.read(self.spark, table, Wanted(since=since.date()))
            return rows.where(F.col(c.TAKEN_AT) >= F.lit(since))

        return self._once((table.value, "since", str(days)), read)

    def of_newest(self, table: Table) -> DataFrame:
        """The rows of each broker's newest snapshot."""
        return self._once((table.value, "newest"), lambda: self.warehouse.read(self.spark, table, self._newest))

    def kept(self, rows: DataFrame) -> DataFrame:
        """The same rows, computed once although they are used several times."""
        if self.is_small:
            found = rows.toArrow()
            return together(self.spark.createDataFrame(found, rows.schema), len(found))
        self._kept.append(rows.persist())
        return self._kept[-1]

    def forget(self) -> None:
        """Only what is ours: others may use the session too."""
        while self._kept:
            self._kept.pop().unpersist()

    @cached_property
    def newest(self) -> Sequence[Row]:
        """Of each broker."""
        return newest(self.warehouse.place)

    @cached_property
    def _newest(self) -> Wanted:
        moments = {str(row[c.SNAPSHOT_ID]): row[c.TAKEN_AT] for row in self.newest}
        return Wanted.of({name: moment for name, moment in moments.items() if isinstance(moment, datetime)})

    def _once(self, name: tuple[str, ...], read: Callable[[], DataFrame]) -> DataFrame:
        if name not in self._read:
            self._read[name] = read()
        return self._read[name]
