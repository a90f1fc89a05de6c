"""What the gateway's control socket can be asked: its state, the guard's lease, and fences by hand."""

import os
from collections.abc import Mapping
from typing import Any

from brimline import __version__
from brimline.gateway.control import Command
from brimline.gateway.counters import LATENCY_BOUNDS, Counters
from brimline.gateway.describe import DescribeWorker
from brimline.gateway.fences import Fences, fence_rows
from brimline.gateway.forwarder import Forwarder
from brimline.gateway.placement import PlacementWatch
from brimline.gateway.rules import Rules
from brimline.gateway.sequence_memory import SequenceMemory
from brimline.guard import keys
from brimline.guard.clock import Clock
from brimline.guard.config import GuardConfig
from brimline.model import BadInput


class GatewayCommands:
    """Called by threads of the control socket: the forwarder's figures are read while it goes on."""

    def __init__(
        self,
        config: GuardConfig,
        clock: Clock,
        forwarder: Forwarder,
        rules: Rules,
        fences: Fences,
        memory: SequenceMemory,
        placement: PlacementWatch,
        worker: DescribeWorker | None,
    ) -> None:
        self._config = config
        self._forwarder = forwarder
        self._rules = rules
        self._fences = fences
        self._memory = memory
        self._placement = placement
        self._worker = worker
        self._started_at = clock.now()

    @property
    def by_name(self) -> Mapping[str, Command]:
        return {"state": self._state, "lease": self._lease, "fence": self._fence, "unfence": self._unfence}

    def _state(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        forwarder, counters = self._forwarder, self._forwarder.counters
        return {
            "state": {
                "version": __version__,
                "pid": os.getpid(),
                "startedAt": self._started_at.isoformat(),
                "enforcement": self._config.text(keys.ENFORCEMENT),
                "rejectError": int(self._rules.settings.error),
                "listeners": [
                    {
                        "name": each.name,
                        "address": str(each.bind),
                        "upstream": str(each.upstream),
                        "protocol": each.client_protocol.value,
                        "connections": forwarder.open_connections(each.name),
                    }
                    for each in self._config.layout.fronted
                ],
                "connections": {
                    "open": forwarder.all_open,
                    "accepted": counters.accepted,
                    "closed": counters.closed.copy(),
                },
                "bytes": {"toBroker": counters.bytes_to_broker, "toClients": counters.bytes_to_clients},
                "requests": {"total": counters.requests, "produce": counters.produce_requests},
                "fences": fence_rows(self._fences.snapshot, self._placement.placement),
                "refusals": counters.refused.document(),
                "wouldHaveRefused": counters.would_refuse.document(),
                "sequences": {"held": self._memory.held, "evicted": self._memory.evicted},
                "latency": _latency(counters),
                "describe": {
                    "workerRestarts": self._worker.restarts if self._worker else 0,
                    "failures": self._worker.failures if self._worker else 0,
                },
                "draining": forwarder.is_draining,
            }
        }

    def _lease(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        seconds, full = request.get("seconds"), request.get("full")
        if not isinstance(seconds, int | float) or not isinstance(full, dict):
            raise BadInput("a lease has seconds, and the full log dirs with their reasons")
        self._fences.lease({str(path): str(reason) for path, reason in full.items()}, float(seconds))
        return {}

    def _fence(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._fences.fence(**_target(request), reason=str(request.get("reason", "")), by=str(request.get("by", "")))
        return {}

    def _unfence(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._fences.unfence(**_target(request), reason=str(request.get("reason", "")), by=str(request.get("by", "")))
        return {}


def _target(request: Mapping[str, Any]) -> dict[str, str | None]:
    log_dir, topic = request.get("logDir"), request.get("topic")
    if (log_dir is None) == (topic is None):
        raise BadInput("name either a log dir or a topic")
    return {"log_dir": None if log_dir is None else str(log_dir), "topic": None if topic is None else str(topic)}


def _latency(counters: Counters) -> Mapping[str, Any]:
    return {
        "bounds": list(LATENCY_BOUNDS),
        "counts": list(counters.latency.counts),
        "sum": counters.latency.sum_ns / 1e9,
    }
