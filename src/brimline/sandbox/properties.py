"""The configuration of every node of a sandbox: properties and logging.

Log files are bounded: a sandbox may run for days on memory-backed volumes. Kafka 4 logs through log4j 2, earlier
versions through reload4j; each gets its own dialect of the same wish: INFO, one file of 8 MB and one before it.

Three listeners: CLIENT carries the security that was asked for, ADMIN is a plain one for the brokers among
themselves and for the sandbox's owner, CONTROLLER belongs to KRaft.

A cluster of one is a combined node. From two brokers on the controller is a process of its own, so that stopping
or killing any broker leaves a working quorum.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from brimline.sandbox.spec import SandboxSpec, SecuritySpec

_LOG4J2 = """\
status=error
appender.file.type=RollingFile
appender.file.name=file
appender.file.fileName={log}
appender.file.filePattern={log}.%i
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
appender.file.policies.type=Policies
appender.file.policies.size.type=SizeBasedTriggeringPolicy
appender.file.policies.size.size=8MB
appender.file.strategy.type=DefaultRolloverStrategy
appender.file.strategy.max=1
rootLogger.level=info
rootLogger.appenderRef.file.ref=file
"""

_LOG4J1 = """\
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.RollingFileAppender
log4j.appender.file.File={log}
log4j.appender.file.MaxFileSize=8MB
log4j.appender.file.MaxBackupIndex=1
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    text: str
    java_option: str
    """Ends with ``=``; the path of the file with ``text`` follows."""


def logging_config(release: tuple[int, ...], log: Path) -> LoggingConfig:
    if release >= (4, 0):
        return LoggingConfig(_LOG4J2.format(log=log), "-Dlog4j2.configurationFile=")
    return LoggingConfig(_LOG4J1.format(log=log), "-Dlog4j.configuration=file:")


CONTROLLER_ID = 100
"""Outside the broker ids (1 to 99), and plainly not one of them in a log line."""

KEY_STORE_PASSWORD = "brimline"
"""Not a secret: the key store exists inside one sandbox only, and Kafka wants one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One Kafka process: a broker, the controller, or both in one."""

    node_id: int
    roles: tuple[str, ...]
    home: Path
    log_dirs: tuple[Path, ...]
    host: str = "127.0.0.1"
    """Where it listens."""
    client_port: int = 0
    admin_port: int = 0
    gateway_port: int = 0
    """Where clients are sent instead of ``client_port``; 0: straight to the broker."""

    @property
    def name(self) -> str:
        return f"broker-{self.node_id}" if "broker" in self.roles else "controller"

    @property
    def server_properties(self) -> Path:
        return self.home / "server.properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What all nodes share."""

    spec: SandboxSpec
    controller_id: int
    controller_port: int
    controller_host: str
    tiered_dir: Path
    key_store: Path
    trust_store: Path


# One broker cannot keep three copies of an internal topic.
_SINGLE_COPIES = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
# Few partitions of internal topics, no waiting for more members; then short intervals, so that a test sees within a
# second what a production broker does within minutes.
_SMALL_AND_QUICK = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    # 128 MB by default, more than half of a sandbox's heap
    "log.cleaner.dedupe.buffer.size": "8388608",
    # A killed broker may come back only after its session: 9 s by default
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


def server_properties(node: Node, facts: ClusterFacts) -> dict[str, str]:
    """A node's properties; the caller's own win."""
    settings = {
        "process.roles": ",".join(node.roles),
        "node.id": str(node.node_id),
        "controller.quorum.voters": f"{facts.controller_id}@{facts.controller_host}:{facts.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": ",".join(str(log_dir) for log_dir in node.log_dirs),
        **_listeners(node, facts),
        **({} if facts.spec.kafka_defaults and facts.spec.brokers >= 3 else _SINGLE_COPIES),
        **({} if facts.spec.kafka_defaults else _SMALL_AND_QUICK),
    }
    if facts.spec.tiered:
        # The controller refuses tiered topics unless it knows that the cluster can keep them.
        settings |= _tiered(facts) if "broker" in node.roles else {"remote.log.storage.system.enable": "true"}
    if facts.spec.security:
        settings |= _security(facts.spec.security, facts)
    return {**settings, **facts.spec.properties}


