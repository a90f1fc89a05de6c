"""Every metric that Brimline publishes, in one table. Prometheus text and JMX both render it.

Names of the KIPs' metrics
--------------------------
JMX: as KIP-1257 and KIP-1201 write them, with the tags in the order of Kafka's own gauges.

Prometheus: what jmx_exporter's Kafka rules make of those beans, so that one dashboard serves brokers that publish
the figures and brokers for which the guard does. The rules for gauges are ``kafka.(\\w+)<type=(.+), name=(.+)`` with
up to two more tags, named ``kafka_$1_$2_$3``, with ``lowercaseOutputName: true`` and label names untouched. Three
corners, each seen on the exporter itself:

- ``kafka.log.remote`` has a dot, which ``(\\w+)`` does not match: those rules drop its beans. The same rule for a
  domain with a dot gives ``kafka_log_remote_remotelogmanager_…``, which is the name here; deploy/jmx_exporter holds
  that rule for brokers that publish the figures themselves.
- A future log's third tag makes the greedy rules put the topic into the metric's *name*. Here it is a metric of
  its own: a copy in the making must not show up on a dashboard of live partitions.
- The rules keep the quotes that JMX needs around a log dir. Here ``logDirectory`` is the plain path.

Brimline's own metrics begin with ``brimline_``. The labels ``log_dir`` and ``device`` stand on all figures of a
volume: log dirs that share a volume show the same figures, so sum over ``max by (device)``.

Those of the gateway begin with ``brimline_gateway_``. The guard asks the gateway for them and publishes them; its
counters begin again when it is started again, and all but ``brimline_gateway_up`` are gone while it does not answer.
A fence is of a log dir or of a topic: the other label is empty, which for Prometheus is a label that is not there.
"""

from collections.abc import Mapping

from brimline.metrics.metric import Bean, Metric, MetricKind

_PARTITION = ("topic", "partition")
_VOLUME = ("log_dir", "device")
_FENCE = ("log_dir", "topic", "cause")
_REFUSED = ("topic", "partition", "client")
_REMOTE = "kafka_log_remote_remotelogmanager"


def _gauge(
    name: str,
    sentence: str,
    labels: tuple[str, ...] = (),
    *,
    unit: str = "",
    prometheus: str | None = None,
    bean: Bean | None = None,
) -> Metric:
    return Metric(
        name=name,
        kind=MetricKind.GAUGE,
        help=sentence,
        labels=labels,
        unit=unit,
        prometheus=prometheus or f"brimline_{name}",
        bean=bean,
    )


def _counter(name: str, sentence: str, labels: tuple[str, ...] = (), *, unit: str = "") -> Metric:
    return Metric(
        name=name, kind=MetricKind.COUNTER, help=sentence, labels=labels, unit=unit, prometheus=f"brimline_{name}_total"
    )


