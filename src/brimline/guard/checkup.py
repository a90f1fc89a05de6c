"""``brimline guard --check`` and ``brimline doctor``: looks at everything once and says what it means for the guard.

It changes nothing, on disk or in the cluster. File systems are looked at as the guard looks at them, so that a dead one
delays the answer by the stall timeout and no more.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from brimline.disks.reserves import Reserves
from brimline.disks.task import DiskReport, DiskSettings, DiskTask
from brimline.documents.notices import Weight
from brimline.guard.broker_client import BrokerClient
from brimline.guard.explain import explain_config, explain_disks
from brimline.guard.feature import TOPICS, Finding, Looked
from brimline.guard.features import FEATURES
from brimline.guard.offline import offline_notice
from brimline.guard.percent.percentages import tiered_partitions
from brimline.metrics.jmx import why_no_jmx
from brimline.model import (
    Failure,
    FailureKind,
    LogDirDescription,
    ObservationFailed,
    Reason,
    counted,
    human_bytes,
)
from brimline.model.secrets import without_login
from brimline.observe.cluster.partition_facts import PartitionFacts
from brimline.observe.volumes import VolumeReading, mount_points
from brimline.service.clock import Clock
from brimline.service.durable_files import why_untrusted
from brimline.settings import keys
from brimline.settings.config import GuardConfig

_POLL = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckUp:
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.weight is Weight.PROBLEM)


def check_up(config: GuardConfig, clock: Clock) -> CheckUp:
    report = _look_at_disks(config, clock)
    of_broker = list(_broker(config, report, clock))
    is_silent = any(finding.topic == "broker" and finding.weight is Weight.PROBLEM for finding in of_broker)
    looked = Looked(config=config, clock=clock, disks=report, broker_answers=not is_silent)
    findings = [
        *explain_config(config),
        *explain_disks(config, report, mount_points()),
        *_permissions(report),
        *_state_dir(config),
        *_jmx(config),
        *of_broker,
        *(finding for feature in FEATURES for finding in feature.findings(looked)),
    ]
    findings.sort(key=lambda finding: TOPICS.index(finding.topic))
    return CheckUp(findings=tuple(replace(each, sentence=without_login(each.sentence)) for each in findings))


def _look_at_disks(config: GuardConfig, clock: Clock) -> DiskReport:
    settings = DiskSettings(limits=config.limits, pace=config.pace, stall_timeout=config.seconds(keys.STALL_TIMEOUT))
    reserves = Reserves(config.state_dir, config.node_id, lambda: config.text(keys.RESERVE))
    reserves.refresh()
    disks = DiskTask(
        config.broker.log_dirs,
        settings,
        clock,
        lambda: None,
        lambda _was, _volume: None,
        limits_of=reserves.limits_of,
    )
    disks.step()
    while not disks.has_answers():
        time.sleep(_POLL)
    disks.step()
    return disks.report


def _permissions(report: DiskReport) -> Iterator[Finding]:
    """Reading is enough, and reading is needed: for the scan and for exact sizes of tiered partitions."""
    for volume in report.volumes:
        if volume.reading.failure is not None:
            continue
        for log_dir in volume.log_dirs:
            if os.access(log_dir, os.R_OK | os.X_OK):
                continue
            yield _finding(
                "permissions",
                Weight.PROBLEM,
                f"{log_dir} cannot be listed by this user (uid {os.geteuid()}): disk limits work, scans and exact "
                "tiered totals do not; add the user to the group that owns the log dir, with r-x",
            )


def _state_dir(config: GuardConfig) -> Iterator[Finding]:
    why = why_untrusted(config.state_dir)
    if why is not None:
        yield _finding(
            "permissions",
            Weight.PROBLEM,
            f"{keys.STATE_DIR.name}: {why}; nothing is deleted until then: others could remove a pause or pose as "
            "the gateway",
        )


def _jmx(config: GuardConfig) -> Iterator[Finding]:
    lack = why_no_jmx() if config.jmx is not None and config.jmx.java is None else None
    if lack is not None:
        yield _finding("configuration", Weight.PROBLEM, lack)


def _broker(config: GuardConfig, report: DiskReport, clock: Clock) -> Iterator[Finding]:
    readable = {path for volume in report.volumes if volume.reading.failure is None for path in volume.log_dirs}
    client = BrokerClient(config.admin, config.node_id, clock, readable.__contains__)
    try:
        facts = client.partition_facts()
        yield from _answered(config, facts, client.release())
        yield from _same_disks(config, facts, report)
        led = {
            partition: size
            for partition, size in tiered_partitions(facts).items()
            if partition.partition in facts.topics[partition.topic].led_partitions
        }
        if led:
            yield from _tiered(
                {reason for reason in client.remote_sizes(facts, led).values() if isinstance(reason, Reason)}
            )
    except ObservationFailed as error:
        yield _finding("broker", Weight.PROBLEM, f"the broker does not answer: {error.failure}{_hint(error.failure)}")
    finally:
        client.close()


def _hint(failure: Failure) -> str:
    if failure.kind is FailureKind.NOT_AUTHORIZED:
        return "; grant it with kafka-acls.sh --add --allow-principal … --operation Describe --cluster"
    if failure.kind in (FailureKind.NOT_AUTHENTICATED, FailureKind.TLS_FAILED):
        return "; set up the guard's client with brimline.admin.*"
    return ""


def _answered(config: GuardConfig, facts: PartitionFacts, release: str) -> Iterator[Finding]:
    replicas = sum(len(log_dir.replicas) for log_dir in facts.log_dirs.values())
    yield _finding(
        "broker",
        Weight.FINE,
        f"broker {config.node_id} answers at {facts.answer.address}: Kafka {release} by its protocol, "
        f"{counted(replicas, 'replica')} of {counted(len(facts.topics) + len(facts.unknown), 'topic')}",
    )
    yield _published(config.text(keys.PUBLISH), facts)
    for kind in {failure.kind for failure in facts.unknown.values()}:
        topics = sorted(topic for topic, failure in facts.unknown.items() if failure.kind is kind)
        needs = (
            "; this principal needs DESCRIBE and DESCRIBE_CONFIGS on them" if kind is FailureKind.NOT_AUTHORIZED else ""
        )
        yield _finding(
            "permissions",
            Weight.PROBLEM,
            f"no percentages for {counted(len(topics), 'topic')} ({topics[0]}{', …' * (len(topics) > 1)}): "
            f"{kind.value}{needs}",
        )


def _published(publish: str, facts: PartitionFacts) -> Finding:
    if publish == "none":
        return _finding(
            "broker", Weight.NOTE, "retention percentages are not published (brimline.metrics.publish=none)"
        )
    if publish == "auto" and facts.publishes_percentages:
        return _finding(
            "broker",
            Weight.WARNING,
            "the broker publishes retention percentages itself: with brimline.metrics.publish=auto the guard adds only "
            "those of tiered topics with unlimited retention.bytes, which the broker's own gauges do not update. "
            "Scrape the broker's JMX with deploy/jmx_exporter/brimline-rules.yml, or set "
            "brimline.metrics.publish=all: otherwise dashboard and alerts do not see the others",
        )
    return _finding("broker", Weight.FINE, "the guard publishes the retention percentages of all its replicas")


def _same_disks(config: GuardConfig, facts: PartitionFacts, report: DiskReport) -> Iterator[Finding]:
    """A guard in another container than its broker would watch the wrong disks and never know."""
    readings = {path: volume.reading for volume in report.volumes for path in volume.log_dirs}
    for path in sorted(set(facts.log_dirs) - set(config.broker.log_dirs)):
        yield _finding(
            "volumes", Weight.PROBLEM, f"the broker has the log dir {path}, which {config.path} does not name"
        )
    for path in config.broker.log_dirs:
        log_dir = facts.log_dirs.get(path)
        if log_dir is None:
            yield _finding(
                "volumes", Weight.PROBLEM, f"the broker does not have the log dir {path}: is {config.path} its file?"
            )
        elif log_dir.error is not None:
            yield Finding.of(offline_notice(path, config.node_id), "volumes")
        else:
            yield from _same_size(path, log_dir, readings.get(path))


def _same_size(path: str, log_dir: LogDirDescription, reading: VolumeReading | None) -> Iterator[Finding]:
    seen = reading.total_bytes if reading else None
    if seen is not None and log_dir.total_bytes not in (None, seen):
        yield _finding(
            "volumes",
            Weight.PROBLEM,
            f"{path} is a volume of {human_bytes(log_dir.total_bytes)} for the broker and of {human_bytes(seen)} here: "
            "the guard does not see the broker's disks: run it in the same mount namespace",
        )


def _tiered(reasons: set[Reason]) -> Iterator[Finding]:
    for reason in sorted(reasons):
        weight = Weight.NOTE if reason is Reason.CHANGING else Weight.PROBLEM
        yield _finding("permissions", weight, f"some tiered totals are unknown: {reason.sentence}")


def _finding(topic: str, weight: Weight, sentence: str) -> Finding:
    return Finding(topic=topic, weight=weight, sentence=sentence)
