"""The guard's gateway: told what is full, asked for its figures, published.

In ``/v1/state`` is what ``status`` needs of it. All its counters are in ``/metrics``.
"""

from collections.abc import Iterator, Mapping, Sequence

from brimline.decide.admission import FenceCause, named_topics
from brimline.disks.sentences import OFFLINE_CURE, how_to_lift, reasons_of_full_log_dirs
from brimline.disks.task import DiskReport
from brimline.documents.gateway_state import GatewayState, RefusedBatches, Skips, StandingFence
from brimline.documents.guard_state import (
    AnswerDocument,
    FailureDocument,
    FenceDocument,
    GatewayDocument,
    LatelyDocument,
    ListenerDocument,
    RefusedRow,
    RefusedSum,
)
from brimline.documents.notices import Notice, Weight
from brimline.gateway.client import GatewayClient, control_socket
from brimline.gateway.net.source import seen_address
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.guard.gateway_link.address_limits import address_task, ask_rules
from brimline.guard.gateway_link.checks import check_gateway, check_upstreams
from brimline.guard.gateway_link.findings import explain_addresses, explain_layout
from brimline.guard.gateway_link.task import GatewayNews, GatewayReport, GatewayTask, Lately
from brimline.guard.percent.percentages import PlainFigures
from brimline.guard.percent.topic_sizes import largest_in
from brimline.metrics import catalogue
from brimline.metrics.metric import Metric, MetricFamily
from brimline.model import human_bytes
from brimline.service.worker import Worker
from brimline.settings import keys
from brimline.settings.config import GuardConfig


def gateway_document(
    report: GatewayReport, config_path: str, offline: frozenset[str] = frozenset()
) -> GatewayDocument | None:
    if report.is_absent:
        return None
    return GatewayDocument(
        up=report.state is not None,
        failure=FailureDocument.of(report.failure),
        state=None if report.state is None else _answer(report.state, report.lately, config_path, offline),
    )


def _answer(state: GatewayState, lately: Lately, config_path: str, offline: frozenset[str]) -> AnswerDocument:
    return AnswerDocument(
        version=state.version,
        pid=state.pid,
        started_at=state.started_at,
        enforcement=state.enforcement,
        reject_error=state.reject_error,
        draining=state.draining,
        listeners=tuple(
            ListenerDocument(
                name=each.name,
                address=each.address,
                upstream=each.upstream,
                protocol=each.protocol,
                connections=each.connections,
            )
            for each in state.listeners
        ),
        connections=state.connections.open,
        fences=tuple(_fence(fence, config_path, offline) for fence in state.fences),
        refused=_sum(state.refusals),
        would_have_refused=_sum(state.would_have_refused),
        lately=LatelyDocument(
            seconds=round(lately.seconds, 1),
            batches=lately.batches,
            bytes=lately.bytes,
            most=tuple(
                RefusedRow(
                    topic=row.topic, partition=row.partition, client=row.client, batches=row.batches, bytes=row.bytes
                )
                for row in lately.most
            ),
        ),
    )


def _fence(fence: StandingFence, config_path: str, offline: frozenset[str]) -> FenceDocument:
    return FenceDocument(
        log_dir=fence.log_dir,
        topic=fence.topic,
        cause=fence.cause,
        reason=fence.reason,
        since=fence.since,
        by=fence.by,
        partitions=fence.partitions,
        what_to_do=OFFLINE_CURE if fence.log_dir in offline else how_to_lift(fence, config_path),
    )


def _sum(rows: Sequence[RefusedBatches]) -> RefusedSum:
    return RefusedSum(batches=sum(row.batches for row in rows), bytes=sum(row.bytes for row in rows))


def reasons_for_clients(disks: DiskReport, figures: PlainFigures | None, config: GuardConfig) -> dict[str, str]:
    """Why each full log dir is, with the topics that fill its volume.

    Where ACLs decide who may see a topic, none is named: every client that is refused reads it.
    """
    topics = () if figures is None or config.broker.has_authorizer else figures.topics
    reasons = reasons_of_full_log_dirs(disks)
    together = {path: volume.log_dirs for volume in disks.volumes for path in volume.log_dirs}
    named = {path: named_topics(largest_in(together[path], topics)) for path in reasons}
    return {path: f"{why}, largest topics {named[path]}" if named[path] else why for path, why in reasons.items()}


OF_A_GATEWAY_THAT_ANSWERS = tuple(
    metric
    for metric in catalogue.CATALOGUE
    if metric.name.startswith("gateway_") and metric is not catalogue.GATEWAY_UP
)


def gateway_families(state: GatewayState) -> list[MetricFamily]:
    """Everything that ``OF_A_GATEWAY_THAT_ANSWERS`` names."""
    return [
        catalogue.GATEWAY_START_TIME.single(state.started_at.timestamp()),
        *_connections(state),
        catalogue.GATEWAY_BYTES.family(
            (("to_broker",), ("to_clients",)), (state.bytes.to_broker, state.bytes.to_clients)
        ),
        catalogue.GATEWAY_REQUESTS.single(state.requests.total),
        catalogue.GATEWAY_PRODUCE_REQUESTS.single(state.requests.produce),
        *_fences(state),
        *_refused_families(state.refusals, catalogue.GATEWAY_REFUSED_BATCHES, catalogue.GATEWAY_REFUSED_BYTES),
        *_refused_families(
            state.would_have_refused, catalogue.GATEWAY_WOULD_REFUSE_BATCHES, catalogue.GATEWAY_WOULD_REFUSE_BYTES
        ),
        catalogue.GATEWAY_REFUSED_COMMITS.single(state.commits.requests),
        catalogue.GATEWAY_REFUSED_COMMIT_BYTES.single(state.commits.bytes),
        catalogue.GATEWAY_SEQUENCES.single(state.sequences.held),
        catalogue.GATEWAY_SEQUENCES_EVICTED.single(state.sequences.evicted),
        catalogue.GATEWAY_DESCRIBE_FAILURES.single(state.describe.failures),
        catalogue.GATEWAY_DESCRIBE_RESTARTS.single(state.describe.worker_restarts),
        catalogue.GATEWAY_ADDED_LATENCY.histogram(state.latency.bounds, state.latency.counts, state.latency.sum),
        *_skipped(state.skips),
    ]


