"""Every key that the guard and the gateway read from a broker's properties file, in one table.

The KIPs' keys stand under the KIPs' names, with the KIPs' types, ranges and defaults; stock Kafka ignores keys it does
not know, so they may stand in the broker's own file. Brimline's own keys begin with ``brimline.``. Documentation,
validation, ``--check`` and the reload all read this table; a key that is not in it does not exist.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

Value: TypeAlias = int | bool | str

LARGEST_LONG = 2**63 - 1
LARGEST_INT = 2**31 - 1


class KeyKind(Enum):
    """Kafka's names of types."""

    INT = "int"
    LONG = "long"
    BOOLEAN = "boolean"
    CHOICE = "string"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """``reloadable``: SIGHUP is enough. ``origin``: whose name it is. ``names``: other spellings of a choice."""

    name: str
    kind: KeyKind
    default: Value
    sentence: str
    low: int = 0
    high: int = LARGEST_LONG
    choices: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    reloadable: bool = True
    origin: str = "Brimline"
    kip_61: Value | None = None
    """What counts instead of the default under ``brimline.reclaim.policy=kip-61``."""

    def default_under(self, policy: str) -> Value:
        return self.kip_61 if policy == KIP_61 and self.kip_61 is not None else self.default

    @property
    def allowed(self) -> str:
        """What may be written, in words."""
        if self.kind is KeyKind.BOOLEAN:
            return "true or false"
        if self.kind is KeyKind.CHOICE:
            return ", ".join((*self.choices, *self.names))
        if self.kind is KeyKind.TEXT:
            return "any text"
        top = f" to {self.high}" if self.high < LARGEST_INT else " up"
        return f"a whole number from {self.low}{top}"

    def parse(self, text: str) -> Value:
        """The value, or ``ValueError`` without words: the caller knows the place and has ``allowed``."""
        word = text.strip()
        if self.kind is KeyKind.TEXT:
            return word
        if self.kind is KeyKind.CHOICE:
            return self.names.get(word.upper()) or _one_of(word.lower(), self.choices)
        if self.kind is KeyKind.BOOLEAN:
            return _one_of(word.lower(), ("false", "true")) == "true"
        digits = word.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdigit() and self.low <= int(word) <= self.high):
            raise ValueError
        return int(word)


def _one_of(word: str, choices: Sequence[str]) -> str:
    if word not in choices:
        raise ValueError
    return word


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """A family of keys whose names are not ours: what follows the prefix is passed on."""

    name: str
    sentence: str


OBSERVE, GATEWAY = "observe", "gateway"
PLAN, APPLY = "plan", "apply"
OFF, ON, AUTO = "off", "on", "auto"
TPROXY = "tproxy"
OPEN, CLOSED = "open", "closed"
CAREFUL, KIP_61 = "careful", "kip-61"
SHARED, OWN = "shared", "own"

