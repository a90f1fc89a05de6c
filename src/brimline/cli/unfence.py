"""``brimline unfence``: lift a fence that was set by hand. Speaks to the gateway; needs no guard."""

import argparse
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from brimline.cli.fence import (
    FenceTarget,
    add_fence_options,
    counted_partitions,
    is_answered,
    reason_of,
    target_of,
    who,
)

if TYPE_CHECKING:
    from brimline.cli.parser import Parser
    from brimline.documents.gateway_state import GatewayState

DESCRIPTION = """\
Lift a fence that was set with `brimline fence`: Produce is accepted again.

A fence on a full disk cannot be lifted by hand, because the next write could end the broker. It is lifted automatically
when the disk has room: lower the retention of a topic, delete a topic or move replicas.
"""
EPILOG = """\
examples:
  brimline unfence --config /etc/kafka/server.properties --log-dir /data/a --reason "the disk is in its place"
  brimline unfence --config /etc/kafka/server.properties --topic clicks

exit codes:
  0    lifted: Produce is accepted again
  1    nothing was changed: no gateway is running, or this was not fenced by hand
  3    lifted, but the disk is full: writes to it are still refused; or the gateway did not answer in time"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("unfence", description=DESCRIPTION, epilog=EPILOG)
    add_fence_options(parser, is_reason_needed=False, reason_help="why, for the record")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import writing_to
    from brimline.decide.admission import FenceCause
    from brimline.disks.sentences import how_to_lift
    from brimline.gateway.client import GatewayClient, control_socket
    from brimline.model import BadInput
    from brimline.settings.config import load_config

    reason = reason_of(args)
    config = load_config(args.config, os.environ, args.broker_cwd)
    target = target_of(args, config.broker.log_dirs)
    with GatewayClient(control_socket(config)) as gateway:
        before = gateway.state()
        by_hand = next((fence for fence in target.among(before.fences) if fence.cause is FenceCause.MANUAL), None)
        if by_hand is None:
            raise BadInput(_why_not(target, before, args.config))
        order = partial(gateway.unfence, log_dir=target.log_dir, topic=target.topic, reason=reason, by=who(os.environ))
        if not is_answered(order):
            return ExitCode.PARTIAL
        fences = gateway.state().fences
        left = target.among(fences)
        # A topic's partitions may be in a log dir that is fenced for itself
        around = [fence for fence in fences if target.topic is not None and fence.log_dir is not None]
    with writing_to(sys.stdout, utf_8=False) as out:
        out.write(f"lifted the fence on {target}, by {by_hand.by} since {by_hand.since:%Y-%m-%d %H:%M} UTC: ")
        out.write(f"{by_hand.reason}\n")
        if not left and not around:
            it = counted_partitions(by_hand.partitions) if by_hand.partitions else "it"
            out.write(f"Produce to {it} is accepted again\n")
            return ExitCode.DONE
        for fence in left[-1:]:  # gateway and guard both see a full disk, and the guard names its topics
            out.write(f"still fenced, because it is full: {fence.reason}\n{how_to_lift(fence, args.config)}\n")
        for fence in around:
            out.write(f"still refused: its partitions in {fence.log_dir}, which is fenced: {fence.reason}\n")
            out.write(f"{how_to_lift(fence, args.config)}\n")
    return ExitCode.PARTIAL


def _why_not(target: FenceTarget, state: "GatewayState", config_path: str) -> str:
    from brimline.disks.sentences import how_to_lift

    automatic = target.among(state.fences)
    if automatic:
        return (
            f"{target} is fenced because it is full, not by hand ({automatic[0].reason}): "
            f"{how_to_lift(automatic[0], config_path)}"
        )
    others = ", ".join(dict.fromkeys(fence.target for fence in state.fences))
    return f"{target} is not fenced; " + (f"fenced are: {others}" if others else "nothing is")
