"""The configuration of guard and gateway: the broker's own file, read through the table of keys.

Everything that is wrong is said at once, each with key, value, what is allowed, file and line: an operator who must
restart a daemon to find the next mistake finds them on the worst of days.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from brimline.decide.disk_state import DiskLimits
from brimline.decide.fill_rate import Pace
from brimline.decide.followers import AUTO, FollowerAction
from brimline.metrics.jmx_settings import PASSED_THROUGH, JmxLogin, JmxSettings
from brimline.model import BadInput, BrokerId, Bytes
from brimline.model.reclaim import CEILING_OFF, ReclaimPolicy
from brimline.observe.client.config import ClientConfig
from brimline.observe.properties import broker_properties
from brimline.observe.properties.broker_properties import BrokerProperties, BrokerPropertiesReader
from brimline.observe.properties.config_providers import resolve_references
from brimline.observe.properties.java_properties import JavaProperties, PropertyReader, load_properties
from brimline.observe.properties.key_stores import ListenerTls
from brimline.settings import keys
from brimline.settings.admin import AdminAccess, admin_access
from brimline.settings.gateway import (
    protected_patterns,
    read_layout,
    read_tls,
    refuse_landing,
    refuse_source,
    refuse_state_dir,
)
from brimline.settings.keys import BY_NAME, KEYS, Key, Value
from brimline.settings.layout import GatewayLayout

_OWN = "brimline."
_OF_THE_KIPS = ("disk.", "log.retention.disk.")
"""Kafka has no key that begins so."""
DEFAULT = "default"
_LOW_CEILING = 10
_READABLE = ("PLAINTEXT", "SASL_PLAINTEXT")


class BadConfig(BadInput):
    """A properties file that the guard cannot run with; its text has a line for every problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A key's value that counts, and where it was written."""

    key: Key
    value: Value
    where: str

    @property
    def is_default(self) -> bool:
        return self.where == DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardConfig:
    """What guard and gateway run by. ``settings`` has every key of the table, for whoever explains it.

    ``tls`` has every fronted listener with TLS on either side, or what is wrong with its settings: the guard does its
    work without them.
    """

    path: str
    node_id: BrokerId
    broker: BrokerProperties
    admin: ClientConfig
    admin_access: AdminAccess
    jmx: JmxSettings | None
    layout: GatewayLayout
    tls: Mapping[str, ListenerTls | BadInput] = field(repr=False)
    settings: Mapping[str, Setting]
    warnings: tuple[str, ...] = ()

    def number(self, key: Key) -> int:
        value = self.settings[key.name].value
        assert isinstance(value, int)
        return value

    def flag(self, key: Key) -> bool:
        return self.settings[key.name].value is True

    def text(self, key: Key) -> str:
        return str(self.settings[key.name].value)

    def seconds(self, key: Key) -> float:
        return self.number(key) / 1000

    @property
    def is_enforcing(self) -> bool:
        return self.text(keys.ENFORCEMENT) == keys.GATEWAY

    @property
    def intercepts(self) -> bool:
        return self.text(keys.INTERCEPTION) != keys.OFF

    @property
    def why_no_own_skips(self) -> str | None:
        """Why this broker's own fetches cannot be turned aside and read; ``None``: they can."""
        if not self.intercepts:
            return f"{keys.INTERCEPTION.name} is {keys.OFF}"
        if not self.is_enforcing:
            return f"{keys.ENFORCEMENT.name} is {self.text(keys.ENFORCEMENT)}"
        inter_broker = self.broker.inter_broker_listener
        if self.broker.bound_listeners[inter_broker].security_protocol not in _READABLE:
            return f"the brokers use TLS among themselves ({inter_broker}), which the gateway cannot read"
        others = self.text(keys.ADMIN_LISTENER).upper() not in ("", inter_broker) or self.text(keys.ADMIN_SERVERS)
        return "the guard's own client does not use the brokers' own listener" if others else None

    @property
    def skips_own_fetches(self) -> bool:
        is_wanted = self.text(keys.FOLLOWER_ACTION) in (AUTO, FollowerAction.SKIP.value)
        return is_wanted and self.why_no_own_skips is None

    @property
    def reject_error(self) -> int:
        return int(self.text(keys.REJECT_ERROR))

    @property
    def state_dir(self) -> Path:
        return Path(self.text(keys.STATE_DIR))

    @property
    def limits(self) -> DiskLimits:
        return DiskLimits(
            max_used_percent=self.number(keys.MAX_USED_PERCENT),
            min_free_bytes=Bytes(self.number(keys.MIN_FREE_BYTES)),
            release_margin_percent=self.number(keys.RELEASE_MARGIN),
        )

    @property
    def holds_cleaner(self) -> bool:
        return self.is_enforcing and self.flag(keys.HOLD_CLEANER)

    @property
    def has_ceiling(self) -> bool:
        return self.number(keys.RETENTION_PERCENT) < CEILING_OFF

    @property
    def guards(self) -> list[str]:
        return [url for each in self.text(keys.GUARDS).split(",") if (url := each.strip())]

    @property
    def reclaim_policy(self) -> ReclaimPolicy:
        most, most_percent = self.number(keys.RECLAIM_MAX_BYTES), self.number(keys.RECLAIM_MAX_PERCENT)
        return ReclaimPolicy(
            ceiling_percent=self.number(keys.RETENTION_PERCENT),
            min_retention_ms=self.number(keys.RECLAIM_MIN_RETENTION_MS),
            min_retention_bytes=self.number(keys.RECLAIM_MIN_RETENTION_BYTES),
            max_bytes_per_cycle=None if most < 0 else most,
            max_percent_per_cycle=None if most_percent < 0 else most_percent,
            protected_topics=protected_patterns(self.text(keys.RECLAIM_PROTECTED)),
            spares_compacted=self.flag(keys.RECLAIM_COMPACTED),
            spares_transactions=self.flag(keys.RECLAIM_TRANSACTIONS),
            only_curable=self.flag(keys.RECLAIM_CURABLE),
            spares_for_ever=self.flag(keys.RECLAIM_FOR_EVER),
            shares_brakes=self.text(keys.RECLAIM_BRAKES) == keys.SHARED,
            max_used_percent=self.limits.max_used_percent,
            min_free_bytes=self.limits.min_free_bytes,
            yields_at_reserve=not self.is_enforcing,
        )

    @property
    def pace(self) -> Pace:
        return Pace(
            interval=self.seconds(keys.CHECK_INTERVAL),
            floor=self.seconds(keys.FAST_SAMPLING_FLOOR),
            fast=bool(self.settings[keys.FAST_SAMPLING.name].value),
        )


