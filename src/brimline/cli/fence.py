"""``brimline fence``: refuse Produce for a log dir or a topic by hand. Speaks to the gateway; needs no guard."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from brimline.cli.fence_target import add_fence_options, counted_partitions, reason_of, target_of, who

if TYPE_CHECKING:
    from brimline.cli.parser import Parser
    from brimline.guard.gateway_state import Fence, GatewayState

DESCRIPTION = """\
Refuse Produce for every partition in one log dir, or of one topic, of this broker, until it is lifted by hand.

Reads, deletions and everything else go on; so do Kafka's internal topics. Fences on full disks come and go by
themselves: this one is for the moment before you move a disk or repair one. The gateway is told directly, so this
works without a guard, and it remembers it across restarts. Who fenced what, when and why is in the gateway's log and
in `brimline status`.
"""
EPILOG = """\
examples:
  brimline fence --config /etc/kafka/server.properties --log-dir /data/a --reason "moving this disk, CHG-1042"
      producers to partitions in /data/a get an error that names the reason; /data/b is not touched
  brimline fence --config /etc/kafka/server.properties --topic clicks --reason "runaway producer"
      the same for one topic, wherever its partitions are on this broker
  brimline unfence --config /etc/kafka/server.properties --topic clicks
      and the way back

exit codes:
  0    fenced
  1    nothing was changed: no gateway is running, no such log dir, or no permission"""


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "fence", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_fence_options(
        parser, is_reason_needed=True, reason_help="why, for the record and for the clients that are refused"
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    from brimline.cli.exit_codes import ExitCode
    from brimline.cli.output import writing_to
    from brimline.guard.config import load_config
    from brimline.guard.gateway_client import GatewayClient, control_socket
    from brimline.guard.gateway_state import Cause
    from brimline.guard.sentences import how_to_lift
    from brimline.model import BadInput, BrimlineError

    reason = reason_of(args)
    if not reason:
        raise BadInput("--reason: is empty; whoever meets this fence will want to know why")
    config = load_config(args.config, os.environ, args.broker_cwd)
    target = target_of(args, config.broker.log_dirs)
    with GatewayClient(control_socket(config)) as gateway:
        gateway.fence(log_dir=target.log_dir, topic=target.topic, reason=reason, by=who(os.environ))
        state = gateway.state()
    fence = next((fence for fence in target.among(state.fences) if fence.cause is Cause.MANUAL), None)
    if fence is None:
        raise BrimlineError(f"the gateway took the fence on {target}, but somebody has lifted it already")
    with writing_to(sys.stdout, utf_8=False) as out:
        out.write(f"fenced {target}: {_effect(fence, state)}\n")
        out.write(f"reason: {fence.reason} (by {fence.by})\n{how_to_lift(fence, args.config)}\n")
    return ExitCode.DONE


def _effect(fence: "Fence", state: "GatewayState") -> str:
    if not state.is_enforcing:
        return (
            f"Produce to {counted_partitions(fence.partitions)} goes through and is counted, because "
            "brimline.enforcement is observe"
        )
    if not fence.partitions:
        return "it has no partition on this broker now; Produce to any that appears is refused"
    return f"Produce to {counted_partitions(fence.partitions)} is refused from now on, with error {state.reject_error}"
