"""What is told of replicas that were shed: a count, a part of ``/v1/state``, the way back, and lines in the log."""

import json
import logging
import shlex
from collections import Counter
from collections.abc import Sequence

from brimline.act.ledger.entries import ShedEntry
from brimline.documents.guard_state import FailureDocument, ShedDocument
from brimline.guard.followers.shedding import SheddingReport
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model import TopicPartition, counted, human_bytes
from brimline.service.log_lines import say

_SHOWN = 10


def shed_families(report: SheddingReport) -> list[MetricFamily]:
    counts = sorted(Counter(each.follower for each in report.shed).items())
    rows = tuple((str(broker),) for broker, _ in counts)
    return [catalogue.FOLLOWER_SHED.family(rows, [count for _, count in counts])]


def shed_document(report: SheddingReport, servers: str) -> ShedDocument | None:
    if not report.shed and report.failure is None:
        return None
    return ShedDocument(
        partitions=tuple(str(each.partition) for each in report.shed),
        failure=FailureDocument.of(report.failure),
        does=shed_sentence(report),
        what_to_do=how_to_put_back(report.shed, servers) if report.shed else None,
    )


def shed_sentence(report: SheddingReport) -> str:
    if report.failure is not None:
        return f"replicas cannot be removed from a full disk or tracked: {report.failure}"
    brokers = ", ".join(map(str, sorted({each.follower for each in report.shed})))
    names = [str(each.partition) for each in report.shed]
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"{counted(len(names), 'replica')} removed because a disk of broker {brokers} was full, not put back: "
        f"{', '.join(names[:_SHOWN])}{rest}"
    )


def how_to_put_back(shed: Sequence[ShedEntry], servers: str) -> str:
    """One that was shed from two brokers has the assignment from before the first."""
    firsts: dict[TopicPartition, ShedEntry] = {}
    for each in shed:
        firsts.setdefault(each.partition, each)
    partitions = [
        {"topic": each.partition.topic, "partition": each.partition.partition, "replicas": list(each.before)}
        for each in list(firsts.values())[:_SHOWN]
    ]
    document = json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))
    rest = " (the others likewise: brimline ledger)" if len(firsts) > _SHOWN else ""
    return (
        f"when that disk has room, put them back{rest}: echo {shlex.quote(document)} | "
        f"kafka-reassign-partitions.sh --bootstrap-server {shlex.quote(servers)} --execute "
        "--reassignment-json-file /dev/stdin"
    )


class ShedNews:
    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._shed: tuple[ShedEntry, ...] = ()
        self._failure: str | None = None

    def tell(self, report: SheddingReport) -> None:
        for each in report.new:
            say(
                logging.WARNING,
                "replica-shed",
                f"{each.partition} removed from broker {each.follower} ({human_bytes(each.size)} in "
                f"{each.log_dir}): {each.why}; {how_to_put_back([each], self._servers)}",
                topic=each.partition.topic,
                partition=each.partition.partition,
                follower=each.follower,
                replicas_before=",".join(map(str, each.before)),
            )
        for each in self._shed:
            if each not in report.shed:
                say(
                    logging.INFO,
                    "replica-shed-over",
                    f"{each.partition} was reassigned again",
                    topic=each.partition.topic,
                    partition=each.partition.partition,
                )
        self._shed = report.shed
        failure = None if report.failure is None else str(report.failure)
        if failure is not None and failure != self._failure:
            say(logging.ERROR, "shed-failed", shed_sentence(report))
        self._failure = failure
