"""Full followers and cordoned log dirs in plain words, for the log, ``/v1/state``, ``status`` and ``doctor``.

In the guard's log: a line when one begins to be full, one when it is no longer, none in between. Brokers that have
fallen silent are named once, together: a network that is cut in two makes many of them at once.
"""

import logging
from collections.abc import Collection

from brimline.decide.followers import FollowerAction
from brimline.decide.peer_disks import PeerState
from brimline.guard.followers.cordon import CordonReport
from brimline.guard.followers.report import FullFollower, OrderReport, PeerReport
from brimline.model import BrokerId, human_bytes, human_span
from brimline.service.log_lines import say

_DOES = {
    FollowerAction.SKIP: ("are not replicated to it (skip)", "would not be replicated to it (skip)"),
    FollowerAction.FENCE: ("are refused to producers (fence)", "would be refused to producers (fence)"),
    FollowerAction.RESERVE: ("are refused to producers (reserve)", "would be refused to producers (reserve)"),
}
WHAT_TO_DO = (
    "make room there: lower the retention of a topic, delete a topic or move replicas; it ends automatically when "
    "that disk has room"
)


def follower_sentence(follower: FullFollower, orders: OrderReport) -> str:
    """What is done about one full follower, or would be."""
    who = f"broker {follower.broker} has no room: {follower.reason}"
    if follower.failure is not None and not follower.topics:
        return f"{who}; its partitions led here are unknown: {follower.failure}"
    if not follower.partitions:
        return f"{who}; no partition there is led here"
    does, would = _DOES[orders.choice.action]
    led = f"the {counted_partitions(follower.partitions)} there that this broker leads"
    if orders.choice.action is FollowerAction.RESERVE:
        if not follower.held:
            left = human_bytes(follower.reserve)
            return f"{who}; writes to {led} go on, refused below {left} usable there (reserve)"
        led = f"{follower.held_partitions} of {led}"
    if orders.action is orders.choice.action and orders.leaks:
        return (
            f"{who}; {led} cannot be held back: its fetches are of a version that this gateway does not know; "
            "upgrade brimline, or set brimline.follower.action=reserve"
        )
    if orders.action is orders.choice.action:
        return f"{who}; {led} {does}"
    if not orders.is_enforced:
        return f"{who}; {led} {would}: brimline.enforcement is observe"
    return (
        f"{who}; {led} {would}, but this cannot be done: {orders.choice.obstacle or orders.failure or 'not told yet'}"
    )


def action_sentence(orders: OrderReport) -> str:
    """Which action is in force, and why."""
    choice = orders.choice
    cannot = "" if choice.obstacle is None else f"; it cannot be done: {choice.obstacle}"
    return f"{choice.action.value}, because {choice.why}{cannot}"


def named_brokers(brokers: Collection[int], shown: int = 10) -> str:
    names = ", ".join(str(each) for each in sorted(brokers)[:shown])
    rest = f" and {len(brokers) - shown} more" if len(brokers) > shown else ""
    return f"broker{'s' * (len(brokers) != 1)} {names}{rest}"


def counted_partitions(number: int) -> str:
    return f"{number} partition{'s' * (number != 1)}"


class FollowerNews:
    """Told by two tasks, each in its own thread and of its own matter."""

    def __init__(self) -> None:
        self._full: dict[BrokerId, str] = {}
        self._silent: frozenset[BrokerId] = frozenset()
        self._failure: str | None = None

    def peers(self, report: PeerReport) -> None:
        """One that never answered yet is no news before it does."""
        silent = frozenset(each.broker for each in report.peers if each.state is PeerState.SILENT)
        new, back = silent - self._silent, self._silent - silent
        if new:
            why = next((str(each.failure) for each in report.peers if each.broker in new and each.failure), "")
            say(
                logging.WARNING,
                "peers-silent",
                f"disks of {named_brokers(new)} unknown, nothing is held back for them (no answer within "
                f"{human_span(report.patience)}{f'; {why}' if why else ''})",
                brokers=",".join(map(str, sorted(new))),
            )
        if back:
            answering = back & {each.broker for each in report.peers}
            if answering:
                say(logging.INFO, "peers-answer", f"disks of {named_brokers(answering)} known again")
        self._silent = silent

    def orders(self, report: OrderReport) -> None:
        failure = None if report.failure is None else str(report.failure)
        now = {each.broker: _phase(report, each) for each in report.followers}
        for follower in report.followers:
            if self._full.get(follower.broker) == now[follower.broker] and failure == self._failure:
                continue
            say(
                logging.WARNING,
                "follower-full",
                f"{follower_sentence(follower, report)}; {WHAT_TO_DO}",
                follower=follower.broker,
                partitions=follower.partitions,
                action=report.choice.action.value,
            )
        for broker in self._full.keys() - now.keys():
            say(
                logging.INFO,
                "follower-released",
                f"broker {broker} is no longer full: nothing is held back for it",
                follower=broker,
            )
        self._full, self._failure = now, failure


class CordonNews:
    def __init__(self) -> None:
        self._kept_open: frozenset[str] = frozenset()
        self._failure: str | None = None

    def tell(self, report: CordonReport) -> None:
        for path in sorted(report.cordoned.added):
            say(logging.WARNING, "cordoned", f"{path} is full and cordoned: no new replicas", log_dir=path)
        for path in sorted(report.cordoned.opened):
            say(logging.INFO, "uncordoned", f"{path} is no longer cordoned", log_dir=path)
        for path in sorted(report.kept_open - self._kept_open):
            say(
                logging.WARNING,
                "not-cordoned",
                f"{path} is full but not cordoned: no other broker is known to have room for new replicas",
                log_dir=path,
            )
        self._kept_open = report.kept_open
        failure = None if report.failure is None else str(report.failure)
        if failure is not None and failure != self._failure:
            say(logging.ERROR, "cordon-failed", f"full log dirs cannot be cordoned or reopened: {failure}")
        self._failure = failure


def _phase(report: OrderReport, follower: FullFollower) -> str:
    """What must change for a line to be worth it: not the figures."""
    depth = max(follower.depths.values(), default=None) if report.choice.action is FollowerAction.RESERVE else None
    return f"{report.choice.action.value} {report.holds} {follower.partitions > 0} {depth}"