def _connections(state: GatewayState) -> list[MetricFamily]:
    closed = state.connections.closed
    return [
        catalogue.GATEWAY_CONNECTIONS.family(
            tuple((listener.name,) for listener in state.listeners),
            [listener.connections for listener in state.listeners],
        ),
        catalogue.GATEWAY_ACCEPTED.single(state.connections.accepted),
        catalogue.GATEWAY_CLOSED.family(tuple((reason,) for reason in closed), list(closed.values())),
    ]


def _fences(state: GatewayState) -> list[MetricFamily]:
    rows = tuple((fence.log_dir or "", fence.topic or "", fence.cause.value) for fence in state.fences)
    return [
        catalogue.GATEWAY_FENCE.family(rows, [1] * len(rows)),
        catalogue.GATEWAY_FENCED_PARTITIONS.family(rows, [fence.partitions for fence in state.fences]),
    ]


def _skipped(skipped: Skips) -> list[MetricFamily]:
    return [
        catalogue.GATEWAY_FETCHES_REWRITTEN.single(skipped.fetches_rewritten),
        catalogue.GATEWAY_PARTITIONS_SKIPPED.single(skipped.partitions_skipped),
        catalogue.GATEWAY_WITHHELD_BYTES.single(skipped.bytes_withheld),
        catalogue.GATEWAY_SESSIONS_RESTARTED.single(skipped.sessions_restarted),
        catalogue.GATEWAY_FETCHES_NOT_UNDERSTOOD.single(skipped.answers_not_understood),
        catalogue.GATEWAY_FETCHES_PASSED_UNREAD.single(skipped.fetches_passed_unread),
    ]


def _refused_families(rows: Sequence[RefusedBatches], batches: Metric, size: Metric) -> list[MetricFamily]:
    labels = tuple((row.topic, "" if row.partition is None else str(row.partition), row.client) for row in rows)
    return [batches.family(labels, [row.batches for row in rows]), size.family(labels, [row.bytes for row in rows])]


def commit_notices(state: GatewayState) -> Iterator[Notice]:
    """While there are refusals, and for a minute more."""
    largest = state.commits.largest
    if not largest:
        return
    named = ", ".join(f"{each.group} ({human_bytes(each.bytes)})" for each in largest[:3])
    yield Notice(
        feature="gateway",
        key="commits",
        weight=Weight.WARNING,
        word="COMMITS",
        text=f"offset commits are refused until there is room again; most came from the groups {named}",
        cure="make room on the disk; have these groups commit less often, or without metadata",
        facts={
            "requests": state.commits.requests,
            "largest": [{"group": each.group, "requests": each.requests, "bytes": each.bytes} for each in largest],
        },
    )


class GatewayLink(Feature):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._news = GatewayNews()
        worker = Worker("gateway", lambda: self._task.step())
        self._task = GatewayTask(
            GatewayClient(control_socket(core.config)),
            core.clock,
            worker.wake,
            self.changed,
            core.look_at_disks,
            is_wanted=core.config.is_enforcing,
        )
        self.workers = [worker]
        if core.config.layout.fronted and not core.config.intercepts:
            self.workers.append(Worker("address limits", address_task(core.config).step))

    def decided(self, disks: DiskReport) -> None:
        self._task.decided(reasons_for_clients(disks, self.core.percents.plain, self.core.config), disks.offline)

    def notices(self) -> Sequence[Notice]:
        state = self._task.report.state
        return [] if state is None else [*commit_notices(state)]

    def document(self, seconds: float) -> Mapping[str, object]:
        return {"gateway": gateway_document(self._task.report, self.core.config.path, self.core.disks.offline)}

    def changed(self, report: GatewayReport) -> None:
        """The figures of a gateway that does not answer are gone: 0 would say that it runs and does nothing."""
        board, fronted = self.core.board, self.core.config.layout.fronted
        carries = any(each.carries_replication for each in fronted)
        board.put(catalogue.REPLICATION_THROUGH_GATEWAY.single(int(carries)))
        if report.state is not None:
            by_hand = any(fence.cause is FenceCause.MANUAL for fence in report.state.fences)
            self.core.is_fenced = by_hand or bool(report.state.follower_fences)
            board.put(catalogue.GATEWAY_UP.single(1), *gateway_families(report.state))
        else:
            board.put(catalogue.GATEWAY_UP.single(0))
            board.remove(*(metric.name for metric in OF_A_GATEWAY_THAT_ANSWERS))
        self._news.tell(report)

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        config = looked.config

        def ask() -> GatewayState:
            with GatewayClient(control_socket(config)) as client:
                return client.state()

        yield from explain_layout(config)
        yield from check_gateway(config, ask)
        if looked.broker_answers:
            yield from check_upstreams(config)
        if config.layout.fronted and not config.intercepts:
            wish = config.text(keys.GATEWAY_SOURCE)
            seen = {seen_address(wish, fronted.upstream) for fronted in config.layout.fronted}
            asked = ask_rules(config) if looked.broker_answers else None
            yield from explain_addresses(config, asked, {address for address in seen if address is not None})
