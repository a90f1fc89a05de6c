"""The acts of the demo, in their order. What an act claims it has compared with the disk or with the log.

``stock`` is missing where the kernel refuses small disks: then ours runs in a plain folder, on a disk that others use.
"""

import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from subprocess import CompletedProcess

from brimline.model import human_bytes
from scripts.demo_cluster import Cluster
from scripts.demo_stage import Stage, Unsettled, chart

TITLES = {
    "stock": "stock Kafka",
    "827": "KIP-827",
    "1187": "KIP-1187",
    "1201": "KIP-1201",
    "1257": "KIP-1257",
    "61": "KIP-61",
    "spark": "Spark",
}
FENCE, CEILING = 80, 50
_MIB = 1 << 20
_BUSY, _CALM = 400, 20
"""Records of 10 kB a second."""
_ROOM = 40 * _MIB
"""In a plain folder: from the present use to the limit."""
_RETENTION = 100 * _MIB
_LESS = 8 * _MIB
_OLD = {"payments": 6, "audit": 2}
"""Topic → how many days old its records are."""


@dataclass(slots=True)
class Demo:
    stage: Stage
    ours: Cluster
    stock: Cluster | None
    ceiling: int = CEILING

    @property
    def clusters(self) -> list[Cluster]:
        return [each for each in (self.stock, self.ours) if each is not None]


def start(demo: Demo) -> None:
    """Clusters, topics and old data, the same on both; then a gateway before ours, and a guard beside it."""
    stage, ours = demo.stage, demo.ours
    stage.act(f"Starting {'two brokers' if demo.stock else 'a broker'} of Kafka 4.3.1 with old data")
    with ThreadPoolExecutor() as pool:
        for started in [pool.submit(_prepare, cluster) for cluster in demo.clusters]:
            stage.wait_for(started.done, "the cluster starts")
            started.result()
    stage.looks = [cluster.look for cluster in demo.clusters]
    if demo.stock is None:
        _total, usable = ours.usage(ours.log_dirs[0])
        limits = {"disk.max.used.percent": "100", "disk.min.free.bytes": str(usable - _ROOM)}
        limits["brimline.reclaim.max.bytes.per.cycle"] = str(16 * _MIB)
        stage.say(f"limit: {_ROOM // _MIB} MiB more than is used now (disk.min.free.bytes)")
    else:
        limits = {"disk.max.used.percent": str(FENCE), "disk.min.free.bytes": "0"}
    places = {"brimline.state.dir": str(ours.base / "state"), "brimline.landing.uri": str(ours.base / "landing")}
    ours.sandbox.broker(1).alter_properties({**limits, **places})
    stage.say("brimline.disk.reserve=off: it would be half of disks this small, and the limit shown is the KIP's")
    ours.serve(stage)


def _prepare(cluster: Cluster) -> None:
    cluster.sandbox.start()
    first, *_, last = *cluster.log_dirs, cluster.log_dirs[-1]
    small = {"segment.bytes": str(2 * _MIB), "file.delete.delay.ms": "500"}
    tiered = {**small, "remote.storage.enable": "true", "local.retention.bytes": str(2 * _MIB)}
    topics = dict.fromkeys(("orders", *_OLD), (first, small))
    cluster.create(
        {
            **topics,
            "debug-logs": (first, {**small, "retention.bytes": str(_RETENTION)}),
            "clicks": (last, small),
            "archive": (last, tiered),
        }
    )
    for topic, days in _OLD.items():
        cluster.write(topic, 6, days_old=days)
    cluster.write("debug-logs", 24)
    cluster.write("archive", 9)


def look(demo: Demo) -> None:
    stage, ours = demo.stage, demo.ours
    stage.act("What is on the disks (KIP-827, KIP-1187)")
    server = ours.sandbox.admin_servers
    with ThreadPoolExecutor() as pool:
        stock = pool.submit(ours.sandbox.java_tool, "log-dirs", "--bootstrap-server", server, "--describe")
        _look(demo, stock)


def _look(demo: Demo, stock_tool: "Future[CompletedProcess[str]]") -> None:
    stage, ours = demo.stage, demo.ours
    first = ours.log_dirs[0]
    # Closed segments go to the remote store, and local retention then takes them off the disk.
    stage.wait_for(
        lambda: 0 < ours.log_bytes("archive") <= 4 * _MIB < ours.remote_bytes("archive"), "closed segments are uploaded"
    )
    told = {}

    def agrees() -> bool:
        before = ours.usage(first)
        command = ("log-dirs", "--bootstrap-server", ours.sandbox.admin_servers, "--include-remote-info")
        (broker,) = ours.ask(stage, *command)["brokers"]
        told.update({each["logDir"]: each for each in broker["logDirs"]})
        volume = told[str(first)]
        return (volume["totalBytes"], volume["usableBytes"]) in (before, ours.usage(first))

    stage.wait_for(agrees, f"the broker's answer and the disk under {first} agree")
    volume = told[str(first)]
    stage.wait_for(stock_tool.done, "kafka-log-dirs.sh ends")
    stock_answer = stock_tool.result().stdout
    stage.observed(
        "827",
        f"{_place(ours)}: {human_bytes(volume['usableBytes'])} usable of {human_bytes(volume['totalBytes'])}, "
        "as df has it, to the byte; kafka-log-dirs.sh tells neither",
        holds=str(first) in stock_answer and "sable" not in stock_answer,
    )
    (archive,) = [each for place in told.values() for each in place["replicas"] if each["topic"] == "archive"]
    remote, local = archive["remoteSize"], archive["onlyLocalSize"]
    stage.observed(
        "1187",
        f"archive: {human_bytes(remote)} in the remote store, {human_bytes(local)} only on this disk",
        holds=remote == ours.remote_bytes("archive") and 0 < local <= ours.log_bytes("archive"),
    )


