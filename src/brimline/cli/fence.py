"""``brimline fence``: refuse Produce for a log dir or a topic by hand. Speaks to the gateway; needs no guard.

With it what it shares with ``unfence``: the target, who asks, and the gateway's view of that target.
"""

import argparse
import os
import pwd
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from brimline.cli.shared.options import add_config_options, add_debug_and_version
from brimline.model.failures import BadInput

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Kafka's own rule for names."""

if TYPE_CHECKING:
    from brimline.cli.parser import Parser
    from brimline.documents.gateway_state import GatewayState, StandingFence


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceTarget:
    """Exactly one of both is given."""

    log_dir: str | None
    topic: str | None

    def __str__(self) -> str:
        return self.log_dir if self.log_dir is not None else f"topic {self.topic}"

    def among(self, fences: "Iterable[StandingFence]") -> "list[StandingFence]":
        return [fence for fence in fences if (fence.log_dir, fence.topic) == (self.log_dir, self.topic)]


def add_fence_options(parser: argparse.ArgumentParser, *, is_reason_needed: bool, reason_help: str) -> None:
    add_config_options(parser)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--log-dir", metavar="DIR", help="every partition in this log dir of the broker")
    target.add_argument("--topic", metavar="NAME", help="every partition of this topic on the broker")
    parser.add_argument("--reason", required=is_reason_needed, default="", metavar="TEXT", help=reason_help)
    add_debug_and_version(parser)


def target_of(args: argparse.Namespace, log_dirs: tuple[str, ...]) -> FenceTarget:
    """``log_dirs`` are the broker's; a path may be written in another way than in its file."""
    if args.topic is not None:
        if not _TOPIC.fullmatch(args.topic):
            raise BadInput(f"--topic {shlex.quote(args.topic)} is not a topic's name")
        return FenceTarget(log_dir=None, topic=args.topic)
    given = Path(args.log_dir)
    wanted = os.path.normpath(given if given.is_absolute() else Path.cwd() / given)  # no link is followed
    for log_dir in log_dirs:
        if os.path.normpath(log_dir) == wanted:
            return FenceTarget(log_dir=log_dir, topic=None)
    raise BadInput(f"{args.log_dir} is not a log dir of this broker; its log dirs are: {', '.join(log_dirs)}")


def reason_of(args: argparse.Namespace) -> str:
    """It goes on record and to refused clients, so it is one line of text."""
    reason: str = args.reason.strip()
    if not reason.isprintable():
        raise BadInput("--reason: write one line of plain text")
    return reason


def who(environment: Mapping[str, str]) -> str:
    """The user who asks, and behind sudo the one who is responsible."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = f"uid {os.getuid()}"
    behind = environment.get("SUDO_USER")
    return f"{behind} (sudo)" if behind and name == "root" else name


def is_answered(order: Callable[[], None]) -> bool:
    """Have the gateway take an order. One that it does not answer in time may still be in its queue."""
    from brimline.model import FailureKind, ObservationFailed

    try:
        order()
    except ObservationFailed as error:
        if error.failure.kind is not FailureKind.TIMED_OUT:
            raise
        print(f"brimline: {error}; it may still do it: check brimline status", file=sys.stderr)
        return False
    return True


def counted_partitions(number: int) -> str:
    return "its 1 partition" if number == 1 else f"its {number:,} partitions"


DESCRIPTION = """\
Refuse Produce for every partition in one log dir, or of one topic, of this broker, until the fence is lifted by hand.

Reads, deletions and Kafka's internal topics are not affected. Fences on full disks are set and lifted automatically;
use this one before you move or repair a disk. It needs the gateway but no guard, and survives a restart of the gateway.
The gateway's log and `brimline status` show who fenced what, when and why.
"""
EPILOG = """\
examples:
  brimline fence --config /etc/kafka/server.properties --log-dir /data/a --reason "moving this disk, CHG-1042"
      producers to partitions in /data/a get an error that names the reason; /data/b is not touched
  brimline fence --config /etc/kafka/server.properties --topic clicks --reason "runaway producer"
      the same for all partitions of one topic on this broker
  brimline unfence --config /etc/kafka/server.properties --topic clicks
      lift it again

exit codes:
  0    fenced
  1    nothing was changed: no gateway is running, no such log dir, or no permission
  3    the gateway did not answer in time: it may still fence; check brimline status"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("fence", description=DESCRIPTION, epilog=EPILOG)
    add_fence_options(parser, is_reason_needed=True, reason_help="why; recorded, and told to refused clients")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import writing_to
    from brimline.decide.admission import FenceCause
    from brimline.disks.sentences import how_to_lift
    from brimline.gateway.client import GatewayClient, control_socket
    from brimline.model import BadInput, BrimlineError
    from brimline.settings.config import load_config

    reason = reason_of(args)
    if not reason:
        raise BadInput("--reason is empty: it is recorded and told to refused clients")
    config = load_config(args.config, os.environ, args.broker_cwd)
    target = target_of(args, config.broker.log_dirs)
    with GatewayClient(control_socket(config)) as gateway:
        order = partial(gateway.fence, log_dir=target.log_dir, topic=target.topic, reason=reason, by=who(os.environ))
        if not is_answered(order):
            return ExitCode.PARTIAL
        state = gateway.state()
    fence = next((fence for fence in target.among(state.fences) if fence.cause is FenceCause.MANUAL), None)
    if fence is None:
        raise BrimlineError(f"the gateway set the fence on {target}, but it has been lifted since")
    with writing_to(sys.stdout, utf_8=False) as out:
        out.write(f"fenced {target}: {_effect(fence, state)}\n")
        out.write(f"reason: {fence.reason} (by {fence.by})\n{how_to_lift(fence, args.config)}\n")
    return ExitCode.DONE


def _effect(fence: "StandingFence", state: "GatewayState") -> str:
    if not state.is_enforcing:
        return f"Produce to {counted_partitions(fence.partitions)} is counted, not refused (observe mode)"
    if not fence.partitions:
        return "no partition on this broker now; Produce to new ones is refused"
    return f"Produce to {counted_partitions(fence.partitions)} is refused with error {state.reject_error}"
