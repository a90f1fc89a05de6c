"""What is odd about the input, without being wrong: named, counted, and taken in all the same.

A log dir has one device and a topic has one id, for as long as they stay the same. So of each broker the **span** in
which an identity was seen tells what happened. Two spans one after the other: the device was changed, the topic was
made anew. Two spans that overlap: an identity came back after another had taken its place. Topic ids never come back,
and nobody swaps a disk to and fro; two brokers write under one cluster id and one broker id.

Guards and collectors name devices each in their own way, so each is compared with its own kind only.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.fleet.tables import columns as c

DAYS_LOOKED_AT = 2
DEVICE_CHANGED = "device-changed"
TOPIC_RECREATED = "topic-recreated"
TWO_BROKERS_ONE_ID = "two-brokers-one-id"
_IDENTITY = "identity"


def findings(volumes: DataFrame, topics: DataFrame) -> DataFrame:
    devices = _changes(spans(volumes, c.LOG_DIR, c.DEVICE), DEVICE_CHANGED, "the device of the log dir")
    ids = _changes(spans(topics, c.TOPIC, c.TOPIC_ID), TOPIC_RECREATED, "the id of the topic")
    return devices.unionByName(ids)


def spans(rows: DataFrame, subject: str, identity: str) -> DataFrame:
    """From when to when each subject of a broker had each identity."""
    named = rows.where(F.col(identity).isNotNull())
    keys = (c.CLUSTER_ID, c.BROKER_ID, c.SOURCE, F.col(subject).alias(c.SUBJECT), F.col(identity).alias(_IDENTITY))
    return named.groupBy(*keys).agg(F.min(c.TAKEN_AT).alias(c.FIRST_SEEN), F.max(c.TAKEN_AT).alias(c.LAST_SEEN))


def _changes(found: DataFrame, changed: str, what: str) -> DataFrame:
    """A row for each identity that followed another."""
    in_time = Window.partitionBy(c.CLUSTER_ID, c.BROKER_ID, c.SOURCE, c.SUBJECT).orderBy(c.FIRST_SEEN, _IDENTITY)
    before = found.select(
        "*",
        F.lag(_IDENTITY).over(in_time).alias("before"),
        # Of all identities before, not only of the last
        F.max(c.LAST_SEEN).over(in_time.rowsBetween(Window.unboundedPreceding, -1)).alias("until"),
    ).where(F.col("before").isNotNull())
    came_back = F.col("until") > F.col(c.FIRST_SEEN)
    was = F.concat(F.lit(f"{what} was "), F.col("before"), F.lit(", then "), F.col(_IDENTITY))
    return before.select(
        F.when(came_back, F.lit(TWO_BROKERS_ONE_ID)).otherwise(F.lit(changed)).alias(c.FINDING),
        c.CLUSTER_ID,
        c.BROKER_ID,
        c.SUBJECT,
        F.when(came_back, F.concat(was, F.lit(", and the first again"))).otherwise(was).alias(c.DETAIL),
        c.FIRST_SEEN,
        c.LAST_SEEN,
    )