def load(demo: Demo) -> None:
    """The same load on both, until one is fenced and the other is dead; then what the fence is like."""
    stage, ours, stock = demo.stage, demo.ours, demo.stock
    stage.act("Now the same load on both" if stock else "Now a producer that does not stop")
    began = time.monotonic()
    for cluster in demo.clusters:
        cluster.produce("orders", _BUSY)
        if stock:
            cluster.produce("clicks", _CALM)
    stage.wait_for(lambda: ours.is_fenced, "the disk reaches its limit")
    fenced_at, stands_at = ours.level(ours.log_dirs[0]).strip(), ours.producers["orders"].acknowledged
    elsewhere = ours.producers["clicks"].acknowledged if stock else 0
    snapshots = ours.snapshots
    stage.say(f"Brimline: writes to {_place(ours)} are refused from now on ({_full(demo)}). The broker lives.")
    stage.say(f"a client that does not retry is told: {ours.refusal('orders')}")
    if stock:
        _dies(demo, stock, began)
        clicks = ours.producers["clicks"]
        stage.wait_for(lambda: clicks.acknowledged > elsewhere + 2 * _CALM, "the other disk takes records")
        elsewhere = clicks.acknowledged - elsewhere
    else:
        stage.watch(3)
    read = ours.read("orders")
    stored = ours.producers["orders"].acknowledged
    other = f"/data/b stored {elsewhere} records meanwhile, " if stock else ""
    stage.observed(
        "1201",
        f"{_place(ours)} refused writes at {fenced_at}; {other}"
        f"and all {stored:,} stored orders were read from the full disk",
        holds=ours.sandbox.broker(1).is_running and read == stored >= stands_at,
    )
    # The one that is under way may be of the moment before.
    stage.wait_for(lambda: ours.snapshots >= snapshots + 2, "the guard puts down a snapshot of the full disk")


def _dies(demo: Demo, stock: Cluster, began: float) -> None:
    broker = stock.sandbox.broker(1)
    demo.stage.wait_for(lambda: not broker.is_running, "stock Kafka dies of its full disk")
    after = time.monotonic() - began
    cause = [line for line in broker.log_tail(400).splitlines() if "No space left" in line]
    demo.stage.observed(
        "stock",
        f"ended with exit code {broker.exit_code} after {after:.0f} s of the same load, {_place(stock)} full "
        f"({'No space left on device' if cause else 'no cause in its log'})",
        holds=broker.exit_code not in (0, None) and bool(cause),
    )


def retention(demo: Demo) -> None:
    stage, ours = demo.stage, demo.ours
    stage.act("The usual remedy: less retention. KIP-1257 shows which topic")
    name = "kafka_log_log_retentionsizeinpercent"
    was = ours.metric(name, "debug-logs")
    held = ours.log_bytes("debug-logs")
    stage.say(f"debug-logs uses {was:.0f} % of what it may: retention.bytes is {human_bytes(_LESS)} from now on")
    ours.set_topic("debug-logs", retention_bytes=str(_LESS))
    stands_at = ours.producers["orders"].acknowledged
    stage.wait_for(lambda: ours.log_bytes("debug-logs") <= _LESS + 2 * _MIB, "Kafka deletes what is too much")
    stage.wait_for(lambda: not ours.is_fenced and ours.producers["orders"].acknowledged > stands_at, "the fence lifts")
    stage.say("Space was freed: the fence lifted automatically, and the waiting producer continues.")
    freed, left = held - ours.log_bytes("debug-logs"), ours.log_bytes("debug-logs")

    def follows() -> bool:
        now = ours.metric(name, "debug-logs")
        return now is not None and abs(now - 100 * left / _LESS) < 1

    stage.wait_for(follows, "the percentage follows")
    stage.observed(
        "1257",
        f"debug-logs: {was:.0f} % of retention.bytes={human_bytes(_RETENTION)}; lowered to {human_bytes(_LESS)}: Kafka "
        f"deleted {human_bytes(freed)}, now {100 * left / _LESS:.0f} %",
        holds=was is not None and abs(was - 100 * held / _RETENTION) < 1 and freed > 0,
    )
    for topic, producer in list(ours.producers.items()):
        stored, read = producer.finish(), ours.read(topic)
        stage.say(f"{topic}: {stored:,} records acknowledged, {read:,} in the log, each once, in order")
        if stored != read:
            raise Unsettled(f"{topic} has {read} records, and {stored} were acknowledged")


