"""Second and third act: a producer that does not stop, on a small disk; first as Kafka comes, then with Brimline.

The fourth, in the same cluster, is ``demo_ceiling``; ``demo_fleet`` is about what its guard has put down.
"""

import time
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from scripts import demo_ceiling, demo_fleet
from scripts.demo_steps import Producer, beside_broker, is_fenced, producing, run, say, show, used_percent, wait_for

_VOLUME = VolumeSpec(size=Bytes(96 << 20))
_RATE = 4000
"""Kilobytes a second, which are records too."""
QUICK = {
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "500",
    "log.segment.bytes": "4194304",
}


def stock_kafka() -> None:
    say("Now a producer that does not stop. First Kafka as it comes: one broker, one disk of 96 MiB.")
    with Sandbox(SandboxSpec(volumes=(_VOLUME,), properties=QUICK)) as sandbox:
        create(sandbox, "orders")
        broker = sandbox.broker(1)
        with producing(sandbox.bootstrap_servers, "orders", 2 * _RATE) as producer:
            while broker.is_running:
                acknowledged = producer.acknowledged()
                show(f"{acknowledged:>7,} records acknowledged, {used_percent(sandbox, broker.log_dirs[0]):.0f} % used")
                time.sleep(2)
        show(f"the broker has ended with exit code {broker.exit_code}: {_last_words(broker.log_tail(200))}")


def with_brimline(landing: Path) -> None:
    """``landing``: where the guard puts its snapshots."""
    say("The same with Brimline: a gateway before the broker, a guard beside it, and a second disk.")
    # Kafka ignores what it does not know: Brimline's keys stand in the broker's own file.
    brimline = {
        "disk.max.used.percent": "80",
        "disk.min.free.bytes": "0",
        "disk.usage.check.interval.ms": "500",
        "brimline.enforcement": "gateway",
        "brimline.metrics.port": "0",
        **demo_ceiling.KEYS,
        **demo_fleet.keys(landing),
    }
    with Sandbox(SandboxSpec(volumes=(_VOLUME, _VOLUME), fronted=True, properties={**QUICK, **brimline})) as sandbox:
        # What has to be known of this very sandbox before its gateway starts.
        state_dir = sandbox.broker(1).node.home / "brimline"
        sandbox.broker(1).alter_properties({"brimline.state.dir": str(state_dir)})
        with beside_broker("gateway", sandbox, 1), beside_broker("guard", sandbox, 1) as guard:
            busy_topic = _story(sandbox, guard.address)
            demo_ceiling.ceiling(
                sandbox,
                guard,
                busy_topic,
                percent=demo_ceiling.CEILING,
                fence="80 %",
                used=lambda: f"{used_percent(sandbox, sandbox.broker(1).log_dirs[0]):5.1f} % used",
            )


def _story(sandbox: Sandbox, guard: str) -> str:
    """Returns the topic that filled the first disk."""
    servers = sandbox.bootstrap_servers
    first, _second = sandbox.broker(1).log_dirs
    # Each topic goes to the disk with the fewest partitions.
    for topic in ("orders", "clicks", "debug-logs"):
        create(sandbox, topic)
    elsewhere = next(topic for topic in ("clicks", "orders") if not _is_in(sandbox, first, topic))
    here = "orders" if elsewhere == "clicks" else "clicks"
    fill(servers, "debug-logs", megabytes=40)
    show(f"'{here}' and 'debug-logs' are on the first disk, '{elsewhere}' is on the second.")
    with producing(servers, here, _RATE) as busy, producing(servers, elsewhere, 200) as calm:
        wait_for(lambda: is_fenced(guard))
        say("The first disk is over its limit of 80 %. The broker lives; Produce to that disk is refused:")
        run("status", "--url", guard)
        stands_at = busy.acknowledged()
        show(f"a client that does not retry is told: {refusal(servers, here)}")
        _watch(sandbox, first, here, busy, elsewhere, calm)
        show(f"reading goes on: {count(servers, here):,} records of '{here}' read from the full disk")

        say("The cure is the one every operator knows: give 'debug-logs' less retention.")
        lower_retention(sandbox, "debug-logs")
        wait_for(lambda: not is_fenced(guard) and busy.acknowledged() > stands_at)
        say("Space came back, the fence lifted by itself, and so did the writing:")
        _watch(sandbox, first, here, busy, elsewhere, calm)
        acknowledged = {here: busy.finish(), elsewhere: calm.finish()}
    for topic, expected in acknowledged.items():
        show(f"'{topic}': {expected:,} records acknowledged, {count(servers, topic):,} in the log, each once, in order")
        if count(servers, topic) != expected:
            raise RuntimeError(f"records of {topic} are missing")
    return here


def create(sandbox: Sandbox, topic: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    client.create_topics([NewTopic(topic, 1, 1)])
    client.close()
    wait_for(lambda: any(_is_in(sandbox, log_dir, topic) for log_dir in sandbox.broker(1).log_dirs))


def _is_in(sandbox: Sandbox, log_dir: Path, topic: str) -> bool:
    return (sandbox.outside(log_dir) / f"{topic}-0").is_dir()


def _last_words(log: str) -> str:
    causes = [line.strip() for line in log.splitlines() if "No space left" in line or "Shutdown broker" in line]
    return causes[-1] if causes else "no space left on its disk"


def fill(servers: str, topic: str, megabytes: int) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=20, batch_size=200_000)
    for _ in range(megabytes * 1000):
        producer.send(topic, b"x" * 1000, partition=0)
    producer.flush()
    producer.close()


def refusal(servers: str, topic: str) -> str:
    producer = KafkaProducer(bootstrap_servers=servers, retries=0, enable_idempotence=False)
    try:
        producer.send(topic, b"one more", partition=0).get(timeout=30)
    except KafkaError as refused:
        return str(refused)
    finally:
        producer.close()
    raise RuntimeError("a full disk took a record")


def _watch(sandbox: Sandbox, log_dir: Path, here: str, busy: Producer, elsewhere: str, calm: Producer) -> None:
    for _ in range(3):
        used = used_percent(sandbox, log_dir)
        show(
            f"{used:5.1f} % used · '{here}' {busy.acknowledged():,} acknowledged · "
            f"'{elsewhere}' on the other disk {calm.acknowledged():,}"
        )
        time.sleep(1)


def count(servers: str, topic: str) -> int:
    """How many records a reader gets from the beginning to the end; they must be numbered from 0 in order."""
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        read = 0
        while consumer.position(partition) < end:
            for record in consumer.poll(timeout_ms=1000).get(partition, []):
                if int(record.value) != read:
                    raise RuntimeError(f"record {read} of {topic} is {record.value[:20]!r}")
                read += 1
        return read
    finally:
        consumer.close()


def lower_retention(sandbox: Sandbox, topic: str) -> None:
    arguments = (
        "--bootstrap-server",
        sandbox.admin_servers,
        "--alter",
        "--entity-type",
        "topics",
        "--entity-name",
        topic,
        "--add-config",
        "retention.bytes=8388608",
    )
    print(f"$ kafka-configs.sh {' '.join(arguments)}", flush=True)
    print(sandbox.java_tool("configs", *arguments).stdout, flush=True)
