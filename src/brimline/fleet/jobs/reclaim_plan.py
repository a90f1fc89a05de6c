"""KIP-61 for a fleet: what every guard would trim now, and what comes back on all the other replicas.

**The rule.** Every broker's plan is the plan of its own guard, made from its newest snapshot as if the others did
nothing: that is how guards work, each from what it sees. A trim moves the log start of the whole partition. So, when
all of them act at once on the same facts:

- ``others_gain_bytes``: what this row's trim frees on the other brokers;
- ``peer_log_start_offset``, ``peer_freed_bytes``: how far the others' trims reach on this replica, and what they free
  of it, whether its own guard trims it or not;
- ``freed_bytes``: what comes back here in all. Both are runs from the head of one log, so this is the larger one;
- ``taken_by_peer_too_bytes``: the smaller one: what this broker's plan need not have taken, since a peer does it.

The sum of ``freed_bytes`` over a cluster is what its disks get back; the sum of ``taken_bytes`` is not.
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.fleet.jobs.moments import is_stale
from brimline.fleet.planner.gains import gain_rows
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.gold_schemas import OWN_PLAN, PEER_GAINS
from brimline.model.scan import FolderKind

_PARTITION = [c.CLUSTER_ID, c.TOPIC_ID, c.PARTITION]
_REPLICA = [c.CLUSTER_ID, c.BROKER_ID, c.TOPIC_ID, c.PARTITION]
_PLACE = [c.LOG_DIR, c.TOPIC]
_DEVICE = [c.CLUSTER_ID, c.BROKER_ID, c.DEVICE_LOG_DIRS]
"""Not by name: a log dir that cannot be read is a device of its own, under the name of the one that it was on."""
_OF_DEVICE = OWN_PLAN.names[: OWN_PLAN.names.index(c.LOG_DIR)]
_OF_TRIM = OWN_PLAN.names[OWN_PLAN.names.index(c.FROM_OFFSET) :]


def reclaim_plan(own: DataFrame, gains: DataFrame, now: datetime) -> DataFrame:
    """``own``: what each guard would do (``OWN_PLAN``); ``gains``: what that frees elsewhere (``PEER_GAINS``)."""
    devices = own.select(*_OF_DEVICE).dropDuplicates(_DEVICE)
    trims = own.where(_is_trim()).select(*_REPLICA, *_PLACE, *_OF_TRIM)
    replicas = _merged(trims, gained_from_peers(gains))
    replicas = replicas.join(gained_by_others(gains), on=_REPLICA, how="left")
    rows = devices.join(_on_devices(replicas, devices), on=_DEVICE, how="left")
    taken, by_peer = F.coalesce(c.TAKEN_BYTES, F.lit(0)), F.coalesce(c.PEER_FREED_BYTES, F.lit(0))
    is_replica = F.col(c.TOPIC).isNotNull()
    return rows.withColumns(
        {
            c.FREED_BYTES: F.when(is_replica, F.greatest(taken, by_peer)),
            c.TAKEN_BY_PEER_TOO_BYTES: F.when(is_replica, F.least(taken, by_peer)),
            c.IS_STALE: is_stale(now),
        }
    )


def gains_on_peers(own: DataFrame, replicas: DataFrame, files: DataFrame) -> DataFrame:
    """Each trim on each other replica of its partition: ``PEER_GAINS``.

    ``replicas``: of the snapshots in ``files`` (cluster, broker, path). Only the trims are moved between tasks; what
    they free is worked out beside the segments, one broker's file at a time.
    """
    trims = own.where(_is_trim()).select(*_PARTITION, F.col(c.BROKER_ID).alias(c.TRIMMED_BY), c.NEW_LOG_START_OFFSET)
    others = replicas.where(F.col(c.KIND) == int(FolderKind.CURRENT)).select(*_REPLICA, *_PLACE)
    asked = others.join(trims, on=_PARTITION, how="inner").where(F.col(c.BROKER_ID) != F.col(c.TRIMMED_BY))
    asked = asked.join(F.broadcast(files), on=[c.CLUSTER_ID, c.BROKER_ID], how="inner")
    order = [name for name in PEER_GAINS.names if name in asked.columns]
    return asked.select(c.PATH, *order).groupBy(c.PATH).applyInArrow(gain_rows, PEER_GAINS)


def gained_from_peers(gains: DataFrame) -> DataFrame:
    """Of each replica: how far the furthest trim of another broker reaches, and what it frees."""
    return gains.groupBy(*_REPLICA).agg(
        *(F.first(name).alias(name) for name in _PLACE),
        F.max(c.NEW_LOG_START_OFFSET).alias(c.PEER_LOG_START_OFFSET),
        F.max(c.GAINED_BYTES).alias(c.PEER_FREED_BYTES),
    )


def gained_by_others(gains: DataFrame) -> DataFrame:
    """Of each trim: how many other replicas there are, and bytes it frees on them; null where one is unknown."""
    all_known = F.count(c.GAINED_BYTES) == F.count("*")
    by_trim = gains.groupBy(c.CLUSTER_ID, c.TRIMMED_BY, c.TOPIC_ID, c.PARTITION).agg(
        F.count("*").alias(c.OTHER_REPLICAS),
        F.when(all_known, F.sum(c.GAINED_BYTES)).alias(c.OTHERS_GAIN_BYTES),
    )
    return by_trim.withColumnRenamed(c.TRIMMED_BY, c.BROKER_ID)


def _on_devices(replicas: DataFrame, devices: DataFrame) -> DataFrame:
    """Each replica with its device's log dirs, by the log dir that it is in."""
    log_dirs = devices.select(*_DEVICE, F.explode(c.DEVICE_LOG_DIRS).alias(c.LOG_DIR))
    return replicas.join(log_dirs, on=[c.CLUSTER_ID, c.BROKER_ID, c.LOG_DIR], how="inner")


def _merged(trims: DataFrame, peers: DataFrame) -> DataFrame:
    """Replicas that are trimmed by their own guard, by another, or by both: a row each."""
    other = peers.withColumnsRenamed({name: f"peer_{name}" for name in _PLACE})
    joined = trims.join(other, on=_REPLICA, how="full_outer")
    places = {name: F.coalesce(name, f"peer_{name}") for name in _PLACE}
    return joined.withColumns(places).drop(*(f"peer_{name}" for name in _PLACE))


def _is_trim() -> Column:
    return F.col(c.TAKEN_SEGMENTS).isNotNull()