LOG_RETENTION_SIZE = _gauge(
    "log_retention_size_in_percent",
    "Size of the partition's local log in percent of retention.bytes (KIP-1257); may exceed 100; "
    "0 when unlimited, and for a tiered topic whose segments are copied.",
    _PARTITION,
    unit="percent",
    prometheus="kafka_log_log_retentionsizeinpercent",
    bean=Bean(domain="kafka.log", type="Log", name="RetentionSizeInPercent", keys=_PARTITION),
)
FUTURE_LOG_RETENTION_SIZE = _gauge(
    "future_log_retention_size_percent",
    "The same for a future log (AlterReplicaLogDirs).",
    _PARTITION,
    unit="percent",
    bean=Bean(
        domain="kafka.log",
        type="Log",
        name="RetentionSizeInPercent",
        keys=_PARTITION,
        fixed=(("is-future", "true"),),
    ),
)
REMOTE_RETENTION_SIZE = _gauge(
    "remote_retention_size_in_percent",
    "Local and remote size of a tiered partition, together, in percent of retention.bytes (KIP-1257); "
    "only on the leader; 0 when unlimited.",
    _PARTITION,
    unit="percent",
    prometheus=f"{_REMOTE}_retentionsizeinpercent",
    bean=Bean(domain="kafka.log.remote", type="RemoteLogManager", name="RetentionSizeInPercent", keys=_PARTITION),
)
LOCAL_RETENTION_SIZE = _gauge(
    "local_retention_size_in_percent",
    "Local size of a tiered partition in percent of local.retention.bytes (KIP-1257); only on the leader; "
    "0 when unlimited.",
    _PARTITION,
    unit="percent",
    prometheus=f"{_REMOTE}_localretentionsizeinpercent",
    bean=Bean(domain="kafka.log.remote", type="RemoteLogManager", name="LocalRetentionSizeInPercent", keys=_PARTITION),
)
DISK_FULL_LOG_DIRECTORY_COUNT = _gauge(
    "disk_full_log_directory_count",
    "Log dirs whose volume is over disk.max.used.percent or under disk.min.free.bytes (KIP-1201).",
    prometheus="kafka_log_logmanager_diskfulllogdirectorycount",
    bean=Bean(domain="kafka.log", type="LogManager", name="DiskFullLogDirectoryCount"),
)
LOG_DIRECTORY_DISK_FULL = _gauge(
    "log_directory_disk_full",
    "1 when the volume under this log dir is full as KIP-1201 defines it, else 0; unknown is not full.",
    ("logDirectory",),
    prometheus="kafka_log_logmanager_logdirectorydiskfull",
    bean=Bean(domain="kafka.log", type="LogManager", name="LogDirectoryDiskFull", keys=("logDirectory",)),
)

VOLUME_TOTAL = _gauge("volume_total_bytes", "Size of the volume under a log dir.", _VOLUME, unit="bytes")
VOLUME_USABLE = _gauge(
    "volume_usable_bytes",
    "Bytes the broker can still write (without blocks reserved for root).",
    _VOLUME,
    unit="bytes",
)
VOLUME_USED_PERCENT = _gauge(
    "volume_used_percent",
    "Share of the volume that is not usable; what disk.max.used.percent is compared with.",
    _VOLUME,
    unit="percent",
)
VOLUME_RESERVE = _gauge(
    "volume_reserve_bytes",
    "Usable bytes below which Produce is refused, because so much may still be written there by what cannot be refused "
    "(brimline.disk.reserve); 0 where it is off, not known, or not in force yet.",
    _VOLUME,
    unit="bytes",
)
RESERVE_PART = _gauge(
    "reserve_part_bytes",
    "What the reserve of the log dir's volume is the sum of, by what may still be written there: cleaner, passes, "
    "coordinators, moves, index-cache or metadata.",
    ("log_dir", "part"),
    unit="bytes",
)
RESERVE_PENDING = _gauge(
    "reserve_pending",
    "1 where the volume had less than its reserve when it was first seen: it is not enforced yet.",
    ("log_dir",),
)
CLEANER_HELD = _gauge(
    "cleaner_held", "1 while the broker's log cleaner is held because a disk is at its limit, else 0."
)
NOTICES = _gauge(
    "notices",
    "What the guard has to say now, by feature and weight: fine, note, warning or problem.",
    ("feature", "weight"),
)
VOLUME_INODES = _gauge(
    "volume_inodes", "Inodes of the volume; absent where the file system does not count them.", _VOLUME
)
VOLUME_INODES_USABLE = _gauge("volume_inodes_usable", "Inodes of the volume that are left.", _VOLUME)
VOLUME_INODES_LIMIT = _gauge(
    "volume_inodes_limit", "The log dir is full when fewer inodes than this are left.", _VOLUME
)
VOLUME_TO_LIMIT = _gauge(
    "volume_to_limit_bytes",
    "Bytes until the nearer of both limits; negative beyond it; +Inf when both limits are switched off.",
    _VOLUME,
    unit="bytes",
)
VOLUME_FILL_RATE = _gauge(
    "volume_fill_rate_bytes_per_second",
    "How fast usable space disappears; negative while it grows.",
    _VOLUME,
    unit="bytes_per_second",
)
VOLUME_SECONDS_TO_LIMIT = _gauge(
    "volume_to_limit_seconds",
    "Time until the nearer limit at the present fill rate; 0 beyond it; +Inf while the volume is not filling.",
    _VOLUME,
    unit="seconds",
)
VOLUME_STATE = _gauge(
    "volume_state",
    "1 for the state that the log dir is in and 0 for its other states: ok, full, offline (the broker holds it "
    "offline), or unknown, which is not full.",
    (*_VOLUME, "state"),
)
VOLUME_CHECK_AGE = _gauge(
    "volume_check_age_seconds",
    "Time since the volume last answered; it grows while a file system hangs.",
    _VOLUME,
    unit="seconds",
)
VOLUME_CHECK_DURATION = _gauge(
    "volume_check_duration_seconds", "How long the volume's last answer took.", _VOLUME, unit="seconds"
)
LIMIT_USED_PERCENT = _gauge("limit_used_percent", "disk.max.used.percent in effect; 100 is off.", unit="percent")
LIMIT_FREE_BYTES = _gauge("limit_free_bytes", "disk.min.free.bytes in effect; 0 is off.", unit="bytes")