CHECK_INTERVAL = Key(
    name="disk.usage.check.interval.ms",
    kind=KeyKind.LONG,
    default=60_000,
    low=1,
    origin="KIP-1201",
    sentence="How often the disk usage of every log dir is checked; near a limit the guard looks sooner.",
)
MAX_USED_PERCENT = Key(
    name="disk.max.used.percent",
    kind=KeyKind.INT,
    default=99,
    low=10,
    high=100,
    origin="KIP-1201",
    sentence="A log dir is full when more than this percentage of its volume is used; 100 switches the limit off.",
)
MIN_FREE_BYTES = Key(
    name="disk.min.free.bytes",
    kind=KeyKind.LONG,
    default=1 << 30,
    origin="KIP-1201",
    sentence="A log dir is full when fewer bytes than this are usable on its volume; 0 switches the limit off.",
)
FREE_LIMIT_BYTES = Key(
    name="disk.free.limit.bytes",
    kind=KeyKind.LONG,
    default=1 << 30,
    origin="KIP-1201",
    sentence="The KIP's second spelling of disk.min.free.bytes: accepted with a warning.",
)
RETENTION_PERCENT = Key(
    name="log.retention.disk.usage.percent",
    kind=KeyKind.INT,
    default=100,
    high=100,
    origin="KIP-61",
    sentence="The ceiling of used space per device above which the oldest segments go first; 100 switches it off.",
)
RECLAIM_MODE = Key(
    name="brimline.reclaim.mode",
    kind=KeyKind.CHOICE,
    default=APPLY,
    choices=(PLAN, APPLY),
    sentence=(
        "apply: the guard deletes what the ceiling requires; plan: it only reports it. No effect without a ceiling "
        "(log.retention.disk.usage.percent of 100)."
    ),
)
RECLAIM_POLICY = Key(
    name="brimline.reclaim.policy",
    kind=KeyKind.CHOICE,
    default=CAREFUL,
    choices=(CAREFUL, KIP_61),
    sentence=(
        "Defaults of the reclaim keys that are not set. careful: with brakes; kip-61: as in the KIP, without "
        "brakes. docs/kips.md lists both."
    ),
)
RECLAIM_INTERVAL = Key(
    name="brimline.reclaim.interval.ms",
    kind=KeyKind.LONG,
    default=60_000,
    low=1000,
    sentence="How often every device with a ceiling is checked.",
)
RECLAIM_MIN_RETENTION_MS = Key(
    name="brimline.reclaim.min.retention.ms",
    kind=KeyKind.LONG,
    default=24 * 3_600_000,
    kip_61=0,
    sentence=(
        "Segments whose newest record is younger than this are not reclaimed; 0: no minimum. Without a gateway that "
        "refuses writes it is overridden, as far as needed, when the disk is down to disk.min.free.bytes."
    ),
)
RECLAIM_MIN_RETENTION_BYTES = Key(
    name="brimline.reclaim.min.retention.bytes",
    kind=KeyKind.LONG,
    default=0,
    sentence="Reclaim keeps at least this much of every partition, counted like retention.bytes.",
)
RECLAIM_MAX_BYTES = Key(
    name="brimline.reclaim.max.bytes.per.cycle",
    kind=KeyKind.LONG,
    default=-1,
    low=-1,
    sentence="The most that one cycle deletes from a device; -1: no limit.",
)
RECLAIM_MAX_PERCENT = Key(
    name="brimline.reclaim.max.percent.per.cycle",
    kind=KeyKind.INT,
    default=5,
    kip_61=-1,
    low=-1,
    high=100,
    sentence=(
        "The same in percent of the volume, but at least one segment; the smaller of both applies; -1: no limit. "
        "Without a gateway that refuses writes it is overridden like brimline.reclaim.min.retention.ms."
    ),
)
RECLAIM_PROTECTED = Key(
    name="brimline.reclaim.protected.topics",
    kind=KeyKind.TEXT,
    default="",
    sentence=(
        "Topics that reclaim never touches: regular expressions for whole names, comma-separated. Internal, tiered "
        "and compacted topics are never touched (compact,delete: see brimline.reclaim.protect.compacted)."
    ),
)
RECLAIM_COMPACTED = Key(
    name="brimline.reclaim.protect.compacted",
    kind=KeyKind.BOOLEAN,
    default=True,
    kip_61=False,
    sentence=(
        "Whether reclaim leaves alone topics with cleanup.policy=compact,delete, such as windowed changelogs of Kafka "
        "Streams. Topics that are only compacted are never touched."
    ),
)
RECLAIM_FOR_EVER = Key(
    name="brimline.reclaim.protect.forever",
    kind=KeyKind.BOOLEAN,
    default=True,
    kip_61=False,
    sentence="Whether reclaim leaves alone topics that set retention.ms=-1 themselves, and no retention.bytes.",
)
RECLAIM_TRANSACTIONS = Key(
    name="brimline.reclaim.protect.transactions",
    kind=KeyKind.BOOLEAN,
    default=True,
    kip_61=False,
    sentence=(
        "Whether reclaim stops at the last stable offset, so that records of an open transaction are kept; else at "
        "the high watermark."
    ),
)
RECLAIM_BRAKES = Key(
    name="brimline.reclaim.brakes",
    kind=KeyKind.CHOICE,
    default=SHARED,
    choices=(SHARED, OWN),
    kip_61=OWN,
    sentence=(
        "shared: brakes that other brokers' guards shared through Kafka before this version, and were found at the "
        "upgrade, go on to count here. own: only this file counts. Nothing is shared through Kafka any more."
    ),
)
RECLAIM_CURABLE = Key(
    name="brimline.reclaim.only.curable",
    kind=KeyKind.BOOLEAN,
    default=True,
    kip_61=False,
    sentence=(
        "true: where what is not Kafka's is above the ceiling by itself, only enough is deleted to stay below the "
        "fence (disk.max.used.percent, disk.min.free.bytes). false: everything removable is deleted."
    ),
)
RECLAIM_FOREIGN_PERCENT = Key(
    name="brimline.reclaim.foreign.jump.percent",
    kind=KeyKind.INT,
    default=5,
    kip_61=-1,
    low=-1,
    high=100,
    sentence=(
        "When files that are not Kafka's have grown by more than this percentage of a volume since the last check, "
        "reclaim waits (brimline.reclaim.hold.ms), as long as the disk is below its fence; -1: never."
    ),
)
RECLAIM_HOLD_PERCENT = Key(
    name="brimline.reclaim.hold.percent",
    kind=KeyKind.INT,
    default=10,
    kip_61=-1,
    low=-1,
    high=100,
    sentence=(
        "When changed settings of reclaim would delete more than this percentage of a volume, they are held "
        "(brimline.reclaim.hold.ms), as long as the disk is below its fence; -1: never."
    ),
)
RECLAIM_HOLD_MS = Key(
    name="brimline.reclaim.hold.ms",
    kind=KeyKind.LONG,
    default=3_600_000,
    sentence=(
        "How long reclaim waits for brimline reclaim --apply after such a change; after that it counts as confirmed."
    ),
)
BALLAST_BYTES = Key(
    name="brimline.ballast.bytes",
    kind=KeyKind.LONG,
    default=0,
    sentence=(
        "Size of a reserve file in one log dir of every volume, deleted when the volume runs out of space and "
        "recreated when there is room; 0: none."
    ),
)
ENFORCEMENT = Key(
    name="brimline.enforcement",
    kind=KeyKind.CHOICE,
    default="observe",
    choices=(OBSERVE, GATEWAY),
    reloadable=False,
    sentence=(
        "observe: report what would be refused, refuse nothing; gateway: the gateway refuses Produce for the "
        "partitions in full log dirs."
    ),
)
REJECT_ERROR = Key(
    name="brimline.reject.error",
    kind=KeyKind.CHOICE,
    default="56",
    choices=("56", "128", "19", "44"),
    names={
        "KAFKA_STORAGE_ERROR": "56",
        "NOT_ENOUGH_SPACE": "128",
        "NOT_ENOUGH_REPLICAS": "19",
        "POLICY_VIOLATION": "44",
    },
    sentence=(
        "The error code that a refused partition is answered with, by number or by name. Clients retry after 56 and 19 "
        "and give up at once after 44; 128 is the KIP's own number, which current clients read as another error."
    ),
)
REJECT_MEMORY = Key(
    name="brimline.reject.memory.ms",
    kind=KeyKind.LONG,
    default=300_000,
    low=1000,
    high=LARGEST_INT,
    reloadable=False,
    sentence=(
        "How long the gateway remembers the sequence at which it refused an idempotent producer: until then its "
        "later batches cannot overtake the refused one."
    ),
)
STATE_DIR = Key(
    name="brimline.state.dir",
    kind=KeyKind.TEXT,
    default="/var/lib/brimline",
    reloadable=False,
    sentence=(
        "The folder for what must survive a restart, and for the gateway's control socket; guard and gateway of a "
        "broker need the same one, and write access to it."
    ),
)
GATEWAY_LISTENERS = Key(
    name="brimline.gateway.listeners",
    kind=KeyKind.TEXT,
    default="",
    reloadable=False,
    sentence=(
        "Where the gateway listens, as NAME://host:port, comma-separated; without a host on every address. Empty: "
        "the advertised port of every client listener that is bound to another port."
    ),
)
GATEWAY_PROTOCOLS = Key(
    name="brimline.gateway.security.protocol.map",
    kind=KeyKind.TEXT,
    default="",
    reloadable=False,
    sentence=(
        "What clients speak at the gateway where it is not what the broker's listener speaks, such as CLIENT:SASL_SSL "
        "in front of SASL_PLAINTEXT on a loopback address."
    ),
)
GATEWAY_SOURCE = Key(
    name="brimline.gateway.source.address",
    kind=KeyKind.TEXT,
    default="own",
    reloadable=False,
    sentence=(
        "The address that the gateway connects to the broker from, which the broker sees instead of its clients'. own: "
        "127.0.92.1 where the broker is reached at an IPv4 loopback address, so that ACLs for 127.0.0.1 do not "
        "apply to every client, elsewhere like any; any: the system's choice; or an address."
    ),
)
INTERCEPTION = Key(
    name="brimline.gateway.interception",
    kind=KeyKind.CHOICE,
    default=OFF,
    choices=(OFF, TPROXY),
    reloadable=False,
    sentence=(
        "tproxy: clients connect to the broker directly. Only while a disk is near its limit or full, the kernel sends "
        "them to the gateway; no listener, advertised address or broker restart is needed. off: clients reach the "
        "gateway by listeners and advertised.listeners."
    ),
)
INTERCEPTION_PERCENT = Key(
    name="brimline.gateway.interception.arm.percent",
    kind=KeyKind.INT,
    default=5,
    high=100,
    sentence="Clients go through the gateway while less than this percentage of a volume is left until its limit.",
)
INTERCEPTION_SECONDS = Key(
    name="brimline.gateway.interception.arm.seconds",
    kind=KeyKind.INT,
    default=10,
    high=86_400,
    sentence="Or while the limit is this many seconds away at the present fill rate.",
)
INTERCEPTION_DISARM = Key(
    name="brimline.gateway.interception.disarm.seconds",
    kind=KeyKind.INT,
    default=60,
    low=1,
    high=86_400,
    sentence="How long there must be room before clients connect to the broker directly again.",
)
INTERCEPTION_FAILURE = Key(
    name="brimline.gateway.interception.on.failure",
    kind=KeyKind.CHOICE,
    default=OPEN,
    choices=(OPEN, CLOSED),
    sentence=(
        "What happens when a disk is full and the gateway does not answer for five seconds. open: clients connect to "
        "the broker directly, which may fill its disk; closed: new connections are refused until the gateway answers."
    ),
)
GATEWAY_MAX_CONNECTIONS = Key(
    name="brimline.gateway.max.connections",
    kind=KeyKind.INT,
    default=10_000,
    low=1,
    high=1_000_000,
    reloadable=False,
    sentence="Most client connections at once; further ones are closed.",
)
GATEWAY_MEMORY = Key(
    name="brimline.gateway.memory.bytes",
    kind=KeyKind.LONG,
    default=256 << 20,
    low=1 << 20,
    reloadable=False,
    sentence=(
        "Most memory of all gateway connections together: buffered requests, queued answers, unsent bytes. When it "
        "is used up, the largest holder is not read from."
    ),
)
GATEWAY_HEADER_TIMEOUT = Key(
    name="brimline.gateway.header.timeout.ms",
    kind=KeyKind.LONG,
    default=10_000,
    low=100,
    high=LARGEST_INT,
    reloadable=False,
    sentence=(
        "How long a client may take for a TLS handshake or for the header of a request that it has begun, before its "
        "connection is closed; idle connections are closed by the broker (connections.max.idle.ms)."
    ),
)
GATEWAY_LOGIN_TIMEOUT = Key(
    name="brimline.gateway.login.timeout.ms",
    kind=KeyKind.LONG,
    default=30_000,
    low=100,
    high=LARGEST_INT,
    reloadable=False,
    sentence=(
        "How long a client may take from connecting to its first request; where clients authenticate with SASL, to the "
        "broker's first answer to a token. Then its connection is closed."
    ),
)
GATEWAY_DRAIN_TIMEOUT = Key(
    name="brimline.gateway.drain.timeout.ms",
    kind=KeyKind.LONG,
    default=15_000,
    high=LARGEST_INT,
    reloadable=False,
    sentence="How long a gateway that shuts down waits for open requests.",
)
GATEWAY_REFUSALS = Key(
    name="brimline.gateway.refusals.per.second",
    kind=KeyKind.INT,
    default=20,
    low=1,
    high=1_000_000,
    reloadable=False,
    sentence=(
        "How many wholly refused requests are answered at once in a second on a connection that sends nothing else; "
        "the rest is answered later."
    ),
)
COMMITS_LINE = Key(
    name="brimline.gateway.commits.refuse.below.percent",
    kind=KeyKind.INT,
    default=0,
    high=100,
    sentence=(
        "When less than this percentage of what a volume must keep free is usable, the gateway also refuses offset "
        "commits that are stored there, retriably (docs/reserve.md); 0: never. Only with brimline.enforcement=gateway."
    ),
)
FOLLOWER_ACTION = Key(
    name="brimline.follower.action",
    kind=KeyKind.CHOICE,
    default="auto",
    choices=("auto", "skip", "reserve", "fence"),
    sentence=(
        "What to do about a follower whose disk is full. skip: it is not sent the partitions it has no room for, "
        "leaves the ISR and catches up later; reserve: Produce goes on until brimline.follower.reserve.bytes are "
        "left there, and is refused then; fence: Produce is refused from the limit on, so that no replica falls "
        "behind; auto: skip where brimline.gateway.listeners names the replication listener, else reserve."
    ),
)
FOLLOWER_RESERVE = Key(
    name="brimline.follower.reserve.bytes",
    kind=KeyKind.LONG,
    default=-1,
    low=-1,
    sentence=(
        "With brimline.follower.action=reserve: below this many usable bytes on a follower's full volume Produce is "
        "refused for partitions that need it for min.insync.replicas, below half of it for all partitions there. "
        "-1: half of what the limit leaves free. More is kept where the volume fills faster."
    ),
)
FOLLOWER_THROTTLE = Key(
    name="brimline.follower.throttle",
    kind=KeyKind.BOOLEAN,
    default=True,
    sentence=(
        "Whether lagging or new replicas on a full disk are held by the leader's replication throttle, where they "
        "cannot be skipped and no other throttle is set."
    ),
)
FOLLOWER_SHED = Key(
    name="brimline.follower.shed",
    kind=KeyKind.CHOICE,
    default=OFF,
    choices=(OFF, ON),
    sentence=(
        "With brimline.follower.action=reserve. on: once a follower's disk is down to its reserve, as few in-sync "
        "replicas as possible are removed from its assignments, so that Produce need not be refused; never below "
        "min.insync.replicas or two in sync; you put them back. off: Produce is refused."
    ),
)
CORDON = Key(
    name="brimline.cordon",
    kind=KeyKind.BOOLEAN,
    default=True,
    sentence=(
        "Whether a full log dir is put into the broker's dynamic cordoned.log.dirs (Kafka 4.3 and later), so that "
        "it gets no new replicas, and removed when it has room. Only with brimline.enforcement=gateway."
    ),
)
RELEASE_MARGIN = Key(
    name="brimline.disk.release.margin.percent",
    kind=KeyKind.INT,
    default=0,
    high=50,
    sentence="How far below both limits, in percent of the volume, a full log dir must fall to reopen.",
)
RESERVE = Key(
    name="brimline.disk.reserve",
    kind=KeyKind.CHOICE,
    default=AUTO,
    choices=(AUTO, ON, OFF),
    sentence=(
        "A log dir is also full when less is usable than may still be written there by what cannot be refused, or when "
        "its inodes run out (docs/reserve.md). auto: yes, but a volume that had less when it was first seen only after "
        "it has had room; on: at once; off: only the KIP's two limits."
    ),
)
HOLD_CLEANER = Key(
    name="brimline.cleaner.hold",
    kind=KeyKind.BOOLEAN,
    default=True,
    reloadable=False,
    sentence=(
        "Near a limit the guard holds the broker's log cleaner by dynamic settings of the broker, and gives them back "
        "when there is room; only with brimline.enforcement=gateway. It needs ALTER_CONFIGS on the cluster."
    ),
)
FAST_SAMPLING = Key(
    name="brimline.disk.fast.sampling",
    kind=KeyKind.BOOLEAN,
    default=True,
    sentence="Check more often when a volume nears a limit at its present fill rate.",
)
FAST_SAMPLING_FLOOR = Key(
    name="brimline.disk.fast.sampling.floor.ms",
    kind=KeyKind.LONG,
    default=100,
    low=100,
    high=LARGEST_INT,
    sentence="The shortest time between two checks of a volume.",
)
STALL_TIMEOUT = Key(
    name="brimline.disk.stall.timeout.ms",
    kind=KeyKind.LONG,
    default=10_000,
    low=100,
    high=LARGEST_INT,
    sentence="How long a file system may take to answer before its log dirs count as stalled.",
)
METRICS_HOST = Key(
    name="brimline.metrics.host",
    kind=KeyKind.TEXT,
    default="127.0.0.1",
    reloadable=False,
    sentence="The address that /metrics, /healthz, /readyz, /v1/state and /v1/history are served on.",
)
GUARDS = Key(
    name="brimline.guards",
    kind=KeyKind.TEXT,
    default="",
    sentence=(
        "The guards of the other brokers, http://host:port, comma-separated: their brakes are compared with this "
        "file's. Empty: every other broker's host, at brimline.metrics.port."
    ),
)
METRICS_PORT = Key(
    name="brimline.metrics.port",
    kind=KeyKind.INT,
    default=9827,
    high=65535,
    reloadable=False,
    sentence="The port of the same; 0 takes any free one, which the log names.",
)
HTTP_HOSTS = Key(
    name="brimline.http.hosts",
    kind=KeyKind.TEXT,
    default="",
    sentence=(
        "Further names, comma-separated, under which / and /v1 may be asked for. Addresses, localhost, the host's own "
        "name and those of the broker's listeners always may. /metrics, /healthz and /readyz are open to any name."
    ),
)
PUBLISH = Key(
    name="brimline.metrics.publish",
    kind=KeyKind.CHOICE,
    default="all",
    choices=("auto", "all", "none"),
    sentence=(
        "KIP-1257's percentages: all publishes every one; auto leaves out what the broker publishes correctly "
        "itself (4.3 and later; scrape its JMX); none publishes none."
    ),
)
JMX_PORT = Key(
    name="brimline.jmx.port",
    kind=KeyKind.INT,
    default=0,
    high=65535,
    reloadable=False,
    sentence="The port of the guard's own JMX agent, which carries the KIPs' beans; 0 means no JMX and no JVM.",
)
JMX_HOST = Key(
    name="brimline.jmx.host",
    kind=KeyKind.TEXT,
    default="127.0.0.1",
    reloadable=False,
    sentence=(
        "The address of the same. On a loopback address the guard makes a read-only login in the state dir; on "
        "another, set who may connect."
    ),
)
JMX_JAVA = Key(
    name="brimline.jmx.java",
    kind=KeyKind.TEXT,
    default="",
    reloadable=False,
    sentence="The java command for the JMX agent; empty: JAVA_HOME's, else the one on the PATH.",
)
SCAN_INTERVAL = Key(
    name="brimline.scan.interval.ms",
    kind=KeyKind.LONG,
    default=300_000,
    sentence="How often the files in the log dirs are scanned; 0 switches the scan off.",
)
LANDING_URI = Key(
    name="brimline.landing.uri",
    kind=KeyKind.TEXT,
    default="",
    reloadable=False,
    sentence=(
        "Where the guard puts snapshots for the fleet: a folder, or any URI that pyarrow's file systems open; empty: "
        "no snapshots."
    ),
)
LANDING_INTERVAL = Key(
    name="brimline.landing.interval.ms",
    kind=KeyKind.LONG,
    default=300_000,
    low=1000,
    sentence="How often a snapshot is written.",
)
LANDING_SPOOL_BYTES = Key(
    name="brimline.landing.spool.bytes",
    kind=KeyKind.LONG,
    default=256 << 20,
    sentence=(
        "Most that is kept in the state dir while the landing place cannot be written; the oldest snapshots are "
        "dropped first."
    ),
)
LOG_FORMAT = Key(
    name="brimline.log.format",
    kind=KeyKind.CHOICE,
    default="text",
    choices=("text", "json"),
    sentence="The guard's own log on stderr: text for people (key=value), json one object a line.",
)
LOG_LEVEL = Key(
    name="brimline.log.level",
    kind=KeyKind.CHOICE,
    default="info",
    choices=("debug", "info", "warning", "error"),
    sentence="The lowest level that is logged.",
)
ADMIN_LISTENER = Key(
    name="brimline.admin.listener",
    kind=KeyKind.TEXT,
    default="",
    reloadable=False,
    sentence="The broker's listener that the guard's own client uses; empty: the replication listener.",
)
ADMIN_SERVERS = Key(
    name="brimline.admin.bootstrap.servers",
    kind=KeyKind.TEXT,
    default="",
    reloadable=False,
    sentence="Where the guard's client connects first, if not to that listener's advertised address.",
)