def load_config(path: Path | str, environment: Mapping[str, str], broker_cwd: str | None = None) -> GuardConfig:
    """Read a broker's properties file; ``BadConfig`` names everything that is wrong with it."""
    return read_config(load_properties(path), str(path), environment, broker_cwd)


def read_config(
    raw: JavaProperties, path: str, environment: Mapping[str, str], broker_cwd: str | None = None
) -> GuardConfig:
    properties, problems = resolve_references(raw, environment, keys=is_read)
    warnings = list(_duplicates(properties))
    reader = PropertyReader(properties)
    settings = _settings(reader, problems, warnings)
    broker = _broker(BrokerPropertiesReader(properties, broker_cwd), path, problems, warnings)
    try:
        access = admin_access(properties, broker, settings[keys.ADMIN_LISTENER.name].value, path)
        admin = access.client_config()
        warnings += admin.warnings
    except BadInput as problem:
        problems.append(problem)
    try:
        jmx = _jmx_settings(properties, settings, broker.node_id)
    except BadInput as problem:
        problems.append(BadInput(f"{path}: {problem}"))
    try:
        _refuse_impossible(reader, settings, broker.node_id)
        layout = read_layout(reader, broker, str(settings[keys.ADMIN_LISTENER.name].value))
    except BadInput as problem:
        problems.append(problem)
    if problems or broker.node_id is None:
        raise BadConfig(tuple(dict.fromkeys(str(problem) for problem in problems)))
    return GuardConfig(
        path=path,
        node_id=broker.node_id,
        broker=broker,
        admin=admin,
        admin_access=access,
        jmx=jmx,
        layout=layout,
        tls=read_tls(raw, layout, environment, broker_cwd),
        settings=settings,
        warnings=tuple(warnings),
    )


def _broker(
    reader: BrokerPropertiesReader, path: str, problems: list[BadInput], warnings: list[str]
) -> BrokerProperties:
    broker = reader.read()
    problems += reader.problems
    warnings += reader.warnings
    if broker.node_id is None and not reader.problems:
        problems.append(BadInput(f"{path}: node.id: not set, and no meta.properties in a log dir has it"))
    return broker


def _settings(reader: PropertyReader, problems: list[BadInput], warnings: list[str]) -> dict[str, Setting]:
    """Every key's; what is wrong or odd about the keys is added to ``problems`` and ``warnings``."""
    settings = _each_setting(reader, problems)
    problems += _unknown_keys(reader.properties)
    problems += _bad_patterns(reader, settings)
    warnings += _apply_alias(reader, settings, problems)
    warnings += _near_misses(reader.properties)
    warnings += _low_ceiling(settings[keys.RETENTION_PERCENT.name])
    return settings


def _each_setting(reader: PropertyReader, problems: list[BadInput]) -> dict[str, Setting]:
    settings = {}
    policy = keys.CAREFUL
    for key in (keys.RECLAIM_POLICY, *KEYS):  # that one first: the defaults of others depend on it
        try:
            settings[key.name] = _setting(key, reader, policy)
        except BadInput as problem:
            if key.name not in settings:
                problems.append(problem)
            settings[key.name] = Setting(key=key, value=key.default_under(policy), where=DEFAULT)
        policy = str(settings[keys.RECLAIM_POLICY.name].value)
    return settings


