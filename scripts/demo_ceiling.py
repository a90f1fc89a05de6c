"""Fourth act: a ceiling below the fence. The oldest data of all topics goes first, and nobody has to do anything."""

import time
from collections.abc import Callable
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic, OffsetSpec

from brimline.sandbox import Sandbox
from scripts.demo_steps import (
    Beside,
    is_fenced,
    producing,
    run_inside,
    say,
    show,
    state_of,
    wait_for,
)

CEILING = 50
PROTECTED = "payments"
KEYS = {
    "brimline.reclaim.interval.ms": "1000",
    "brimline.reclaim.protected.topics": PROTECTED,
}
_OLD = {PROTECTED: 6, "audit": 2}
"""Topic → how many days old its records are."""
_MEGABYTES = 6
_DAY_MS = 24 * 3600 * 1000
_RATE = 3000


def ceiling(
    sandbox: Sandbox, guard: Beside, busy_topic: str, *, percent: int, fence: str, used: Callable[[], str]
) -> None:
    """``fence`` says where it is, ``used`` how full the first disk is now."""
    broker = sandbox.broker(1)
    first, config = broker.log_dirs[0], str(broker.node.server_properties)
    say(f"The same without anybody awake: '{PROTECTED}' and 'audit' with old records join them on that disk.")
    for topic, days in _OLD.items():
        _create_in(sandbox, first, topic)
        _write_old(sandbox, topic, days)
    _commit(sandbox, "audit", group="reports", offset=1000)
    with producing(sandbox.bootstrap_servers, busy_topic, _RATE) as busy:
        wait_for(lambda: is_fenced(guard.address))
        stands_at = busy.acknowledged()
        show(f"The disk is full again and fenced, at {used().strip()}. What would a ceiling delete?")
        broker.alter_properties({"brimline.reclaim.policy": "kip-61"})
        show("(brimline.reclaim.policy=kip-61: by default nothing that a demo has just written would be deleted)")
        run_inside(sandbox, "reclaim", "--config", config, "--ceiling", str(percent), "--log-dir", str(first))

        say("Nothing was deleted: that was the plan. Now the ceiling goes into the broker's own file:")
        broker.alter_properties({"log.retention.disk.usage.percent": str(percent)})
        show(f"$ echo log.retention.disk.usage.percent={percent} >> server.properties; kill -HUP <guard>")
        guard.reload()
        wait_for(lambda: not is_fenced(guard.address) and busy.acknowledged() > stands_at)
        show("Reclaim worked while the disk was fenced; space came back, and the fence lifted by itself.")
        for _ in range(5):
            (device, *_others) = state_of(guard.address)["reclaim"]["devices"]
            show(
                f"{used()} · ceiling {percent} % · fence {fence} · {busy.acknowledged():,} acknowledged · "
                f"{device['sinceStart']['freedBytes'] >> 20} MiB came back"
            )
            time.sleep(1)
        run_inside(sandbox, "status", "--url", guard.address)
    starts = _log_starts(sandbox, [*_OLD, busy_topic])
    for topic, start in starts.items():
        show(f"'{topic}' begins at offset {start:,}{': protected, untouched' if topic == PROTECTED else ''}")
    if starts[PROTECTED] != 0 or starts["audit"] == 0:
        raise RuntimeError("what is protected stays, and the oldest of the others goes")
    say("Every deletion was written down before it was asked for, with its reason and what really came back:")
    run_inside(sandbox, "ledger", "--config", config)


def _create_in(sandbox: Sandbox, log_dir: Path, topic: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    # A broker that is asked to move a partition which it does not have yet says so, and remembers the log dir.
    client.alter_replica_log_dirs({(topic, 0, 1): str(log_dir)})
    client.create_topics([NewTopic(topic, 1, 1, topic_configs={"segment.bytes": str(1 << 20)})])
    client.close()
    wait_for(lambda: (sandbox.outside(log_dir) / f"{topic}-0").is_dir())


def _write_old(sandbox: Sandbox, topic: str, days: int) -> None:
    """By the listener that no gateway stands before: this is about old data, not about producing."""
    written = int(time.time() * 1000) - days * _DAY_MS
    producer = KafkaProducer(bootstrap_servers=sandbox.admin_servers, linger_ms=20, batch_size=200_000)
    for number in range(_MEGABYTES * 1000):
        producer.send(topic, b"x" * 1000, partition=0, timestamp_ms=written + number)
    producer.flush()
    producer.close()


def _commit(sandbox: Sandbox, topic: str, *, group: str, offset: int) -> None:
    """A consumer group that has not read everything yet."""
    consumer = KafkaConsumer(bootstrap_servers=sandbox.admin_servers, group_id=group, enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(offset, "", -1)})
    consumer.close()


def _log_starts(sandbox: Sandbox, topics: list[str]) -> dict[str, int]:
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    try:
        offsets = client.list_partition_offsets({TopicPartition(topic, 0): OffsetSpec.EARLIEST for topic in topics})
        return {topic: offsets[TopicPartition(topic, 0)].offset for topic in topics}
    finally:
        client.close()
