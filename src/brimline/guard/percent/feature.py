"""Retention in percent, as the guard has it: one task, its figures, its lines in the log.

Retention percentages as families of the catalogue and as members of ``/v1/state``. Pure.

``brimline.metrics.publish`` decides about KIP-1257's percentages. With ``auto`` a broker that has these gauges itself
(4.3 and later) is not doubled: only what it shows wrongly is published, which is every tiered topic of unlimited total
retention, whose gauges stand still there. Until the broker has answered there is nothing to double.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from brimline.documents.guard_state import (
    PercentagesDocument,
    PercentRow,
    RetentionDocument,
    TierRow,
    TierSizesDocument,
    TopicSizeDocument,
)
from brimline.guard.broker_client import BrokerClient
from brimline.guard.feature import Core, Feature
from brimline.guard.percent.percentages import PercentColumn, PlainFigures, TieredFigures, TierSizes
from brimline.guard.percent.task import PercentReport, PercentTask
from brimline.guard.percent.topic_sizes import OTHERS, TopicSize
from brimline.metrics import catalogue
from brimline.metrics.metric import LabelValues, Metric, MetricFamily
from brimline.model import Failure, Reason
from brimline.service.log_lines import say
from brimline.service.worker import Worker
from brimline.settings import keys

_HIGHEST = 10
_LARGEST = 5
"""Topics of each log dir in ``/v1/state``; ``brimline topics`` has all."""
PERCENTAGES = (
    catalogue.LOG_RETENTION_SIZE,
    catalogue.FUTURE_LOG_RETENTION_SIZE,
    catalogue.REMOTE_RETENTION_SIZE,
    catalogue.LOCAL_RETENTION_SIZE,
)


def percentage_families(report: PercentReport, publish: str) -> tuple[list[MetricFamily], list[str]]:
    """What is to be published, and the names of what is to be withdrawn."""
    families: list[MetricFamily] = [catalogue.BROKER_CONNECTED.single(int(report.failure is None))]
    gone: list[str] = []
    topics = topic_families(report.plain)
    families += topics
    gone += [] if topics else [catalogue.TOPIC_BYTES.name, catalogue.TOPIC_GROWTH.name]
    for metric, column in _percentages(report, publish):
        if column is None:
            gone.append(metric.name)
        else:
            families.append(metric.family(column.rows, column.values))
    return families, gone


def topic_families(plain: PlainFigures | None) -> list[MetricFamily]:
    if plain is None:
        return []
    growing = [each for each in plain.topics if each.growth is not None]
    return [
        catalogue.TOPIC_BYTES.family(_topic_rows(plain.topics), [each.bytes for each in plain.topics]),
        catalogue.TOPIC_GROWTH.family(_topic_rows(growing), [each.growth or 0.0 for each in growing]),
    ]


def _topic_rows(topics: Sequence[TopicSize]) -> LabelValues:
    return tuple((each.log_dir, each.topic) for each in topics)


def largest_topics(report: PercentReport) -> tuple[TopicSizeDocument, ...]:
    """The first few of each log dir; those that share a line are not counted among them."""
    shown: Counter[str] = Counter()
    found = []
    for each in report.plain.topics if report.plain is not None else ():
        shown[each.log_dir] += 1
        if each.topic != OTHERS and shown[each.log_dir] <= _LARGEST:
            growth = None if each.growth is None else round(each.growth)
            found.append(
                TopicSizeDocument(
                    log_dir=each.log_dir, topic=each.topic, bytes=each.bytes, growth_bytes_per_hour=growth
                )
            )
    return tuple(found)


def percentage_ages(report: PercentReport, seconds: float) -> list[MetricFamily]:
    ages = [
        (tier, seconds - figures.seconds)
        for tier, figures in (("log", report.plain), ("remote", report.tiered))
        if figures is not None
    ]
    return [catalogue.RETENTION_AGE.family(tuple((tier,) for tier, _ in ages), [age for _, age in ages])]


def retention_document(report: PercentReport, seconds: float) -> RetentionDocument:
    plain, tiered = report.plain, report.tiered
    return RetentionDocument(
        plain=None
        if plain is None
        else _column(
            plain.current,
            seconds - plain.seconds,
            {topic: failure.message for topic, failure in plain.unknown.items()},
        ),
        tiered=None
        if tiered is None
        else _column(
            tiered.total,
            seconds - tiered.seconds,
            {str(partition): reason.sentence for partition, reason in tiered.unknown.items()},
        ),
        sizes=None if tiered is None else _tier_sizes(tiered.sizes),
    )


def _tier_sizes(sizes: TierSizes) -> TierSizesDocument:
    known = {partition: found for partition, found in sizes.items() if not isinstance(found, Reason)}
    most = sorted(known, key=lambda partition: (-known[partition][1], partition))[:_HIGHEST]
    return TierSizesDocument(
        known=len(known),
        remote_bytes=sum(remote for remote, _ in known.values()),
        only_local_bytes=sum(only_local for _, only_local in known.values()),
        most_only_local=tuple(
            TierRow(
                topic=partition.topic,
                partition=partition.partition,
                remote_bytes=known[partition][0],
                only_local_bytes=known[partition][1],
            )
            for partition in most
        ),
        unknown={str(partition): found.sentence for partition, found in sizes.items() if isinstance(found, Reason)},
    )


def _column(column: PercentColumn, age: float, unknown: Mapping[str, str]) -> PercentagesDocument:
    fullest = np.argsort(-column.values, kind="stable")[:_HIGHEST].tolist()
    return PercentagesDocument(
        age_seconds=round(age, 3),
        partitions=len(column),
        over_100=int((column.values > 100).sum()),
        highest=tuple(
            PercentRow(topic=column.rows[row][0], partition=int(column.rows[row][1]), percent=int(column.values[row]))
            for row in fullest
        ),
        unknown=unknown,
    )


def _percentages(report: PercentReport, publish: str) -> list[tuple[Metric, PercentColumn | None]]:
    """Each of KIP-1257's metrics with the column to publish, or with ``None``."""
    if publish == "none" or report.publishes_percentages is None:
        return [(metric, None) for metric in PERCENTAGES]
    only_what_stock_lacks = publish == "auto" and report.publishes_percentages
    plain: PlainFigures | None = None if only_what_stock_lacks else report.plain
    tiered: TieredFigures | None = report.tiered
    total = tiered.total if tiered else None
    local = tiered.local if tiered else None
    if only_what_stock_lacks and tiered and total and local:
        total, local = _without(total, tiered.stock_is_right), _without(local, tiered.stock_is_right)
    columns = (plain.current if plain else None, plain.future if plain else None, total, local)
    return list(zip(PERCENTAGES, columns, strict=True))


