"""What a broker's own properties file tells about the broker: who it is, where its log dirs and listeners are.

Read with the broker's eyes: the same defaults, the same precedence (``log.dirs`` over ``log.dir``, ``node.id`` over
``broker.id``), the same spelling of paths. A relative log dir is relative to the directory that the broker was started
in, which no file tells: it must be given, or the log dir is refused by name.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from brimline.model import BadInput, BrokerId, Bytes
from brimline.observe.properties import connection_limits as limits
from brimline.observe.properties.connection_limits import ConnectionLimits
from brimline.observe.properties.java_properties import JavaProperties, PropertyReader, load_properties
from brimline.observe.volumes import META_PROPERTIES

DEFAULT_LOG_DIR = "/tmp/kafka-logs"
_DEFAULT_LISTENERS = "PLAINTEXT://:9092"
_LISTENER = re.compile(r"([A-Za-z0-9_.\-]+)://(\[[^\]]*\]|[^:/\[\]]*):(-?\d+)")
_WILDCARDS = ("", "0.0.0.0", "[::]", "[::0]")

KEYS = frozenset(
    {
        "advertised.listeners",
        "authorizer.class.name",
        "broker.id",
        "control.plane.listener.name",
        "controller.listener.names",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "log.retention.check.interval.ms",
        "log.segment.delete.delay.ms",
        "node.id",
        "process.roles",
        "remote.log.manager.task.interval.ms",
        "remote.log.metadata.manager.listener.name",
        "remote.log.storage.system.enable",
        "sasl.server.max.receive.size",
        "security.inter.broker.protocol",
        "socket.request.max.bytes",
        "ssl.client.auth",
        "zookeeper.connect",
    }
)
"""The keys of Kafka's own that are read here; no others are looked at."""
WITH_ZOOKEEPER = "ZooKeeper clusters are not supported: migrate to KRaft first (Kafka 3.9 can)"
_CLIENT_AUTH = "ssl.client.auth"
_LARGEST_REQUEST = "socket.request.max.bytes"
_DEFAULT_LARGEST_REQUEST = 100 * 1024 * 1024
_LARGEST_LOGIN = "sasl.server.max.receive.size"
_DEFAULT_LARGEST_LOGIN = 512 * 1024
_OF_A_LISTENER = tuple(f".{key}" for key in (_CLIENT_AUTH, *limits.KEYS))


def is_read(key: str) -> bool:
    """Whether a key is looked at, be it for the broker or for one of its listeners."""
    of_a_listener = key.startswith("listener.name.") and key.endswith(_OF_A_LISTENER)
    return of_a_listener or key in KEYS or key in limits.KEYS