def render(settings: Mapping[str, str]) -> str:
    """Java's properties format, where a backslash escapes."""
    return "".join(f"{key}={escape(value)}\n" for key, value in settings.items())


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def listener_address(listeners: str, name: str) -> str:
    """Host and port of one listener in the value of ``listeners`` or ``advertised.listeners``."""
    (address,) = (rest for found, _, rest in (each.partition("://") for each in listeners.split(",")) if found == name)
    return address


def _listeners(node: Node, facts: ClusterFacts) -> dict[str, str]:
    client_protocol = facts.spec.security.protocol if facts.spec.security else "PLAINTEXT"
    settings = {"listener.security.protocol.map": f"CLIENT:{client_protocol},ADMIN:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    client = f"CLIENT://{node.host}:{node.client_port}"
    advertised = f"CLIENT://{node.host}:{node.gateway_port or node.client_port}"
    admin = f"ADMIN://{node.host}:{node.admin_port}"
    controller = [f"CONTROLLER://{facts.controller_host}:{facts.controller_port}"]
    if "broker" not in node.roles:
        return {**settings, "listeners": ",".join(controller)}
    return {
        **settings,
        "listeners": ",".join([client, admin, *(controller if "controller" in node.roles else [])]),
        "advertised.listeners": f"{advertised},{admin}",
        "inter.broker.listener.name": "ADMIN",
    }


def _tiered(facts: ClusterFacts) -> dict[str, str]:
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.metadata.manager.listener.name": "ADMIN",
        "rsm.config.dir": str(facts.tiered_dir.parent),
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.min.isr": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "5",
        "remote.log.manager.task.interval.ms": "500",
        "remote.log.manager.thread.pool.size": "2",
        "remote.log.manager.copier.thread.pool.size": "2",
        "remote.log.manager.expiration.thread.pool.size": "2",
        "remote.log.reader.threads": "2",
    }


def _security(security: SecuritySpec, facts: ClusterFacts) -> dict[str, str]:
    settings = {"sasl.enabled.mechanisms": ",".join(security.mechanisms)} if security.uses_sasl else {}
    for mechanism in security.mechanisms:
        settings[f"listener.name.client.{mechanism.lower()}.sasl.jaas.config"] = _jaas(mechanism, security.users)
    if security.uses_tls:
        prefix = "listener.name.client.ssl."
        settings[prefix + "keystore.type"] = security.key_store
        settings[prefix + "keystore.location"] = str(facts.key_store)
        if security.key_store != "PEM":  # a PEM file has no password of its own, and our key in it has none either
            settings[prefix + "keystore.password"] = KEY_STORE_PASSWORD
            settings[prefix + "key.password"] = KEY_STORE_PASSWORD
        settings[prefix + "truststore.type"] = "PEM"
        settings[prefix + "truststore.location"] = str(facts.trust_store)
        settings[prefix + "client.auth"] = "required" if security.mutual_tls else "none"
    if security.acls:
        settings["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        users = ("ANONYMOUS", *security.super_users)
        settings["super.users"] = ";".join(f"User:{user}" for user in users)
    return settings


def _jaas(mechanism: str, users: Mapping[str, str]) -> str:
    """PLAIN's users stand in the login module's options; SCRAM's are in the metadata log."""
    if mechanism != "PLAIN":
        return "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    options = "".join(f' user_{name}="{_jaas_quote(password)}"' for name, password in users.items())
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required{options};"


def _jaas_quote(password: str) -> str:
    return password.replace("\\", "\\\\").replace('"', '\\"')
