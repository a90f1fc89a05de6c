"""What the gateway's control socket can be asked: its state, the guard's leases, fences by hand, and the guard's skips.

``skips`` says which partitions are not to grow on which followers, and for how long::

    {"op": "skips", "epoch": 7, "seconds": 10,
     "followers": {"2": [{"topic": "orders", "topicId": "5e3c1f0a-…", "partitions": [0, 1]}]}}

Without ``followers`` it renews what was said under that epoch. The answer's ``inForce`` is false if that is not what
the gateway was told last: then it must be told again. What is not renewed in time counts for nothing
(``gateway.rules.follower_orders``).

``follower-fences`` goes the same way, and has clients refused instead (``gateway.rules.follower_orders``)::

    {"op": "follower-fences", "epoch": 7, "seconds": 10,
     "followers": {"2": {"reason": "…", "topics": [{"topic": "orders", "partitions": [0, 1]}]}}}

``address-limits`` says what the broker decides by the address of a client (``gateway.net.addresses``). What it does not
name stays as it was; ``null`` is no limit. It holds until it is said otherwise::

    {"op": "address-limits", "connections": 100, "connectionsOf": {"10.0.0.5": 1000},
     "perSecond": null, "perSecondOf": {"10.0.0.7": 9.0}}
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from brimline import __version__
from brimline.documents.codec import to_json
from brimline.documents.gateway_state import (
    AddedLatency,
    DescribeFigures,
    GatewayListener,
    GatewayState,
    OpenAndClosed,
    PassedBytes,
    RefusedSequences,
    SeenRequests,
    SkippedFollower,
    Skips,
)
from brimline.gateway.control import Command
from brimline.gateway.counters import LATENCY_BOUNDS
from brimline.gateway.describe.child import DescribeWorker
from brimline.gateway.net.forwarder import Forwarder
from brimline.gateway.rules.fences import Fences, follower_fences, standing_fences
from brimline.gateway.rules.follower_orders import FollowerSkips, SkippedPartitions, read_followers, read_full_followers
from brimline.gateway.rules.placement import PlacementWatch
from brimline.gateway.rules.rules import Rules
from brimline.gateway.rules.sequence_memory import SequenceMemory
from brimline.model import BadInput, Bytes
from brimline.service.clock import Clock
from brimline.service.log_lines import say
from brimline.settings import keys
from brimline.settings.config import GuardConfig


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
        worker: DescribeWorker,
        skips: FollowerSkips,
    ) -> None:
        self._config = config
        self._forwarder = forwarder
        self._rules = rules
        self._fences = fences
        self._memory = memory
        self._placement = placement
        self._worker = worker
        self._skips = skips
        self._started_at = clock.now()

    @property
    def by_name(self) -> Mapping[str, Command]:
        return {
            "state": self._state,
            "lease": self._lease,
            "fence": self._fence,
            "unfence": self._unfence,
            "skips": self._skip,
            "follower-fences": self._fence_followers,
            "address-limits": self._limit_addresses,
        }

    @property
    def _can_skip(self) -> bool:
        return self._config.is_enforcing and any(each.carries_replication for each in self._config.layout.fronted)

    def _state(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        forwarder, counters = self._forwarder, self._forwarder.counters
        state = GatewayState(
            version=__version__,
            pid=os.getpid(),
            started_at=self._started_at,
            enforcement=self._config.text(keys.ENFORCEMENT),
            reject_error=int(self._rules.settings.error),
            listeners=tuple(
                GatewayListener(
                    name=each.name,
                    address=str(each.bind),
                    upstream=str(each.upstream),
                    protocol=each.client_protocol.value,
                    connections=forwarder.open_connections(each.name),
                    replication=each.carries_replication,
                )
                for each in self._config.layout.fronted
            ),
            connections=OpenAndClosed(
                open=forwarder.all_open, accepted=counters.accepted, closed=counters.closed.copy()
            ),
            bytes=PassedBytes(to_broker=Bytes(counters.bytes_to_broker), to_clients=Bytes(counters.bytes_to_clients)),
            requests=SeenRequests(total=counters.requests, produce=counters.produce_requests),
            fences=standing_fences(self._fences.snapshot, self._placement.placement),
            follower_fences=follower_fences(self._fences.snapshot),
            refusals=counters.refused.rows_now(),
            would_have_refused=counters.would_refuse.rows_now(),
            sequences=RefusedSequences(held=self._memory.held, evicted=self._memory.evicted),
            skips=self._skips_now(),
            latency=AddedLatency(
                bounds=LATENCY_BOUNDS, counts=tuple(counters.latency.counts), sum=counters.latency.sum_ns / 1e9
            ),
            describe=DescribeFigures(
                worker_restarts=self._worker.restarts,
                failures=self._worker.failures,
            ),
            draining=forwarder.is_draining,
        )
        return {"state": to_json(state)}

    def _lease(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        seconds, full = request.get("seconds"), request.get("full")
        if not isinstance(seconds, int | float) or not isinstance(full, dict):
            raise BadInput("a lease has seconds, and the full log dirs with their reasons")
        self._fences.lease({str(path): str(reason) for path, reason in full.items()}, float(seconds))
        return {}

    def _skip(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        epoch, seconds, followers = request.get("epoch"), request.get("seconds"), request.get("followers")
        if not isinstance(epoch, int) or not isinstance(seconds, int | float):
            raise BadInput("skips have an epoch, the seconds that they last, and followers unless they are renewed")
        if not self._can_skip:
            raise BadInput("this gateway does not stand between the brokers, or only observes: it cannot skip anything")
        if followers is None:
            return {"inForce": self._skips.renew(epoch=epoch, seconds=float(seconds))}
        before = self._skips.snapshot.followers
        self._skips.put(read_followers(followers), epoch=epoch, seconds=float(seconds))
        _say_skips(before, self._skips.snapshot.followers)
        return {"inForce": True}

    def _fence_followers(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        epoch, seconds, followers = request.get("epoch"), request.get("seconds"), request.get("followers")
        if not isinstance(epoch, int) or not isinstance(seconds, int | float):
            raise BadInput("follower-fences have an epoch, the seconds that they last, and followers unless renewed")
        if followers is None:
            return {"inForce": self._fences.renew_followers(epoch=epoch, seconds=float(seconds))}
        self._fences.lease_followers(read_full_followers(followers), epoch=epoch, seconds=float(seconds))
        return {"inForce": True}

    def _limit_addresses(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        addresses = self._forwarder.addresses
        limits = addresses.limits
        if "connections" in request:
            limits = replace(
                limits,
                connections=_number(request["connections"]),
                connections_of=_numbers(request.get("connectionsOf")),
            )
        if "perSecond" in request:
            limits = replace(
                limits,
                per_second=_number(request["perSecond"]),
                per_second_of=_numbers(request.get("perSecondOf")),
            )
        addresses.limits = limits
        return {}

    def _skips_now(self) -> Skips:
        snapshot, counted = self._skips.snapshot, self._forwarder.counters.fetches
        in_force = snapshot.followers if snapshot.is_in_force else {}
        return Skips(
            possible=self._can_skip,
            epoch=snapshot.epoch,
            seconds_left=round(snapshot.seconds_left, 3),
            followers=tuple(SkippedFollower(broker=broker, partitions=each.count) for broker, each in in_force.items()),
            fetches_rewritten=counted.rewritten,
            partitions_skipped=counted.skipped,
            partitions_probed=counted.probed,
            bytes_withheld=counted.withheld_bytes,
            sessions_restarted=counted.restarted,
            answers_not_understood=counted.not_understood,
        )

    def _fence(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._fences.fence(**_target(request), reason=str(request.get("reason", "")), by=str(request.get("by", "")))
        return {}

    def _unfence(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._fences.unfence(**_target(request), reason=str(request.get("reason", "")), by=str(request.get("by", "")))
        return {}


def _number(said: object) -> Any:
    if said is not None and not (isinstance(said, int | float) and said >= 0):
        raise BadInput("a limit is a number from 0, or null for none")
    return said


def _numbers(said: object) -> dict[str, Any]:
    if not isinstance(said, dict) or None in said.values():
        raise BadInput("the limits of addresses are numbers by address")
    return {str(address): _number(limit) for address, limit in said.items()}


def _say_skips(before: Mapping[int, SkippedPartitions], now: Mapping[int, SkippedPartitions]) -> None:
    """One line when a follower is first skipped and one when it no longer is."""
    for broker in now.keys() - before.keys():
        count = now[broker].count
        text = f"broker {broker} has no room: {count} partitions are not replicated to it"
        say(logging.WARNING, "skipping", text, follower=broker, partitions=count)
    for broker in before.keys() - now.keys():
        say(logging.INFO, "skipped-no-more", f"broker {broker} is replicated to again", follower=broker)


def _target(request: Mapping[str, Any]) -> dict[str, str | None]:
    log_dir, topic = request.get("logDir"), request.get("topic")
    if (log_dir is None) == (topic is None):
        raise BadInput("name either a log dir or a topic")
    return {"log_dir": None if log_dir is None else str(log_dir), "topic": None if topic is None else str(topic)}
