"""A sandbox: a Kafka cluster on small volumes, alive for the length of a ``with`` block."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Self

from brimline.model import Bytes
from brimline.sandbox import filling
from brimline.sandbox import java as tools
from brimline.sandbox.broker import Broker, KafkaProcess, SupervisedProcess
from brimline.sandbox.errors import BadSpec, SandboxGone
from brimline.sandbox.formatting import formatted_dir, random_id
from brimline.sandbox.jars.cache import kafka_jars
from brimline.sandbox.java import QUICK_START, archive_options, class_path, find_java, stock_jars, test_jars
from brimline.sandbox.namespace import Namespace
from brimline.sandbox.properties import CONTROLLER_ID, ClusterFacts, Node, logging_config, render, server_properties
from brimline.sandbox.spec import SandboxSpec

if TYPE_CHECKING:
    from brimline.sandbox.certificates import Authority

_CONTROLLER_HEAP = Bytes(128 * 1024 * 1024)
_SHORT = Path("/data")


class Sandbox:
    """A running cluster. Everything it makes ends with it, even if this process is killed."""

    def __init__(self, spec: SandboxSpec | None = None, report: Callable[[str], None] | None = None) -> None:
        """``report`` is told of every step that takes a while, and if volumes are only folders."""
        self.spec = spec or SandboxSpec()
        self._report = report or (lambda _: None)
        self._warn = report or _warn_once
        self._namespace_or_none: Namespace | None = None
        self._brokers: dict[int, Broker] = {}
        self._controller: KafkaProcess | None = None
        self._authority: Authority | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Fetch the jars if need be, make the volumes, start every node and wait for a whole cluster."""
        self._jars = kafka_jars(self.spec.version)
        self._namespace_or_none = Namespace(self.spec.volumes_size)
        try:
            if not self.has_real_volumes:
                self._warn(self._namespace.why_plain())
            self._is_short = self.spec.short_paths and self._namespace.rename(_SHORT)
            self._build()
            self._launch()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the cluster at once; its data goes with it."""
        namespace, self._namespace_or_none = self._namespace_or_none, None
        if namespace:
            namespace.close()

    @property
    def has_real_volumes(self) -> bool:
        """Whether volumes are bounded; ``False``: the kernel refuses private mounts, and they are plain folders."""
        return self._namespace.refusal is None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients are told to connect; behind it is the security that was asked for."""
        return ",".join(broker.address for broker in self.brokers)

    @property
    def direct_servers(self) -> str:
        """The client listeners themselves: past the gateway, if one is to stand in front."""
        return ",".join(broker.direct_address for broker in self.brokers)

    @property
    def admin_servers(self) -> str:
        """The plain listeners for the sandbox's owner, who is a super user."""
        return ",".join(broker.admin_address for broker in self.brokers)

    @property
    def brokers(self) -> tuple[Broker, ...]:
        return tuple(self._brokers.values())

    def broker(self, broker_id: int) -> Broker:
        """Ids are 1, 2, …"""
        if broker_id not in self._brokers:
            raise BadSpec(f"no broker {broker_id} in this sandbox: it has {', '.join(map(str, self._brokers))}")
        return self._brokers[broker_id]

    @property
    def controller(self) -> KafkaProcess | None:
        """``None``: the only broker is the controller too."""
        return self._controller

    def process(self, name: str, argv: Sequence[str], home: Path) -> SupervisedProcess:
        """A command that runs beside the brokers, where their paths are valid, and ends with the sandbox; not started.

        It works in ``home``, where what it says is in ``<name>.log``.
        """
        return SupervisedProcess(name, list(argv), self._namespace, home, home / f"{name}.log")

    @property
    def pid(self) -> int:
        """The sandbox's first process: when it ends, everything does."""
        return self._namespace.pid

    @property
    def tiered_dir(self) -> Path:
        """Where LocalTieredStorage keeps remote segments, as the brokers name it."""
        return self._namespace.base / "tiered" / "kafka-tiered-storage"

    @property
    def ca_pem(self) -> Path:
        """The certificate authority that signed the brokers' certificate, as this process finds it."""
        return self.outside(self._tls / "ca.pem")

    @property
    def client_pem(self) -> Path:
        """Key and certificate of a client, in one PEM file, for mutual TLS."""
        return self.outside(self._tls / "client.pem")

    def renew_broker_certificate(self) -> None:
        """A new key and certificate in the brokers' key store, in one step, by the same authority."""
        if self._authority is None:
            raise BadSpec("this sandbox has no certificates: ask for SSL or SASL_SSL")
        self._authority.write_broker_store()

    def reserve_ports(self, count: int) -> list[int]:
        """Free loopback ports that nobody else gets while the sandbox lives; a listener allows address reuse."""
        return self._namespace.reserve_ports(count)

    def outside(self, path: Path) -> Path:
        """Where this process finds a file that the brokers name ``path``."""
        return self._namespace.outside(path)

    def inside(self, argv: Sequence[str]) -> list[str]:
        """The same command, run where the brokers' paths are valid. The network is shared anyway."""
        return self._namespace.inside(argv)

    def fill(self, log_dir: Path, *, leave_free: Bytes) -> Path:
        """Fill the volume under a log dir with a foreign file beside it; returns the file's path in here."""
        return filling.fill(self._namespace, log_dir, leave_free)

    def unfill(self, foreign_file: Path) -> None:
        """Remove what ``fill`` made."""
        self.outside(foreign_file).unlink()

    def tool_command(self, name: str, *arguments: str) -> list[str]:
        """The command line of a stock tool of this version, such as ``log-dirs`` or ``topics``."""
        return tools.tool_command(name, self._jars, arguments)

    def java_tool(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a stock tool; the caller looks at its exit code."""
        command = self.tool_command(name, *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    @property
    def _namespace(self) -> Namespace:
        if self._namespace_or_none is None:
            raise SandboxGone("the sandbox is not running")
        return self._namespace_or_none

    @property
    def _tls(self) -> Path:
        return self._namespace.base / "tls"

    def _build(self) -> None:
        """Volumes, formatted log dirs, certificates and properties of every node."""
        nodes = self._nodes()
        combined = len(nodes) == 1
        facts = ClusterFacts(
            spec=self.spec,
            controller_id=1 if combined else CONTROLLER_ID,
            controller_port=self._namespace.reserve_ports(1)[0],
            controller_host=nodes[0].host,
            tiered_dir=self.tiered_dir,
            key_store=self._tls / "broker-key-store",
            trust_store=self._tls / "ca.pem",
        )
        if self.spec.security and self.spec.security.uses_tls:
            from brimline.sandbox.certificates import Authority

            self._authority = Authority(self.outside(self._tls), self.spec.security.key_store)
        template = formatted_dir(self._jars, self.spec.security, self.outside(self._namespace.base / "format"))
        cluster_id = random_id()
        for node in nodes:
            self._make_volumes(node)
            for log_dir in node.log_dirs:
                template.write(self.outside(log_dir), cluster_id=cluster_id, node_id=node.node_id)
            properties, argv = server_properties(node, facts), self._command(node)
            if "broker" in node.roles:
                self._brokers[node.node_id] = Broker(node, argv, self._namespace, properties)
            else:
                self.outside(node.server_properties).write_text(render(properties))
                self._controller = KafkaProcess(node, argv, self._namespace)

    def _nodes(self) -> list[Node]:
        base = self._namespace.base
        ports = iter(self._namespace.reserve_ports((3 if self.spec.fronted else 2) * self.spec.brokers))
        brokers = [
            Node(
                node_id=broker_id,
                roles=("broker",),
                home=base / f"broker-{broker_id}",
                log_dirs=tuple(
                    self._volume(f"broker-{broker_id}", v) / ("" if self._is_short else f"log-dir-{d}")
                    for v, volume in enumerate(self.spec.volumes)
                    for d in range(volume.log_dirs)
                ),
                client_port=next(ports),
                admin_port=next(ports),
                gateway_port=next(ports) if self.spec.fronted else 0,
            )
            for broker_id in range(1, self.spec.brokers + 1)
        ]
        if len(brokers) == 1:
            return [replace(brokers[0], roles=("broker", "controller"))]
        home = base / "controller"
        controller = Node(node_id=CONTROLLER_ID, roles=("controller",), home=home, log_dirs=(home / "metadata",))
        return [controller, *brokers]

    def _volume(self, node: str, number: int) -> Path:
        volumes = self._namespace.volumes
        return volumes / ascii_lowercase[number] if self._is_short else volumes / node / f"volume-{number}"

    def _make_volumes(self, node: Node) -> None:
        self.outside(node.home).mkdir()
        if "broker" in node.roles:
            for number, volume in enumerate(self.spec.volumes):
                self._namespace.mount(self._volume(node.name, number), volume.filesystem, volume.size)

    def _command(self, node: Node) -> list[str]:
        logging = logging_config(self.spec.release, node.home / "server.log")
        config = node.home / "logging.properties"
        self.outside(config).write_text(logging.text)
        heap = self.spec.heap if "broker" in node.roles else _CONTROLLER_HEAP
        # The remote storage of a tiered cluster is in the test jars; they come last, where no archive minds them.
        path = [*stock_jars(self._jars), *(test_jars(self._jars) if self.spec.tiered else ()), *self.spec.more_jars]
        return [
            str(find_java()),
            *QUICK_START,
            *archive_options(path),
            *self.spec.java_options,
            f"-Xmx{heap}",
            f"-Djava.io.tmpdir={node.home}",
            f"-Dkafka.logs.dir={node.home}",
            f"{logging.java_option}{config}",
            "-cp",
            class_path(path),
            "kafka.Kafka",
            str(node.server_properties),
        ]

    def _launch(self) -> None:
        """All at once; a broker retries until the controller is there."""
        if self._controller:
            self._controller.launch()
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_for(set(self._brokers))
            self._report(f"broker {broker.broker_id} is up")


@cache
def _warn_once(sentence: str) -> None:
    print(f"brimline: {sentence}", file=sys.stderr, flush=True)
