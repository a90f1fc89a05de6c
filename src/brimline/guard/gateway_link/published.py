"""The gateway's part of ``/v1/state``: what ``status`` needs of it. All its counters are in ``/metrics``.

A gateway's figures as families of the catalogue. Pure: a state in, families out.
"""

from collections.abc import Iterable, Sequence

from brimline.disks.sentences import how_to_lift
from brimline.documents.gateway_state import Fence, GatewayListener, GatewayState, Refused, SkippedFetches
from brimline.documents.parts import Json, failure_document
from brimline.guard.gateway_link.task import GatewayReport, Lately
from brimline.metrics import catalogue
from brimline.metrics.metric import Metric, MetricFamily
from brimline.model.times import time_text


def gateway_document(report: GatewayReport, config_path: str) -> Json | None:
    if report.is_absent:
        return None
    return {
        "up": report.state is not None,
        "failure": failure_document(report.failure),
        "state": None if report.state is None else _state(report.state, report.lately, config_path),
    }


def _state(state: GatewayState, lately: Lately, config_path: str) -> Json:
    return {
        "version": state.version,
        "pid": state.pid,
        "startedAt": time_text(state.started_at),
        "enforcement": state.enforcement,
        "rejectError": state.reject_error,
        "draining": state.is_draining,
        "listeners": [_listener(listener) for listener in state.listeners],
        "connections": state.open_connections,
        "fences": [_fence(fence, config_path) for fence in state.fences],
        "refused": _sum(state.refused),
        "wouldHaveRefused": _sum(state.would_have_refused),
        "lately": {
            "seconds": round(lately.seconds, 1),
            "batches": lately.batches,
            "bytes": lately.bytes,
            "most": [_refused(row) for row in lately.most],
        },
    }


def _listener(listener: GatewayListener) -> Json:
    return {
        "name": listener.name,
        "address": listener.address,
        "upstream": listener.upstream,
        "protocol": listener.protocol,
        "connections": listener.connections,
    }


def _fence(fence: Fence, config_path: str) -> Json:
    return {
        "logDir": fence.log_dir,
        "topic": fence.topic,
        "cause": fence.cause.value,
        "reason": fence.reason,
        "since": time_text(fence.since),
        "by": fence.by,
        "partitions": fence.partitions,
        "whatToDo": how_to_lift(fence, config_path),
    }


def _refused(row: Refused) -> Json:
    return {
        "topic": row.topic,
        "partition": row.partition,
        "client": row.client,
        "batches": row.batches,
        "bytes": row.bytes,
    }


def _sum(rows: Iterable[Refused]) -> Json:
    counted = list(rows)
    return {"batches": sum(row.batches for row in counted), "bytes": sum(row.bytes for row in counted)}


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
        *_refused_families(state.refused, catalogue.GATEWAY_REFUSED_BATCHES, catalogue.GATEWAY_REFUSED_BYTES),
        *_refused_families(
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


def _refused_families(rows: Sequence[Refused], batches: Metric, size: Metric) -> list[MetricFamily]:
    labels = tuple((row.topic, "" if row.partition is None else str(row.partition), row.client) for row in rows)
    return [batches.family(labels, [row.batches for row in rows]), size.family(labels, [row.bytes for row in rows])]
