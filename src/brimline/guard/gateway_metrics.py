"""A gateway's figures as families of the catalogue. Pure: a state in, families out."""

from collections.abc import Sequence

from brimline.guard.gateway_state import GatewayState, Refused, SkippedFetches
from brimline.metrics import catalogue
from brimline.metrics.metric import Metric
from brimline.model.samples import MetricFamily

OF_A_GATEWAY_THAT_ANSWERS: tuple[Metric, ...] = (
    catalogue.GATEWAY_START_TIME,
    catalogue.GATEWAY_CONNECTIONS,
    catalogue.GATEWAY_ACCEPTED,
    catalogue.GATEWAY_CLOSED,
    catalogue.GATEWAY_BYTES,
    catalogue.GATEWAY_REQUESTS,
    catalogue.GATEWAY_PRODUCE_REQUESTS,
    catalogue.GATEWAY_FENCE,
    catalogue.GATEWAY_FENCED_PARTITIONS,
    catalogue.GATEWAY_REFUSED_BATCHES,
    catalogue.GATEWAY_REFUSED_BYTES,
    catalogue.GATEWAY_WOULD_REFUSE_BATCHES,
    catalogue.GATEWAY_WOULD_REFUSE_BYTES,
    catalogue.GATEWAY_SEQUENCES,
    catalogue.GATEWAY_SEQUENCES_EVICTED,
    catalogue.GATEWAY_DESCRIBE_FAILURES,
    catalogue.GATEWAY_DESCRIBE_RESTARTS,
    catalogue.GATEWAY_ADDED_LATENCY,
    catalogue.GATEWAY_FETCHES_REWRITTEN,
    catalogue.GATEWAY_PARTITIONS_SKIPPED,
    catalogue.GATEWAY_WITHHELD_BYTES,
    catalogue.GATEWAY_SESSIONS_RESTARTED,
    catalogue.GATEWAY_FETCHES_NOT_UNDERSTOOD,
)


def gateway_families(state: GatewayState) -> list[MetricFamily]:
    """Everything that ``OF_A_GATEWAY_THAT_ANSWERS`` names."""
    return [
        catalogue.GATEWAY_START_TIME.single(state.started_at.timestamp()),
        *_connections(state),
        catalogue.GATEWAY_BYTES.family(
            (("to_broker",), ("to_clients",)), (state.bytes_to_broker, state.bytes_to_clients)
        ),
        catalogue.GATEWAY_REQUESTS.single(state.requests),
        catalogue.GATEWAY_PRODUCE_REQUESTS.single(state.produce_requests),
        *_fences(state),
        *_refused(state.refused, catalogue.GATEWAY_REFUSED_BATCHES, catalogue.GATEWAY_REFUSED_BYTES),
        *_refused(
            state.would_have_refused, catalogue.GATEWAY_WOULD_REFUSE_BATCHES, catalogue.GATEWAY_WOULD_REFUSE_BYTES
        ),
        catalogue.GATEWAY_SEQUENCES.single(state.sequences_held),
        catalogue.GATEWAY_SEQUENCES_EVICTED.single(state.sequences_evicted),
        catalogue.GATEWAY_DESCRIBE_FAILURES.single(state.describe_failures),
        catalogue.GATEWAY_DESCRIBE_RESTARTS.single(state.describe_restarts),
        catalogue.GATEWAY_ADDED_LATENCY.histogram(state.latency.bounds, state.latency.counts, state.latency.sum),
        *_skipped(state.skipped),
    ]


def _connections(state: GatewayState) -> list[MetricFamily]:
    closed = state.closed_connections
    return [
        catalogue.GATEWAY_CONNECTIONS.family(
            tuple((listener.name,) for listener in state.listeners),
            [listener.connections for listener in state.listeners],
        ),
        catalogue.GATEWAY_ACCEPTED.single(state.accepted_connections),
        catalogue.GATEWAY_CLOSED.family(tuple((reason,) for reason in closed), list(closed.values())),
    ]


def _fences(state: GatewayState) -> list[MetricFamily]:
    rows = tuple((fence.log_dir or "", fence.topic or "", fence.cause.value) for fence in state.fences)
    return [
        catalogue.GATEWAY_FENCE.family(rows, [1] * len(rows)),
        catalogue.GATEWAY_FENCED_PARTITIONS.family(rows, [fence.partitions for fence in state.fences]),
    ]


def _skipped(skipped: SkippedFetches) -> list[MetricFamily]:
    return [
        catalogue.GATEWAY_FETCHES_REWRITTEN.single(skipped.rewritten),
        catalogue.GATEWAY_PARTITIONS_SKIPPED.single(skipped.partitions_skipped),
        catalogue.GATEWAY_WITHHELD_BYTES.single(skipped.bytes_withheld),
        catalogue.GATEWAY_SESSIONS_RESTARTED.single(skipped.sessions_restarted),
        catalogue.GATEWAY_FETCHES_NOT_UNDERSTOOD.single(skipped.not_understood),
    ]


def _refused(rows: Sequence[Refused], batches: Metric, size: Metric) -> list[MetricFamily]:
    labels = tuple((row.topic, "" if row.partition is None else str(row.partition), row.client) for row in rows)
    return [batches.family(labels, [row.batches for row in rows]), size.family(labels, [row.bytes for row in rows])]
