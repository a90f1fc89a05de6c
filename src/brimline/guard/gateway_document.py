"""The gateway's part of ``/v1/state``: what ``status`` needs of it. All its counters are in ``/metrics``."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from brimline.guard.gateway_state import Fence, GatewayListener, GatewayState, Refused
from brimline.guard.gateway_task import GatewayReport
from brimline.guard.refused_lately import Lately
from brimline.guard.sentences import how_to_lift
from brimline.model import Failure

Json = Mapping[str, object]


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


def failure_document(failure: Failure | None) -> Json | None:
    return None if failure is None else {"kind": failure.kind.value, "message": failure.message}


def time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