def _refuse_impossible(reader: PropertyReader, settings: Mapping[str, Setting], node_id: BrokerId | None) -> None:
    refuse_landing(reader, str(settings[keys.LANDING_URI.name].value))
    refuse_state_dir(reader, str(settings[keys.STATE_DIR.name].value), node_id)
    refuse_source(reader, str(settings[keys.GATEWAY_SOURCE.name].value))


def _jmx_settings(
    properties: JavaProperties, settings: Mapping[str, Setting], node_id: int | None
) -> JmxSettings | None:
    port = settings[keys.JMX_PORT.name].value
    if not isinstance(port, int) or port == 0:
        return None
    java = str(settings[keys.JMX_JAVA.name].value)
    own = [key for key in properties if key.startswith(keys.JMX_PREFIX.name)]
    passed = {key.removeprefix(keys.JMX_PREFIX.name): properties[key] for key in own}
    return JmxSettings(
        port=port,
        host=str(settings[keys.JMX_HOST.name].value),
        properties={name: value for name, value in passed.items() if name.startswith(PASSED_THROUGH)},
        login=None if node_id is None else JmxLogin(Path(str(settings[keys.STATE_DIR.name].value)), node_id),
        java=Path(java) if java else None,
    )


def is_read(key: str) -> bool:
    """Whether a key is read at all: the broker's other secrets are nobody's business here."""
    return key in BY_NAME or broker_properties.is_read(key) or key.startswith(_OWN)


def _setting(key: Key, reader: PropertyReader, policy: str) -> Setting:
    text = reader.text(key.name)
    if text is None:
        return Setting(key=key, value=key.default_under(policy), where=DEFAULT)
    try:
        value = key.parse(text)
    except ValueError:
        raise reader.refusal(key.name, f"allowed: {key.allowed}") from None
    return Setting(key=key, value=value, where=reader.properties.entry(key.name).where)


def _bad_patterns(reader: PropertyReader, settings: Mapping[str, Setting]) -> Iterator[BadInput]:
    """A pattern that protects nothing by mistake would be found out by what is lost."""
    name = keys.RECLAIM_PROTECTED.name
    dropped = reader.properties.entry(name).dropped if name in reader.properties else ""
    if dropped:
        yield reader.refusal(
            name,
            f"a properties file drops the backslash before {dropped[0]}: write two, as in \\\\{dropped[0]}",
        )
        return
    try:
        protected_patterns(str(settings[name].value))
    except ValueError as error:
        yield reader.refusal(name, str(error))


def _unknown_keys(properties: JavaProperties) -> Iterator[BadInput]:
    known_prefixes = (keys.ADMIN_PREFIX.name, *(keys.JMX_PREFIX.name + passed for passed in PASSED_THROUGH))
    for name in properties:
        if name.startswith(_OWN) and name not in BY_NAME and not name.startswith(known_prefixes):
            yield BadInput(f"{properties.entry(name).where}: {name}: no such key{_suggestion(name)}")


def _near_misses(properties: JavaProperties) -> Iterator[str]:
    """Kafka ignores what it does not know, so a mistyped limit would be silence."""
    for name in properties:
        if name.startswith(_OF_THE_KIPS) and name not in BY_NAME:
            where = properties.entry(name).where
            yield f"{where}: {name}: unknown to Kafka and Brimline{_suggestion(name)}"


def _low_ceiling(ceiling: Setting) -> Iterator[str]:
    """It is what the operator says; perhaps a digit is missing."""
    if isinstance(ceiling.value, int) and ceiling.value < _LOW_CEILING:
        yield (
            f"{ceiling.where}: {ceiling.key.name}={ceiling.value}: a ceiling below {_LOW_CEILING} % deletes almost "
            f"everything; was {ceiling.value or 8}0 meant?"
        )


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _apply_alias(reader: PropertyReader, settings: dict[str, Setting], problems: list[BadInput]) -> Iterator[str]:
    """``disk.free.limit.bytes`` is the same setting. Given twice with two values, neither can be right."""
    alias, named = settings[keys.FREE_LIMIT_BYTES.name], settings[keys.MIN_FREE_BYTES.name]
    if alias.is_default:
        settings[alias.key.name] = Setting(key=alias.key, value=named.value, where=named.where)
        return
    if not named.is_default and named.value != alias.value:
        problems.append(
            reader.refusal(
                alias.key.name,
                f"contradicts {named.key.name}={named.value} ({named.where}): they are one setting; keep the latter",
            )
        )
        return
    settings[named.key.name] = Setting(key=named.key, value=alias.value, where=alias.where)
    yield f"{alias.where}: {alias.key.name} is the KIP's second spelling of {named.key.name}: use that"


def _duplicates(properties: JavaProperties) -> Iterator[str]:
    for key, entries in properties.duplicates().items():
        if is_read(key):
            lines = ", ".join(str(entry.line) for entry in entries)
            yield f"{entries[0].source}: {key} is on lines {lines}; the last one counts, as in Kafka"