TOPIC_BYTES = _gauge(
    "topic_bytes",
    "What a topic takes of a log dir, as Kafka counts it: the 50 largest of each log dir, and all others together as "
    '"(others)". Read from the broker at every retention check.',
    ("log_dir", "topic"),
    unit="bytes",
)
TOPIC_GROWTH = _gauge(
    "topic_growth_bytes_per_hour",
    "How much more the topic takes of the log dir than up to an hour ago, by the hour; negative while it shrinks.",
    ("log_dir", "topic"),
    unit="bytes_per_hour",
)

MOVES_INTO_FULL = _gauge(
    "moves_into_full_log_dir",
    "Partitions being moved into a full log dir (AlterReplicaLogDirs), paused or not.",
    ("log_dir",),
)
MOVES_PAUSED = _gauge(
    "moves_paused",
    "Partitions whose move into a full log dir the guard has paused.",
    ("log_dir",),
)

PEERS = _gauge(
    "peers",
    "Other brokers of the cluster by what is known of their disks: fresh, stale (the last answer still counts), silent "
    "(nothing is known) or no-volumes (before Kafka 3.3, which does not tell).",
    ("state",),
)
PEER_FULL_LOG_DIRS = _gauge(
    "peer_full_log_dirs",
    "Log dirs of another broker that are full by the limits of this guard; only brokers that have one are listed.",
    ("peer",),
)
PEER_QUESTIONS = _counter(
    "peer_questions",
    "Questions to other brokers by kind: brokers (which there are), volumes (a hundred bytes each) or details (which "
    "partitions are in a full log dir).",
    ("kind",),
)
FOLLOWER_PARTITIONS = _gauge(
    "follower_partitions_without_room",
    "Partitions led here that have a replica in a full log dir of this follower.",
    ("follower", "action"),
)
FOLLOWER_HELD_BACK = _gauge(
    "follower_partitions_held_back",
    "Those of them that the gateway holds: by not replicating them (skip) or by refusing Produce (fence, and "
    "reserve when little space is left).",
    ("follower", "action"),
)
FOLLOWER_ACTION_POSSIBLE = _gauge(
    "follower_action_possible",
    "1 if a full follower can be helped: brimline.enforcement is gateway, and the needed listeners go through it.",
)
FOLLOWER_THROTTLED = _gauge(
    "follower_partitions_throttled",
    "Partitions led here whose replicas on full disks are not in sync and are held by the leader's throttle.",
)
FOLLOWER_SHED = _gauge(
    "follower_replicas_shed",
    "Replicas that the guard removed from this follower's full disk (brimline.follower.shed), not put back.",
    ("follower",),
)
CORDONED = _gauge(
    "cordoned_log_dir",
    "1 for every cordoned log dir (no new replicas): by the guard because it is full, or by an operator.",
    ("log_dir", "by"),
)

BALLAST_BYTES = _gauge(
    "ballast_bytes",
    "Size of the reserve file that is released when the volume runs out; 0 while there is none.",
    _VOLUME,
    unit="bytes",
)
BALLAST_WANTED = _gauge("ballast_wanted_bytes", "brimline.ballast.bytes in effect; 0 is none.", unit="bytes")
BALLAST_RELEASES = _counter(
    "ballast_releases", "How often the ballast was released because the volume ran out of space.", _VOLUME
)