KEYS: tuple[Key, ...] = tuple(each for each in tuple(globals().values()) if isinstance(each, Key))
"""In the order in which they are declared above."""
ADMIN_PREFIX = Prefix(
    name="brimline.admin.",
    sentence=(
        "Any property of Kafka's Java clients for the guard's own client, such as "
        "brimline.admin.security.protocol or brimline.admin.sasl.jaas.config."
    ),
)
JMX_PREFIX = Prefix(
    name="brimline.jmx.",
    sentence=(
        "System properties of the JMX agent's JVM, passed on without the prefix: com.sun.management.*, java.rmi.*, "
        "javax.net.ssl.*, such as brimline.jmx.com.sun.management.jmxremote.ssl."
    ),
)
PREFIXES: tuple[Prefix, ...] = (ADMIN_PREFIX, JMX_PREFIX)
BY_NAME = {key.name: key for key in KEYS}


def markdown_table() -> str:
    """The table as documentation. A test compares what the documentation says with this."""
    return "\n".join(_markdown_lines()) + "\n"


def shown_value(value: Value) -> str:
    """As it stands in a properties file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _markdown_lines() -> Iterator[str]:
    yield "| Key | Type | Default | Allowed | On SIGHUP | From | Meaning |"
    yield "|---|---|---|---|---|---|---|"
    for key in KEYS:
        default = shown_value(key.default)
        if key.kip_61 is not None:
            default += f" (kip-61: {shown_value(key.kip_61)})"
        reload = "reloaded" if key.reloadable else "needs a restart"
        yield (
            f"| `{key.name}` | {key.kind.value} | {default or '(empty)'} | {key.allowed} | {reload} | {key.origin} "
            f"| {key.sentence} |"
        )
    for prefix in PREFIXES:
        yield f"| `{prefix.name}*` | text | | | needs a restart | Brimline | {prefix.sentence} |"
