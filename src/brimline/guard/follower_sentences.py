"""Full followers and cordoned log dirs in plain words, for the log, ``/v1/state``, ``status`` and ``doctor``."""

from collections.abc import Collection

from brimline.decide.follower_action import FollowerAction
from brimline.guard.follower_report import FullFollower, OrderReport

_DOES = {
    FollowerAction.SKIP: ("are not replicated to it (skip)", "would not be replicated to it (skip)"),
    FollowerAction.FENCE: ("are refused to producers (fence)", "would be refused to producers (fence)"),
}
WHAT_TO_DO = (
    "make room there: lower the retention of a topic, delete a topic or move replicas away; it ends by itself as soon "
    "as that disk has room again"
)


def follower_sentence(follower: FullFollower, orders: OrderReport) -> str:
    """What is done about one full follower, or would be."""
    who = f"broker {follower.broker} has no room: {follower.reason}"
    if follower.failure is not None and not follower.topics:
        return f"{who}; which of its partitions are led here is not known: {follower.failure}"
    if not follower.partitions:
        return f"{who}; nothing there is led here"
    does, would = _DOES[orders.choice.action]
    led = f"the {_counted(follower.partitions, 'partition')} there that this broker leads"
    if orders.action is orders.choice.action:
        return f"{who}; {led} {does}"
    if not orders.is_enforced:
        return f"{who}; {led} {would}: brimline.enforcement is observe"
    return f"{who}; {led} {would}, but nothing is done: {orders.choice.obstacle or orders.failure or 'not told yet'}"


def action_sentence(orders: OrderReport) -> str:
    """Which action is in force, and why."""
    choice = orders.choice
    cannot = "" if choice.obstacle is None else f"; it cannot be done: {choice.obstacle}"
    return f"{choice.action.value}, because {choice.why}{cannot}"


def named_brokers(brokers: Collection[int], shown: int = 10) -> str:
    names = ", ".join(str(each) for each in sorted(brokers)[:shown])
    rest = f" and {len(brokers) - shown} more" if len(brokers) > shown else ""
    return f"broker{'s' * (len(brokers) != 1)} {names}{rest}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
