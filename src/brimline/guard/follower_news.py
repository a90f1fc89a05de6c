"""Full followers in the guard's log: a line when one begins to be full, one when it is no longer, none in between.

Brokers that have fallen silent are named once, together: a network that is cut in two makes many of them at once.
"""

import logging

from brimline.decide.peer_disks import PeerState
from brimline.guard.cordon_task import CordonReport
from brimline.guard.follower_report import OrderReport, PeerReport
from brimline.guard.follower_sentences import WHAT_TO_DO, follower_sentence, named_brokers
from brimline.guard.log_lines import say
from brimline.model import BrokerId, human_span


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
                f"nothing is known of the disks of {named_brokers(new)}, and nothing is held back for them"
                f" (no answer within {human_span(report.patience)}{f'; {why}' if why else ''})",
                brokers=",".join(map(str, sorted(new))),
            )
        if back:
            answering = back & {each.broker for each in report.peers}
            if answering:
                say(logging.INFO, "peers-answer", f"the disks of {named_brokers(answering)} are known again")
        self._silent = silent

    def orders(self, report: OrderReport) -> None:
        failure = None if report.failure is None else str(report.failure)
        now = {each.broker: _phase(report, each.partitions) for each in report.followers}
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
                f"broker {broker} is no longer known to be full: what was held back for it goes on",
                follower=broker,
            )
        self._full, self._failure = now, failure


class CordonNews:
    def __init__(self) -> None:
        self._kept_open: frozenset[str] = frozenset()
        self._failure: str | None = None

    def tell(self, report: CordonReport) -> None:
        for path in sorted(report.cordoned.added):
            say(logging.WARNING, "cordoned", f"{path} is full, and cordoned: no new replica is put there", log_dir=path)
        for path in sorted(report.cordoned.opened):
            say(
                logging.INFO, "uncordoned", f"{path} is no longer cordoned: new replicas may be put there", log_dir=path
            )
        for path in sorted(report.kept_open - self._kept_open):
            say(
                logging.WARNING,
                "not-cordoned",
                f"{path} is full, and not cordoned: no other broker is known to have room for new replicas",
                log_dir=path,
            )
        self._kept_open = report.kept_open
        failure = None if report.failure is None else str(report.failure)
        if failure is not None and failure != self._failure:
            say(logging.ERROR, "cordon-failed", f"full log dirs cannot be cordoned, or not be opened: {failure}")
        self._failure = failure


def _phase(report: OrderReport, partitions: int) -> str:
    """What must change for a line to be worth it: not the figures."""
    return f"{report.choice.action.value} {report.action is not None} {partitions > 0}"
