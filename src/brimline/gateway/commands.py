"""What the gateway does with the orders of its control socket (``documents.orders``)."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from brimline import __version__
from brimline.disks.task import DiskTask
from brimline.documents import orders
from brimline.documents.codec import from_json, to_json
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
from brimline.gateway.rules.follower_orders import FollowerSkips, SkippedPartitions, fenced_followers
from brimline.gateway.rules.placement import PlacementWatch
from brimline.gateway.rules.rules import Rules
from brimline.gateway.rules.sequence_memory import SequenceMemory
from brimline.model import BadInput, Bytes
from brimline.service.clock import Clock
from brimline.service.log_lines import say
from brimline.settings import keys
from brimline.settings.config import GuardConfig

Json = Mapping[str, Any]
Given = TypeVar("Given", bound=orders.GatewayOrder)
_LET_GO_AT_ONCE = 500
"""Connections that one order of the guard ends; it comes five times a second. Not all: they reconnect at once."""


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
        disks: DiskTask,
        look_at_disks: Callable[[], None],
    ) -> None:
        self._config = config
        self._disks = disks
        self._look_at_disks = look_at_disks
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
        return dict(
            (
                _command(orders.StateWanted, self._state),
                _command(orders.Lease, self._lease),
                _command(orders.FenceOrder, self._fence),
                _command(orders.UnfenceOrder, self._unfence),
                _command(orders.SkipsOrder, self._skip),
                _command(orders.FollowerFencesOrder, self._fence_followers),
                _command(orders.AddressLimitsOrder, self._limit_addresses),
                _command(orders.InterceptedWanted, self._intercepted),
            )
        )

    @property
    def _can_skip(self) -> bool:
        return self._config.is_enforcing and any(each.carries_replication for each in self._config.layout.fronted)

    def _state(self, _order: orders.StateWanted) -> Json:
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
                    address=str(each.dialled),
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
            commits=self._rules.commits.count.state(time.monotonic()),
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

    def _lease(self, order: orders.Lease) -> Json:
        self._fences.lease(order.full, order.seconds)
        self._disks.offline = order.offline
        own = self._fences.snapshot.full
        if own.keys() != order.full.keys():
            self._look_at_disks()
        return {"full": sorted(own)}

    def _skip(self, order: orders.SkipsOrder) -> Json:
        if not self._can_skip:
            raise BadInput(
                "this gateway cannot skip replication: brokers do not fetch through it, or it is in observe mode"
            )
        if order.followers is None:
            is_in_force = self._skips.renew(epoch=order.epoch, seconds=order.seconds)
            return {"inForce": is_in_force, "passedUnread": self._forwarder.counters.fetches.passed_unread}
        before = self._skips.snapshot.followers
        self._skips.put(order.followers, epoch=order.epoch, seconds=order.seconds)
        _say_skips(before, self._skips.snapshot.followers)
        return {"inForce": True, "passedUnread": self._forwarder.counters.fetches.passed_unread}

    def _fence_followers(self, order: orders.FollowerFencesOrder) -> Json:
        if order.followers is None:
            return {"inForce": self._fences.renew_followers(epoch=order.epoch, seconds=order.seconds)}
        self._fences.lease_followers(fenced_followers(order.followers), epoch=order.epoch, seconds=order.seconds)
        return {"inForce": True}

    def _limit_addresses(self, order: orders.AddressLimitsOrder) -> Json:
        limits = self._forwarder.addresses.limits
        if order.connections is not None:
            most = None if order.connections == orders.NO_LIMIT else int(order.connections)
            limits = replace(limits, connections=most, connections_of=order.connections_of or {})
        if order.per_second is not None:
            rate = None if order.per_second == orders.NO_LIMIT else order.per_second
            limits = replace(limits, per_second=rate, per_second_of=order.per_second_of or {})
        self._forwarder.addresses.limits = limits
        return {}

    def _intercepted(self, order: orders.InterceptedWanted) -> Json:
        if order.let_go:
            self._forwarder.loop.call_soon_from_thread(lambda: self._forwarder.let_go(_LET_GO_AT_ONCE))
        if order.begins:
            self._forwarder.loop.call_soon_from_thread(self._memory.forget_all)
        ports = {
            each.upstream[1]: each.sockets[0].getsockname()[1]
            for each in self._forwarder.listeners
            if each.mark is not None and not each.is_outward
        }
        outward = [each.sockets[0].getsockname()[1] for each in self._forwarder.listeners if each.is_outward]
        return {"ports": ports, "forFetches": outward[0] if outward else None}

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
            fetches_passed_unread=counted.passed_unread,
        )

    def _fence(self, order: orders.FenceOrder) -> Json:
        self._fences.fence(log_dir=order.log_dir, topic=order.topic, reason=order.reason, by=order.by)
        return {}

    def _unfence(self, order: orders.UnfenceOrder) -> Json:
        self._fences.unfence(log_dir=order.log_dir, topic=order.topic, reason=order.reason, by=order.by)
        return {}


def _command(kind: type[Given], obey: Callable[[Given], Json]) -> tuple[str, Command]:
    def read(request: Json) -> Json:
        try:
            order = from_json(kind, request)
        except ValueError as problem:
            raise BadInput(f"{kind.OP} is not a valid order: {problem}") from None
        return obey(order)

    return kind.OP, read


def _say_skips(before: Mapping[int, SkippedPartitions], now: Mapping[int, SkippedPartitions]) -> None:
    """One line when a follower is first skipped and one when it no longer is."""
    for broker in now.keys() - before.keys():
        count = now[broker].count
        text = f"broker {broker} has no room: replication of {count} partitions to it is skipped"
        say(logging.WARNING, "skipping", text, follower=broker, partitions=count)
    for broker in before.keys() - now.keys():
        say(logging.INFO, "skipped-no-more", f"replication to broker {broker} resumed", follower=broker)
