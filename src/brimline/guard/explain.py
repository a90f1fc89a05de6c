"""The effective configuration in plain words, and what is wrong with it. Pure: facts in, sentences out."""

from collections.abc import Iterable, Iterator, Mapping

from brimline.decide.disk_state import Breach, DiskLimits, DiskState, limits_never_met
from brimline.disks.sentences import how_full, named_log_dirs, refusal, state_sentence
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.documents.notices import Weight
from brimline.guard.feature import Finding
from brimline.metrics.jmx_settings import USER, JmxSettings
from brimline.model import Bytes, human_bytes, human_percent
from brimline.settings import keys
from brimline.settings.config import GuardConfig


def explain_config(config: GuardConfig) -> Iterator[Finding]:
    def note(sentence: str, weight: Weight = Weight.FINE) -> Finding:
        return Finding(topic="configuration", weight=weight, sentence=sentence)

    limits = config.limits
    yield note(f"Broker {config.node_id}, {_count(config.broker.log_dirs, 'log dir')} ({config.path})")
    yield note(_limit_sentence(limits), Weight.WARNING if limits.are_off else Weight.FINE)
    interval = config.seconds(keys.CHECK_INTERVAL)
    sooner = f", near a limit up to every {config.pace.floor:g} s" if config.pace.fast else ""
    yield note(f"volumes are checked every {interval:g} s{sooner}")
    if limits.release_margin_percent:
        yield note(
            f"a full log dir reopens when it is {limits.release_margin_percent} % of its volume below its limits"
        )
    yield note(_enforcement_sentence(config), Weight.FINE if config.is_enforcing else Weight.NOTE)
    yield note(
        f"metrics on http://{config.text(keys.METRICS_HOST)}:{config.number(keys.METRICS_PORT)}/metrics"
        + ("; no JMX" if config.jmx is None else f"; JMX on {_jmx_sentence(config.jmx)}")
    )
    if config.jmx is not None and config.jmx.is_open:
        yield note(
            f"JMX on port {config.jmx.port} asks for no password: anyone who reaches it can read the secrets of its "
            "JVM and write files as the guard's user; remove "
            "brimline.jmx.com.sun.management.jmxremote.authenticate, and the guard makes a read-only login",
            Weight.WARNING,
        )
    for warning in config.warnings:
        yield note(warning, Weight.WARNING)


def explain_disks(config: GuardConfig, report: DiskReport, mount_points: Mapping[str, str]) -> Iterator[Finding]:
    for volume in report.volumes:
        yield from _explain_volume(config, volume, mount_points)


def _explain_volume(config: GuardConfig, volume: VolumeStatus, mount_points: Mapping[str, str]) -> Iterator[Finding]:
    def finding(weight: Weight, sentence: str, topic: str = "volumes") -> Finding:
        return Finding(topic=topic, weight=weight, sentence=sentence)

    reading = volume.reading
    if volume.state is DiskState.UNKNOWN:
        yield finding(Weight.PROBLEM, state_sentence(volume))
        return
    mounted = mount_points.get(reading.device)
    where = f"device {reading.device}" + (f", mounted on {mounted}" if mounted else "")
    yield finding(Weight.FINE, f"{named_log_dirs(volume)}: {where}: {how_full(volume)}")
    if len(volume.log_dirs) > 1:
        yield finding(
            Weight.NOTE,
            f"{named_log_dirs(volume)} share one volume: they fill together, and the limits apply to the volume",
        )
    if volume.state is DiskState.FULL:
        yield finding(Weight.WARNING, state_sentence(volume))
    yield from _explain_acts(config, volume)
    if reading.total_bytes is not None:
        yield from _explain_limits(volume, reading.total_bytes, reading.reserved_bytes or Bytes(0), config)


def _explain_acts(config: GuardConfig, volume: VolumeStatus) -> Iterator[Finding]:
    """Refusing may be enforced; what is deleted is said where the ceiling is explained."""
    refused = refusal(volume, enforced=config.is_enforcing)
    if refused is not None:
        yield Finding(topic="volumes", weight=Weight.NOTE, sentence=refused)


def _explain_limits(volume: VolumeStatus, total: Bytes, reserved: Bytes, config: GuardConfig) -> Iterator[Finding]:
    limits = config.limits
    never_met = limits_never_met(total, reserved, limits)
    if Breach.MIN_FREE_BYTES in never_met:
        yield _limit(
            Weight.PROBLEM,
            f"{named_log_dirs(volume)}: {keys.MIN_FREE_BYTES.name}={limits.min_free_bytes} "
            f"({human_bytes(limits.min_free_bytes)}, {_where(config, keys.MIN_FREE_BYTES)}) is more than the "
            f"{human_bytes(total - reserved)} that an empty volume has: it would always be full",
        )
    elif not limits.bytes_is_off and limits.min_free_bytes * 2 > total:
        yield _limit(
            Weight.WARNING,
            f"{named_log_dirs(volume)}: {keys.MIN_FREE_BYTES.name} keeps {human_bytes(limits.min_free_bytes)} of "
            f"{human_bytes(total)} free, more than half of the volume",
        )
    if Breach.MAX_USED_PERCENT in never_met:
        yield _limit(
            Weight.PROBLEM,
            f"{named_log_dirs(volume)}: {keys.MAX_USED_PERCENT.name}={limits.max_used_percent} is exceeded even by "
            f"an empty volume: the file system reserves {human_bytes(reserved)} "
            f"({human_percent(reserved * 100 / total)}) for root, which counts as used",
        )
    elif reserved and not limits.percent_is_off:
        yield _limit(
            Weight.NOTE,
            f"{named_log_dirs(volume)}: {human_bytes(reserved)} ({human_percent(reserved * 100 / total)}) are "
            "reserved for root and count as used",
        )


def _limit(weight: Weight, sentence: str) -> Finding:
    return Finding(topic="limits", weight=weight, sentence=sentence)


def _jmx_sentence(jmx: JmxSettings) -> str:
    login = jmx.own_login
    who = f", for the user {USER} with the password in {login.passwords}" if login else ""
    return f"{jmx.host}:{jmx.port}{who}"


def _enforcement_sentence(config: GuardConfig) -> str:
    if not config.is_enforcing:
        return "observe mode: reports, refuses nothing"
    error = config.text(keys.REJECT_ERROR)
    names = {number: name for name, number in keys.REJECT_ERROR.names.items()}
    return f"enforcing: writes to a full log dir are refused with error {error} {names[error]}"


def _limit_sentence(limits: DiskLimits) -> str:
    if limits.are_off:
        return "both limits are off (100 and 0): no log dir is ever full"
    parts = []
    if not limits.percent_is_off:
        parts.append(f"more than {limits.max_used_percent} % of its volume is used")
    if not limits.bytes_is_off:
        parts.append(f"less than {human_bytes(limits.min_free_bytes)} of it is usable")
    return f"a log dir is full when {' or '.join(parts)}"


def _where(config: GuardConfig, key: keys.Key) -> str:
    return config.settings[key.name].where


def _count(things: Iterable[object], noun: str) -> str:
    number = len(list(things))
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
