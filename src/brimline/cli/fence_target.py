"""What ``fence`` and ``unfence`` have in common: the target, who asks, and the gateway's view of that target."""

import argparse
import os
import pwd
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brimline import __version__
from brimline.cli.guard import add_config_options
from brimline.model.failures import BadInput

if TYPE_CHECKING:
    from brimline.guard.gateway_state import Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceTarget:
    """Exactly one of both is given."""

    log_dir: str | None
    topic: str | None

    def __str__(self) -> str:
        return self.log_dir if self.log_dir is not None else f"topic {self.topic}"

    def among(self, fences: "Iterable[Fence]") -> "list[Fence]":
        return [fence for fence in fences if (fence.log_dir, fence.topic) == (self.log_dir, self.topic)]


def add_fence_options(parser: argparse.ArgumentParser, *, is_reason_needed: bool, reason_help: str) -> None:
    add_config_options(parser)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--log-dir", metavar="DIR", help="every partition in this log dir of the broker")
    target.add_argument("--topic", metavar="NAME", help="every partition of this topic on the broker")
    parser.add_argument("--reason", required=is_reason_needed, default="", metavar="TEXT", help=reason_help)
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks")
    parser.add_argument("--version", action="version", version=f"brimline {__version__}")


def target_of(args: argparse.Namespace, log_dirs: tuple[str, ...]) -> FenceTarget:
    """``log_dirs`` are the broker's; a path may be written in another way than in its file."""
    if args.topic is not None:
        return FenceTarget(log_dir=None, topic=args.topic)
    wanted = os.path.normpath(os.path.join(os.getcwd(), args.log_dir))  # noqa: PTH109, PTH118 (no link is followed)
    for log_dir in log_dirs:
        if os.path.normpath(log_dir) == wanted:
            return FenceTarget(log_dir=log_dir, topic=None)
    raise BadInput(f"{args.log_dir} is no log dir of this broker; its log dirs are: {', '.join(log_dirs)}")


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


def counted_partitions(number: int) -> str:
    return "its 1 partition" if number == 1 else f"its {number:,} partitions"
