"""What a broker's own properties file tells about the broker: who it is, where its log dirs and listeners are.

Read with the broker's eyes: the same defaults, the same precedence (``log.dirs`` over ``log.dir``, ``node.id`` over
``broker.id``), the same spelling of paths. A relative log dir is relative to the directory that the broker was started
in, which no file tells: it must be given, or the log dir is refused by name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from brimline.model import BadInput, BrokerId
from brimline.observe.java_properties import JavaProperties, load_properties
from brimline.observe.property_reader import PropertyReader
from brimline.observe.volumes import META_PROPERTIES

DEFAULT_LOG_DIR = "/tmp/kafka-logs"
_DEFAULT_LISTENERS = "PLAINTEXT://:9092"
_LISTENER = re.compile(r"([A-Za-z0-9_.\-]+)://(\[[^\]]*\]|[^:/\[\]]*):(-?\d+)")
_WILDCARDS = ("", "0.0.0.0", "[::]", "[::0]")

KEYS = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "log.retention.check.interval.ms",
        "node.id",
        "process.roles",
        "remote.log.manager.task.interval.ms",
        "remote.log.storage.system.enable",
        "security.inter.broker.protocol",
    }
)
"""The keys of Kafka's own that are read here; no others are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    name: str
    host: str
    port: int
    security_protocol: str

    @property
    def address(self) -> str:
        """Where a client on this machine finds it: a listener that is bound to every address is on this one too."""
        return f"{'localhost' if self.host in _WILDCARDS else self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProperties:
    """``listeners`` are those that clients may use, by name, with the address that the broker advertises."""

    node_id: BrokerId | None
    log_dirs: tuple[str, ...]
    listeners: Mapping[str, Listener]
    inter_broker_listener: str
    retention_check_interval: float
    remote_task_interval: float
    is_remote_storage_enabled: bool


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
            self._refuse("process.roles", "this file is of a controller, which has no log dirs to guard")
        log_dirs = self._log_dirs()
        return BrokerProperties(
            node_id=self._node_id(log_dirs),
            log_dirs=log_dirs,
            listeners=self._listeners(),
            inter_broker_listener=self._inter_broker_listener(),
            retention_check_interval=self._milliseconds("log.retention.check.interval.ms", 300_000),
            remote_task_interval=self._milliseconds("remote.log.manager.task.interval.ms", 30_000),
            is_remote_storage_enabled=(self._reader.text("remote.log.storage.system.enable") or "").lower() == "true",
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
                        f"{name} is relative to the directory that the broker was started in, which this file does "
                        "not tell: give it with --broker-cwd, or write an absolute path",
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

    def _listeners(self) -> Mapping[str, Listener]:
        controllers = {name.upper() for name in _names(self._reader.text("controller.listener.names") or "")}
        bound = self._parse_listeners("listeners", _DEFAULT_LISTENERS)
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