RECLAIM_STATE = _gauge(
    "reclaim_state",
    "1 for what is being done about the device's ceiling (details in /v1/state), 0 for everything else.",
    (*_VOLUME, "state"),
)
RECLAIM_OUTCOME = _gauge(
    "reclaim_outcome", "1 for how the last plan for the device ended, 0 for the other outcomes.", (*_VOLUME, "outcome")
)
RECLAIM_PAUSED = _gauge("reclaim_paused", "1 while reclaim is paused by hand: no ceiling is held.")
RECLAIM_CEILING = _gauge(
    "reclaim_ceiling_percent",
    "log.retention.disk.usage.percent in effect; 100 is off.",
    _VOLUME,
    unit="percent",
)
RECLAIM_EXCESS = _gauge(
    "reclaim_excess_bytes",
    "Bytes above the ceiling, less deletions in progress, as of the last plan.",
    _VOLUME,
    unit="bytes",
)
RECLAIM_GOING = _gauge(
    "reclaim_going_bytes",
    "Bytes already being deleted: by retention, a trim or a deleted replica.",
    _VOLUME,
    unit="bytes",
)
RECLAIM_TAKEN_BYTES = _gauge(
    "reclaim_taken_bytes", "Bytes that the last plan deletes, or would delete.", _VOLUME, unit="bytes"
)
RECLAIM_TAKEN_SEGMENTS = _gauge("reclaim_taken_segments", "Segments that it deletes, or would delete.", _VOLUME)
RECLAIM_MISSING = _gauge(
    "reclaim_missing_bytes",
    "Bytes above the ceiling that the last plan could not remove.",
    _VOLUME,
    unit="bytes",
)
RECLAIM_REMOVABLE = _gauge(
    "reclaim_removable_bytes", "Bytes that reclaim could remove from the device.", _VOLUME, unit="bytes"
)
RECLAIM_HUNG = _gauge(
    "reclaim_hung_bytes",
    "Bytes blocked by transactions open for more than 15 minutes; doctor names them.",
    _VOLUME,
    unit="bytes",
)
RECLAIM_FLOOR = _gauge(
    "reclaim_floor_bytes",
    "Bytes that reclaim cannot remove: active segments, protected topics, minimum retention, foreign files. A "
    "ceiling below this cannot be held.",
    _VOLUME,
    unit="bytes",
)
RECLAIM_AGE = _gauge(
    "reclaim_age_seconds",
    "Time since the last plan for the device: every interval above the ceiling, less often below it.",
    _VOLUME,
    unit="seconds",
)
RECLAIM_OPEN_TRIMS = _gauge(
    "reclaim_open_trims",
    "Trims of cycles in progress: not sent yet (unsent), or waiting for the broker to delete the files (waiting).",
    (*_VOLUME, "phase"),
)
RECLAIM_CYCLES = _counter("reclaim_cycles", "Cycles started for the device.", _VOLUME)
RECLAIM_PLANNED_BYTES = _counter(
    "reclaim_planned_bytes", "Bytes that these cycles planned to delete.", _VOLUME, unit="bytes"
)
RECLAIM_PLANNED_SEGMENTS = _counter(
    "reclaim_planned_segments", "Segments that these cycles planned to delete.", _VOLUME
)
RECLAIM_FREED_BYTES = _counter("reclaim_freed_bytes", "Bytes freed on disk by finished cycles.", _VOLUME, unit="bytes")
RECLAIM_FREED_SEGMENTS = _counter("reclaim_freed_segments", "Segments deleted by finished cycles.", _VOLUME)
RECLAIM_TRIMS = _counter(
    "reclaim_trims",
    "Trims of finished cycles by result: done (files deleted), abandoned (the ledger says why) or withdrawn (no "
    "longer needed).",
    (*_VOLUME, "end"),
)
RECLAIM_ERRORS = _counter(
    "reclaim_errors",
    "How often the ceiling could not be held, by reason: not-recorded, broker-silent or cannot-lock.",
    ("kind",),
)
LOG_DIR_BYTES = _gauge(
    "log_dir_bytes",
    "Disk space that the files of one kind take in a log dir, in allocated blocks, by the last scan.",
    ("log_dir", "kind"),
    unit="bytes",
)
PARTITIONS = _gauge("partitions", "Partition logs found in a log dir by the last scan.", ("log_dir",))
SCAN_DURATION = _gauge(
    "scan_duration_seconds", "How long the last scan of a log dir took.", ("log_dir",), unit="seconds"
)
SCAN_AGE = _gauge("scan_age_seconds", "Time since the last whole scan of a log dir.", ("log_dir",), unit="seconds")
LANDING_SNAPSHOTS = _counter(
    "landing_snapshots",
    "Snapshots for the fleet by result: sent, dropped from the full spool, or failed.",
    ("outcome",),
)
LANDING_AGE = _gauge(
    "landing_age_seconds",
    "Time since a snapshot last reached the landing place; absent before the first.",
    unit="seconds",
)
LANDING_SPOOL_SNAPSHOTS = _gauge("landing_spool_snapshots", "Snapshots that wait in the state dir to be sent.")
LANDING_SPOOL_BYTES = _gauge("landing_spool_bytes", "Size of the snapshots that wait in the state dir.", unit="bytes")
LANDING_SNAPSHOT_BYTES = _gauge("landing_snapshot_bytes", "Size of the last snapshot that was made.", unit="bytes")
LANDING_DURATION = _gauge(
    "landing_duration_seconds", "How long the last snapshot took, from the survey to its place.", unit="seconds"
)
RETENTION_AGE = _gauge(
    "retention_percent_age_seconds",
    "Time since the retention percentages were computed: of the plain logs (log) or of the tiered ones (remote).",
    ("tier",),
    unit="seconds",
)