class ClientAuth(Enum):
    """Whether a listener asks its clients for a certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    name: str
    host: str
    port: int
    security_protocol: str

    @property
    def address(self) -> str:
        """Where a client on this machine finds it: a listener that is bound to every address is on this one too."""
        return f"{'localhost' if self.is_on_every_address else self.host}:{self.port}"

    @property
    def is_on_every_address(self) -> bool:
        return self.host in _WILDCARDS


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProperties:
    """``listeners`` are those that clients may use, by name, with the address that the broker advertises.

    ``bound_listeners`` are all, the controllers' too, with the address that the broker itself listens on.
    """

    node_id: BrokerId | None
    log_dirs: tuple[str, ...]
    metadata_log_dir: str | None
    """Where it is none of the log dirs."""
    listeners: Mapping[str, Listener]
    inter_broker_listener: str
    retention_check_interval: float
    segment_delete_delay: float
    remote_task_interval: float
    is_remote_storage_enabled: bool
    bound_listeners: Mapping[str, Listener]
    controller_listeners: tuple[str, ...]
    control_plane_listener: str | None
    """Only with ZooKeeper: over it the controller tells the broker what to do."""
    remote_log_metadata_listener: str | None
    client_auth: Mapping[str, ClientAuth]
    """By listener, as it counts there if the listener speaks TLS."""
    connection_limits: ConnectionLimits
    largest_request: Bytes
    largest_login: Bytes
    """Of a client that has not authenticated yet."""
    has_authorizer: bool
    """Then not every client may know the names of all topics."""


class BrokerPropertiesReader:
    """Reads all of it and collects what is wrong, so that an operator learns of everything at once."""

    def __init__(self, properties: JavaProperties, broker_cwd: str | None) -> None:
        self._properties = properties
        self._reader = PropertyReader(properties)
        self._broker_cwd = broker_cwd
        self.problems: list[BadInput] = []
        self.warnings: list[str] = []

    def read(self) -> BrokerProperties:
        roles = _names(self._reader.text("process.roles") or "")
        if roles and "broker" not in roles:
            self._refuse("process.roles", "this is a controller's file: controllers have no log dirs to guard")
        if not roles and self._reader.text("zookeeper.connect"):
            self.warnings.append(f"{self._where('zookeeper.connect')}: {WITH_ZOOKEEPER}")
        log_dirs = self._log_dirs()
        bound = self._parse_listeners("listeners", _DEFAULT_LISTENERS)
        controllers = tuple(name.upper() for name in _names(self._reader.text("controller.listener.names") or ""))
        return BrokerProperties(
            node_id=self._node_id(log_dirs),
            log_dirs=log_dirs,
            metadata_log_dir=self._reader.text("metadata.log.dir") or None,
            listeners=self._advertised(bound, controllers),
            inter_broker_listener=self._inter_broker_listener(),
            retention_check_interval=self._milliseconds("log.retention.check.interval.ms", 300_000),
            segment_delete_delay=self._milliseconds("log.segment.delete.delay.ms", 60_000),
            remote_task_interval=self._milliseconds("remote.log.manager.task.interval.ms", 30_000),
            is_remote_storage_enabled=(self._reader.text("remote.log.storage.system.enable") or "").lower() == "true",
            bound_listeners=bound,
            controller_listeners=controllers,
            control_plane_listener=(self._reader.text("control.plane.listener.name") or "").upper() or None,
            remote_log_metadata_listener=(self._reader.text("remote.log.metadata.manager.listener.name") or "").upper()
            or None,
            client_auth={name: self._client_auth(listener) for name, listener in bound.items()},
            connection_limits=self._connection_limits(bound),
            largest_request=self._largest(_LARGEST_REQUEST, _DEFAULT_LARGEST_REQUEST),
            largest_login=self._largest(_LARGEST_LOGIN, _DEFAULT_LARGEST_LOGIN),
            has_authorizer=bool(self._reader.text("authorizer.class.name")),
        )

    def _log_dirs(self) -> tuple[str, ...]:
        key = "log.dirs" if "log.dirs" in self._properties else "log.dir"
        named = _names(self._properties.get(key, DEFAULT_LOG_DIR))
        if not named:
            self._refuse(key, "names no log dir")
        paths = []
        for name in named:
            path = _as_java_writes(name)
            if not path.startswith("/"):
                if self._broker_cwd is None:
                    self._refuse(
                        key,
                        f"{name} is relative to the directory that the broker was started in, which the file does "
                        "not name: use --broker-cwd, or write an absolute path",
                    )
                    continue
                path = f"{_as_java_writes(self._broker_cwd).rstrip('/')}/{path}"
            if path in paths:
                self.warnings.append(f"{self._where(key)}: {key} names {path} more than once; it counts once")
            else:
                paths.append(path)
        return tuple(paths)

    def _node_id(self, log_dirs: tuple[str, ...]) -> BrokerId | None:
        for key in ("node.id", "broker.id"):
            text = self._reader.text(key)
            if text is None or text == "-1":
                continue
            if not text.isdecimal():
                self._refuse(key, "allowed: a whole number from 0")
                return None
            return BrokerId(int(text))
        return _generated_id(log_dirs)

    def _advertised(self, bound: Mapping[str, Listener], controllers: Collection[str]) -> Mapping[str, Listener]:
        # What is not advertised under its own name is advertised as it is bound.
        advertised = {**bound, **self._parse_listeners("advertised.listeners", "")}
        return {name: listener for name, listener in advertised.items() if name not in controllers}

    def _parse_listeners(self, key: str, default: str) -> dict[str, Listener]:
        protocols = self._protocols()
        listeners = {}
        for text in _names(self._properties.get(key, default)):
            match = _LISTENER.fullmatch(text)
            if match is None:
                self._refuse(key, f"{text!r} is not NAME://host:port")
                continue
            name = match[1].upper()
            listeners[name] = Listener(
                name=name, host=match[2], port=int(match[3]), security_protocol=protocols.get(name, name)
            )
        return listeners

    def _protocols(self) -> dict[str, str]:
        pairs = [pair.partition(":") for pair in _names(self._properties.get("listener.security.protocol.map", ""))]
        return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}

    def _client_auth(self, listener: Listener) -> ClientAuth:
        """With SASL the broker-wide setting does not count, only the listener's own (KIP-684)."""
        own = limits.listener_key(listener.name, _CLIENT_AUTH)
        key = own if own in self._properties or listener.security_protocol.startswith("SASL_") else _CLIENT_AUTH
        text = self._reader.text(key) or ClientAuth.NONE.value
        try:
            return ClientAuth(text.lower())
        except ValueError:
            self._refuse(key, f"allowed: {', '.join(auth.value for auth in ClientAuth)}")
            return ClientAuth.NONE

    def _connection_limits(self, bound: Mapping[str, Listener]) -> ConnectionLimits:
        try:
            return limits.connection_limits(self._reader, bound)
        except BadInput as problem:
            self.problems.append(problem)
            return ConnectionLimits()

    def _largest(self, key: str, default: int) -> Bytes:
        try:
            return Bytes(limits.whole_number(self._reader, key, 1, default))
        except BadInput as problem:
            self.problems.append(problem)
            return Bytes(default)

    def _inter_broker_listener(self) -> str:
        named = self._reader.text("inter.broker.listener.name")
        return (named or self._reader.text("security.inter.broker.protocol") or "PLAINTEXT").upper()

    def _milliseconds(self, key: str, default: int) -> float:
        text = self._reader.text(key)
        if text is None:
            return default / 1000
        if not text.isdecimal() or int(text) < 1:
            self._refuse(key, "allowed: milliseconds, a whole number from 1")
            return default / 1000
        return int(text) / 1000

    def _refuse(self, key: str, why: str) -> None:
        if key in self._properties:
            self.problems.append(self._reader.refusal(key, why))
        else:
            self.problems.append(BadInput(f"{key}: {why}"))

    def _where(self, key: str) -> str:
        return self._properties.entry(key).where


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _as_java_writes(path: str) -> str:
    """``java.io.File`` drops doubled and trailing slashes and nothing else; the broker reports its log dirs so."""
    collapsed = re.sub(r"/+", "/", path)
    return collapsed.rstrip("/") or "/"


def _generated_id(log_dirs: tuple[str, ...]) -> BrokerId | None:
    """A broker that chose its own id has written it into its log dirs."""
    for log_dir in log_dirs:
        try:
            written = load_properties(Path(log_dir, META_PROPERTIES))
        except BadInput:
            continue  # not formatted yet, or not ours to read: the next one may tell
        text = written.get("node.id", written.get("broker.id", ""))
        if text.isdecimal():
            return BrokerId(int(text))
    return None
