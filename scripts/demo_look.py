"""First act: what is on the disks. Two brokers with two small disks each, a tiered topic and a forgotten one."""

from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from scripts.demo_steps import run, say, wait_for


def look(disks: str) -> None:
    say(f"Starting a real Kafka 4.3.1: two brokers, each with two {disks}…")
    volume = VolumeSpec(size=Bytes(64 << 20))
    with Sandbox(SandboxSpec(brokers=2, volumes=(volume, volume), tiered=True)) as sandbox:
        server = sandbox.bootstrap_servers
        _load(sandbox)

        say("The stock tool knows the replicas, but not the disks under them:")
        stock = sandbox.java_tool("log-dirs", "--bootstrap-server", server, "--describe", "--topic-list", "orders")
        print(f"$ kafka-log-dirs.sh --bootstrap-server {server} --describe --topic-list orders\n{stock.stdout}")

        say("Brimline knows both. Same question, for people:")
        run("log-dirs", "--bootstrap-server", server)

        say("What exists only on these disks, and what is in the remote store already (KIP-1187):")
        run("log-dirs", "--bootstrap-server", server, "--topic-list", "orders", "--include-remote-info")


def _load(sandbox: Sandbox) -> None:
    tiered = {
        "remote.storage.enable": "true",
        "segment.bytes": str(1 << 20),
        "local.retention.bytes": str(3 << 20),
        "file.delete.delay.ms": "0",
    }
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    client.create_topics(
        [NewTopic("orders", 4, 1, topic_configs=tiered), NewTopic("clicks", 4, 2), NewTopic("forgotten", 2, 1)]
    )
    client.close()
    say("Producing 60 MB into three topics; the closed segments of 'orders' go to a remote store…")
    producer = KafkaProducer(bootstrap_servers=sandbox.admin_servers, linger_ms=20, batch_size=200_000)
    for megabyte in range(20):
        for topic, partitions in (("orders", 4), ("clicks", 4), ("forgotten", 1)):
            for _ in range(1000):
                producer.send(topic, b"x" * 1000, partition=megabyte % partitions)
    producer.flush()
    producer.close()
    _wait_for_uploads(sandbox)


def _wait_for_uploads(sandbox: Sandbox) -> None:
    """Until every closed segment of 'orders' is uploaded, and local retention has taken the oldest off the disks."""

    def base_offsets(folder: Path) -> list[int]:
        return sorted(int(file.name[:20]) for file in folder.glob("*.log"))

    def is_settled(partition: int) -> bool:
        local = [
            base_offsets(folder)
            for broker in sandbox.brokers
            for log_dir in broker.log_dirs
            for folder in sandbox.outside(log_dir).glob(f"orders-{partition}")
        ]
        remote = [base_offsets(folder) for folder in sandbox.outside(sandbox.tiered_dir).glob(f"orders-{partition}-*")]
        return bool(remote) and all(bases[0] > 0 and set(bases[:-1]) <= set(remote[0]) for bases in local)

    wait_for(lambda: all(is_settled(partition) for partition in range(4)))