BROKER_CONNECTED = _gauge("broker_connected", "1 while the guard's admin connection to its broker works, else 0.")
RELOADS = _counter("config_reloads", "SIGHUPs by result: applied, unchanged or refused.", ("outcome",))
ERRORS = _counter("errors", "Failed observations by kind, such as timed-out or not-authorized.", ("kind",))
JMX_BRIDGE_UP = _gauge("jmx_bridge_up", "1 while the JVM that publishes the JMX beans serves them, else 0.")
JMX_BRIDGE_RESTARTS = _counter("jmx_bridge_restarts", "How often that JVM ended and was restarted.")
JMX_BEANS = _gauge("jmx_beans", "JMX beans that are registered now.")
GUARD_INFO = _gauge(
    "guard_info",
    "Always 1; the labels tell the guard's version, its broker and brimline.enforcement.",
    ("version", "broker_id", "enforcement"),
)
START_TIME = _gauge("start_time_seconds", "When the guard started, in Unix time.", unit="seconds")

GATEWAY_UP = _gauge("gateway_up", "1 while the gateway beside this guard answers it, else 0.")
REPLICATION_THROUGH_GATEWAY = _gauge(
    "replication_through_gateway",
    "1 where replication goes through the gateway: while the gateway is down, no follower fetches from this broker.",
)
INTERCEPTION = _gauge(
    "interception",
    "1 for the current phase of interception, else 0: idle (clients connect to the broker directly), arming, armed "
    "(they go through the gateway) or draining.",
    ("phase",),
)
INTERCEPTION_FAILED = _gauge("interception_failed", "1 while clients cannot be intercepted, else 0.")
INTERCEPTION_ARMINGS = _counter("interception_armings", "How often clients were sent to the gateway.")
INTERCEPTION_CUT = _counter("interception_connections_cut", "Connections closed by interception.")
GATEWAY_START_TIME = _gauge("gateway_start_time_seconds", "When the gateway started, in Unix time.", unit="seconds")
GATEWAY_CONNECTIONS = _gauge(
    "gateway_connections", "Client connections that are open now, by the listener that they came to.", ("listener",)
)
GATEWAY_ACCEPTED = _counter("gateway_connections_accepted", "Client connections that the gateway accepted.")
GATEWAY_CLOSED = _counter(
    "gateway_connections_closed", "Client connections that ended, by the reason why.", ("reason",)
)
GATEWAY_BYTES = _counter(
    "gateway_forwarded_bytes", "Bytes passed on, by direction: to_broker or to_clients.", ("direction",), unit="bytes"
)
GATEWAY_REQUESTS = _counter("gateway_requests", "Requests of clients, of every kind.")
GATEWAY_PRODUCE_REQUESTS = _counter("gateway_produce_requests", "Produce requests among them.")
GATEWAY_FENCE = _gauge(
    "gateway_fence",
    "1 for every fence in force, by cause: full (seen by the gateway), guard (decided by the guard) or manual (by "
    "hand).",
    _FENCE,
)
GATEWAY_FENCED_PARTITIONS = _gauge(
    "gateway_fenced_partitions", "Partitions on this broker that a fence in force covers.", _FENCE
)
GATEWAY_REFUSED_BATCHES = _counter(
    "gateway_refused_batches",
    "Record batches that the gateway refused, by client.id and the client's software; beyond a thousand rows the topic "
    "is (other).",
    _REFUSED,
)
GATEWAY_REFUSED_BYTES = _counter(
    "gateway_refused_bytes", "Bytes of the refused record batches.", _REFUSED, unit="bytes"
)
GATEWAY_WOULD_REFUSE_BATCHES = _counter(
    "gateway_would_have_refused_batches",
    "Record batches that went through and would have been refused: brimline.enforcement is observe.",
    _REFUSED,
)
GATEWAY_WOULD_REFUSE_BYTES = _counter(
    "gateway_would_have_refused_bytes",
    "Bytes of the record batches that would have been refused.",
    _REFUSED,
    unit="bytes",
)
GATEWAY_REFUSED_COMMITS = _counter(
    "gateway_refused_commits", "OffsetCommit requests that were refused because a volume is past its line."
)
GATEWAY_REFUSED_COMMIT_BYTES = _counter("gateway_refused_commit_bytes", "Bytes of these requests.", unit="bytes")
GATEWAY_SEQUENCES = _gauge(
    "gateway_sequences", "Remembered sequences of idempotent producers, so that no refused batch is overtaken."
)
GATEWAY_SEQUENCES_EVICTED = _counter(
    "gateway_sequences_evicted", "Sequences forgotten early because the memory for them is full."
)
GATEWAY_DESCRIBE_FAILURES = _counter(
    "gateway_describe_failures", "DescribeLogDirs answers that could not be completed."
)
GATEWAY_DESCRIBE_RESTARTS = _counter(
    "gateway_describe_worker_restarts", "How often the process that completes them ended and was restarted."
)
GATEWAY_ADDED_LATENCY = Metric(
    name="gateway_added_latency_seconds",
    kind=MetricKind.HISTOGRAM,
    help="How long bytes stayed in the gateway, in either direction.",
    unit="seconds",
    prometheus="brimline_gateway_added_latency_seconds",
)
GATEWAY_FETCHES_REWRITTEN = _counter(
    "gateway_fetches_rewritten", "Fetches of followers without room from which the gateway removed partitions."
)
GATEWAY_PARTITIONS_SKIPPED = _counter(
    "gateway_partitions_skipped", "How often a partition was left out of a fetch of a follower without room."
)
GATEWAY_WITHHELD_BYTES = _counter(
    "gateway_withheld_bytes", "Bytes of records removed from answers to followers without room.", unit="bytes"
)
GATEWAY_SESSIONS_RESTARTED = _counter(
    "gateway_fetch_sessions_restarted", "Fetch sessions of followers restarted to skip something."
)
GATEWAY_FETCHES_NOT_UNDERSTOOD = _counter(
    "gateway_fetches_not_understood", "Answers to fetches that could not be read and passed unchanged."
)
GATEWAY_FETCHES_PASSED_UNREAD = _counter(
    "gateway_fetches_passed_unread",
    "Follower fetches that passed although something is skipped: of an unknown version, or unreadable.",
)

CATALOGUE: tuple[Metric, ...] = tuple(each for each in tuple(globals().values()) if isinstance(each, Metric))
"""In the order in which they are declared above."""
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in CATALOGUE}