def ceiling(demo: Demo) -> None:
    stage, ours, first = demo.stage, demo.ours, demo.ours.log_dirs[0]
    stage.act("The same without an operator: a ceiling (KIP-61)")
    orders = ours.produce("orders", _BUSY)
    stage.wait_for(lambda: ours.is_fenced, "the disk is full again")
    full, full_text, stands_at = ours.used_percent(first), ours.level(first).strip(), orders.acknowledged
    if demo.stock is None:  # a whole percentage: the next one below; others use more of a large disk than that
        demo.ceiling = int(full)
    # By default nothing younger than a day goes: the demo's own records would all stay.
    keys = {"brimline.reclaim.policy": "kip-61", "log.retention.disk.usage.percent": str(demo.ceiling)}
    ours.sandbox.broker(1).alter_properties(keys)
    for key, value in keys.items():
        stage.say(f"server.properties: {key}={value}")
    ours.processes["guard"].signal(signal.SIGHUP)
    stage.wait_for(lambda: not ours.is_fenced and orders.acknowledged > stands_at, "the ceiling makes room")
    stage.say("Full again, fenced, trimmed, open again, without an operator.")
    held: list[tuple[float, str]] = []
    until = time.monotonic() + 5

    def is_held() -> bool:
        held.append((ours.used_percent(first), ours.level(first).strip()))
        return time.monotonic() > until and held[-1][0] < full

    stage.wait_for(is_held, "the disk stays below its limit")
    lowest, lowest_text = min(held)
    orders.finish()
    cycles = ours.ask(stage, "ledger", "--config", str(ours.config))["cycles"]
    trims = [trim for cycle in cycles for trim in cycle["trims"]]
    freed = sum(trim["freedBytes"] or 0 for trim in trims)
    starts = ours.log_starts(["payments", "audit"])
    stage.observed(
        "61",
        f"{full_text} → {lowest_text}, to a ceiling of {demo.ceiling} % while writing went on: {human_bytes(freed)} of "
        f"the oldest of all topics deleted, in {len(trims)} trims on record; protected 'payments' lost nothing",
        holds=lowest < full and freed > 0 and starts["payments"] == 0 < starts["audit"],
    )


def fleet(demo: Demo) -> None:
    """Half of the product: what the guard has put down meanwhile, as tables."""
    stage, ours = demo.stage, demo.ours
    stage.act("What just happened, as Delta tables by Spark")
    place = ("--warehouse", str(ours.base / "warehouse"))
    snapshots = ours.snapshots
    stage.wait_for(lambda: ours.snapshots >= snapshots + 2, "the guard puts down a snapshot of the disk with room")
    began = time.monotonic()
    ours.run(stage, "fleet", "run", "--landing", str(ours.base / "landing"), *place)
    took = time.monotonic() - began
    columns = "taken_at,log_dir,total_bytes,usable_bytes,state"
    rows = ours.ask(stage, "fleet", "show", *place, "volumes", "--columns", columns, "--sort", "taken_at")
    rows = [row for row in rows if row["log_dir"] == str(ours.log_dirs[0])]
    lower = max(demo.ceiling - 20, 0)
    what_if = ours.ask(stage, "fleet", "simulate", *place, "--ceiling", str(lower), "--days", "0")
    goes = sum(device["byCeilingBytes"] for device in what_if["devices"])
    stage.say(f"a ceiling of {lower} % would delete {human_bytes(goes)} more: an estimate, nothing changes")
    used = [100 * (1 - row["usable_bytes"] / row["total_bytes"]) for row in rows]
    states = [row["state"] for row in rows]
    readings = list(zip(used, (state == "full" for state in states), strict=True))
    if demo.stock is None:
        stage.draw(chart(f"{_place(ours)}, used", readings, {}, low=min(used), high=max(used)))
    else:
        marks = {FENCE: "limit", demo.ceiling: "ceiling"}
        stage.draw(chart("/data/a, % used, in Spark's table 'volumes'", readings, marks))
    stage.observed(
        "spark",
        f"{len(rows)} snapshots became tables in {took:.0f} s; {states.count('full')} of them saw {_place(ours)} full, "
        f"at most {max(used):.1f} % used and {used[-1]:.1f} % in the end",
        holds="full" in states and states[-1] == "ok" and used[-1] < max(used),
    )


ACTS = (start, look, load, retention, ceiling, fleet)


def _place(cluster: Cluster) -> str:
    return str(cluster.log_dirs[0]) if cluster.is_short else "the disk"


def _full(demo: Demo) -> str:
    if demo.stock is None:
        return f"less than {demo.ours.sandbox.broker(1).properties['disk.min.free.bytes']} bytes usable"
    return f"disk.max.used.percent={FENCE}"