def _without(column: PercentColumn, topics: frozenset[str]) -> PercentColumn:
    kept = np.array([topic not in topics for topic, _ in column.rows], dtype=np.bool_)
    rows = tuple(row for row, keep in zip(column.rows, kept.tolist(), strict=True) if keep)
    return PercentColumn(rows=rows, values=column.values[kept] if len(kept) else column.values)


class Percentages(Feature):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        broker = core.config.broker
        task = PercentTask(
            BrokerClient(core.config.admin, core.broker, core.clock, core.may_read),
            core.clock,
            broker.retention_check_interval,
            broker.remote_task_interval if broker.is_remote_storage_enabled else None,
            self.changed,
        )
        self._failure: Failure | None = None
        self.workers = [Worker("percentages", task.step)]

    def reloaded(self) -> None:
        self._publish()

    def current(self) -> Sequence[MetricFamily]:
        return percentage_ages(self.core.percents, self.core.clock.seconds())

    def document(self, seconds: float) -> Mapping[str, object]:
        report = self.core.percents
        return {"retention": retention_document(report, seconds), "topics": largest_topics(report)}

    def changed(self, report: PercentReport) -> None:
        self.core.percents = report
        self._publish()
        failure = report.failure
        if failure != self._failure:
            self._failure = failure
            if failure is None:
                say(logging.INFO, "broker-answers", "the broker answers; computing retention percentages")
            else:
                say(logging.WARNING, "broker-silent", f"the broker does not answer: {failure}", kind=failure.kind.value)

    def _publish(self) -> None:
        report = self.core.percents
        families, gone = percentage_families(report, self.core.config.text(keys.PUBLISH))
        self.core.board.put(*families)
        if gone:
            self.core.board.remove(*gone)
        if report.failure is not None:
            self.core.count(catalogue.ERRORS, report.failure.kind.value)
