"""How old the word of a broker is, and how much of what it said before is enough."""

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.fleet.tables import columns as c

STALE_AFTER_SECONDS = 15 * 60
"""Three times the guard's five minutes: two snapshots missing are a sign, one is not."""
_OF_BROKER = (c.CLUSTER_ID, c.BROKER_ID)
_OF_SNAPSHOT = (c.TAKEN_ON, c.CLUSTER_ID, c.BROKER_ID, c.SNAPSHOT_ID)


def sampled(snapshots: DataFrame, latest: int) -> DataFrame:
    """The last snapshot of each broker in every hour, and the ``latest`` ones: enough of a history for any rate."""
    newest_first = (F.col(c.TAKEN_AT).desc(), F.col(c.SNAPSHOT_ID).desc())
    by_broker = Window.partitionBy(*_OF_BROKER).orderBy(*newest_first)
    by_hour = Window.partitionBy(*_OF_BROKER, F.date_trunc("hour", c.TAKEN_AT)).orderBy(*newest_first)
    is_chosen = (F.col("in_hour") == 1) | (F.col("in_all") <= latest)
    numbered = snapshots.withColumns(
        {"in_all": F.row_number().over(by_broker), "in_hour": F.row_number().over(by_hour)}
    )
    return numbered.where(is_chosen).select(*snapshots.columns)


def of_snapshots(rows: DataFrame, snapshots: DataFrame) -> DataFrame:
    """The rows of these snapshots; the day is a key too, so that other days' files are not read."""
    chosen = F.broadcast(snapshots.select(*_OF_SNAPSHOT))
    return rows.join(chosen, on=list(_OF_SNAPSHOT), how="left_semi")


def age_seconds(now: datetime) -> Column:
    """Of a snapshot; one from a moment in the future, within what is tolerated, is of now."""
    return F.greatest(F.unix_seconds(F.lit(now)) - F.unix_seconds(c.TAKEN_AT), F.lit(0))


def is_stale(now: datetime) -> Column:
    return age_seconds(now) > STALE_AFTER_SECONDS
