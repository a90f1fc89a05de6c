"""Which tables a warehouse has, and what question each answers. Imports no Spark: ``fleet show`` lists them at once."""

from enum import StrEnum


class Table(StrEnum):
    # Bronze: what the snapshots said, appended
    VOLUMES = "volumes"
    REPLICAS = "replicas"
    TOPIC_CONFIGS = "topic_configs"
    SNAPSHOTS = "snapshots"
    NEWEST = "newest"
    QUARANTINE = "quarantine"
    THINNED = "thinned"
    # Gold: what follows from it, overwritten by each run
    FINDINGS = "findings"
    VOLUME_PRESSURE = "volume_pressure"
    TIER_OVERLAP = "tier_overlap"
    RETENTION_PRESSURE = "retention_pressure"
    RECLAIM_PLAN = "reclaim_plan"
    FORECAST = "forecast"
    FLEET_SUMMARY = "fleet_summary"
    FLEET_HISTORY = "fleet_history"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Table.VOLUMES: "every log dir of every snapshot: bytes of its volume, state, thresholds",
    Table.REPLICAS: "every replica's folder of every snapshot: sizes, offsets, percentages",
    Table.TOPIC_CONFIGS: "every topic of every snapshot: id, retention, clean-up, tiering",
    Table.SNAPSHOTS: "every accepted snapshot: when, from whom, how many rows",
    Table.NEWEST: "the newest snapshot of each broker, and the file with segments that the planner reads",
    Table.QUARANTINE: "every refused file, and why",
    Table.THINNED: "the day up to which history has been thinned; older snapshots are refused",
    Table.FINDINGS: "oddities of the input: changed devices, recreated topics, two clusters with one id",
    Table.VOLUME_PRESSURE: "how full each volume is, its state at the thresholds, growth, time to the limit",
    Table.TIER_OVERLAP: "what of a tiered topic is local, remote, and only local; uploads that stall",
    Table.RETENTION_PRESSURE: "how much of its retention each partition uses, ranked",
    Table.RECLAIM_PLAN: "what a ceiling would delete now: new log starts, bytes, ages",
    Table.FORECAST: "days until each volume is full, with an interval and the back-tested error",
    Table.FLEET_SUMMARY: "the fleet in one row per cluster",
    Table.FLEET_HISTORY: "the last fleet_summary of each day, for 400 days",
}
