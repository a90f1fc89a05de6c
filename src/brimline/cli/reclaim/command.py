"""``brimline reclaim``: one cycle by hand, or only a look at what it would delete; and ``pause`` and ``resume``."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from brimline import __version__
from brimline.cli.shared.options import add_config_options

if TYPE_CHECKING:
    from brimline.cli.parser import Parser
    from brimline.guard.reclaim.hand import CarriedOut, HandCycles
    from brimline.guard.reclaim.preview import Preview, Wanted
    from brimline.settings.config import GuardConfig

DESCRIPTION = """\
Show what a disk ceiling would delete from this broker now, who would miss it, and what the disks would look like. With
--apply, delete it.

The ceiling is log.retention.disk.usage.percent of the broker's own properties file (KIP-61). Above it the oldest closed
segments of all topics go first, until the disk is below it: never the active segment, nothing above the high watermark,
nothing of internal, tiered, only compacted or protected topics, nothing within the minimum retention. By default also
nothing of topics that are compacted at all, or kept for ever (brimline.reclaim.policy). A trim shrinks the partition on
every broker that has a replica.

Runs on the broker's host. Without --apply it changes nothing and may be run at any time, beside a guard too.

acts:
  pause     no cycle begins, and none goes on, neither by the guard nor by hand, until somebody resumes; guards of
            other brokers that hold a replica in common pause as well (brimline.reclaim.brakes)
  resume    and the way back; both are on record in the ledger"""
EPILOG = """\
examples:
  brimline reclaim --config /etc/kafka/server.properties
      what would go, per topic and by age; which consumer groups would miss records; why the rest stays
  brimline reclaim --config /etc/kafka/server.properties --ceiling 70
      what if: the same with another ceiling than the file's
  brimline reclaim --config /etc/kafka/server.properties --apply
      show it, ask, and delete; then wait until the space is back. Whatever was not shown is not deleted
  brimline reclaim --config /etc/kafka/server.properties --output json > plan.json
  brimline reclaim --config /etc/kafka/server.properties --apply --plan plan.json --yes
      decide now, let others look at it, and carry out later what of it is still true, and never more. A plan with a
      ceiling of its own (--ceiling, fleet simulate) needs that ceiling once more: --apply --plan plan.json --ceiling 70
  brimline reclaim --config /etc/kafka/server.properties --output json | jq '.about.groups[].group'
      the consumer groups that would miss records
  brimline reclaim pause --config /etc/kafka/server.properties --reason "replay of orders, CHG-1042"
  brimline reclaim resume --config /etc/kafka/server.properties

exit codes:
  0    shown, or nothing had to go; with --apply: everything that was planned is back
  1    nothing was deleted: paused, not confirmed, somebody else is at work, no answer, a plan for another broker
  3    a disk stays above its ceiling, or is not known; with --apply also: some of it was left out, given up or broken
       off, and the output says why
  130  interrupted from the keyboard; with --apply what was sent is looked after by the guard, or by the next brimline
       reclaim --apply, and what was not is decided anew"""
_PAUSE, _RESUME = "pause", "resume"
_LARGEST_CEILING = 99
_LOOKED_AFTER = (
    "what was sent is looked after by the guard, or by the next brimline reclaim --apply, and what was not is decided "
    "anew (brimline ledger shows which)"
)


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "reclaim", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("act", nargs="?", choices=(_PAUSE, _RESUME), metavar="pause|resume", help="see above; else a cycle is planned")
    add_config_options(parser)
    add(
        "--ceiling",
        type=_ceiling,
        metavar="PERCENT",
        help="plan for this ceiling, not for the one in the file; with --plan: yes, the plan's own",
    )
    add("--log-dir", action="append", default=[], metavar="DIR", help="only the volume that it is on; may be repeated")
    add("--device", action="append", default=[], metavar="MAJOR:MINOR", help="only this volume; may be repeated")
    add("--apply", action="store_true", help="delete what is shown, after asking")
    add("--plan", type=Path, metavar="FILE", help="what --output json wrote: only what is in it, and still true")
    add("--yes", action="store_true", help="with --apply: do not ask")
    add(
        "--no-wait",
        action="store_true",
        help="with --apply: end when the leaders have answered, not when space is back",
    )
    add("--reason", metavar="TEXT", help="with pause or resume: why, for the record")
    add(
        "--output",
        choices=("table", "json", "csv"),
        default="table",
        help="for people; json: the plan as a file; csv: a row per partition. With --apply json and csv are as in "
        "brimline ledger",
    )
    add("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks and the client's log")
    add("--version", action="version", version=f"brimline {__version__}")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    _refuse_contradictions(args)
    from brimline.settings.config import load_config

    config = load_config(args.config, os.environ, args.broker_cwd)
    if args.act is not None:
        from brimline.cli.reclaim.pause import pause, resume

        return pause(config, args.reason) if args.act == _PAUSE else resume(config, args.reason)
    wanted = _wanted(args, config)
    return _apply(args, config, wanted) if args.apply else _show(args, config, wanted)


def _refuse_contradictions(args: argparse.Namespace) -> None:
    from brimline.model.failures import BadInput

    of_a_cycle = ("ceiling", "log_dir", "device", "apply", "plan", "yes", "no_wait")
    given = [f"--{name.replace('_', '-')}" for name in of_a_cycle if _is_given(getattr(args, name))]
    if args.act is not None and given:
        raise BadInput(f"{args.act} is about all cycles of this broker: {given[0]} has no meaning there")
    if args.act is None and args.reason is not None:
        raise BadInput("--reason goes with pause and resume; what is deleted has its reason in the plan")
    if args.plan is not None and {"--log-dir", "--device"}.intersection(given):
        raise BadInput("a plan says itself for which volumes it is: leave the others out")
    for option in ("--yes", "--no-wait"):
        if option in given and not args.apply:
            raise BadInput(f"{option} goes with --apply; without it nothing is deleted")


def _is_given(value: object) -> bool:
    """A ceiling of 0 is."""
    return value is not None and value is not False and value != []


def _wanted(args: argparse.Namespace, config: "GuardConfig") -> "Wanted":
    from brimline.guard.reclaim.preview import Wanted

    if args.plan is not None:
        from brimline.act.plan_file import load_plan
        from brimline.guard.reclaim.settings import refuse_unsaid_ceiling

        plan = load_plan(args.plan)
        refuse_unsaid_ceiling(plan, args.ceiling, config.reclaim_policy, is_applied=args.apply)
        return Wanted(plan=plan)
    return Wanted(
        ceiling=args.ceiling,
        log_dirs=tuple(os.path.join(os.getcwd(), path) for path in args.log_dir),  # noqa: PTH109, PTH118 (no link)
        devices=tuple(args.device),
    )


def _show(args: argparse.Namespace, config: "GuardConfig", wanted: "Wanted") -> int:
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import writing_to

    shown = _looked(config, wanted)
    with writing_to(sys.stdout, utf_8=args.output != "table") as out:
        if args.output == "json":
            from brimline.cli.reclaim.for_programs import write_reclaim_json

            write_reclaim_json(shown, out)
        elif args.output == "csv":
            from brimline.cli.reclaim.for_programs import write_reclaim_csv

            write_reclaim_csv(shown, out)
        else:
            from brimline.cli.reclaim.table import write_reclaim_table

            write_reclaim_table(shown, out)
    is_whole = all(device.is_held for device in shown.devices) and not shown.left_out
    return ExitCode.DONE if is_whole else ExitCode.PARTIAL


def _looked(config: "GuardConfig", wanted: "Wanted") -> "Preview":
    from brimline.cli.reclaim.asking import status_on
    from brimline.guard.reclaim.preview import preview
    from brimline.service.clock import SystemClock

    with status_on(sys.stderr) as say:
        return preview(config, SystemClock(), wanted, say)


def _apply(args: argparse.Namespace, config: "GuardConfig", wanted: "Wanted") -> int:
    from contextlib import closing

    from brimline.cli.fence import who
    from brimline.cli.reclaim.asking import consent, refuse_without_terminal
    from brimline.cli.reclaim.table import write_reclaim_table
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import writing_to
    from brimline.guard.reclaim.hand import HandCycles, refuse_while_others_pause
    from brimline.service.clock import SystemClock

    if not args.yes:
        refuse_without_terminal(sys.stdin)
    by = f"{who(os.environ)} (brimline reclaim{', ceiling by hand' * wanted.is_ceiling_by_hand})"
    with closing(HandCycles(config, SystemClock(), by)) as cycles:
        cycles.refuse_while_paused()
        shown = _looked(config, wanted)
        refuse_while_others_pause(shown.peers)
        left_behind = cycles.left_behind(shown)
        if args.output == "table":
            with writing_to(sys.stdout, utf_8=False) as out:
                write_reclaim_table(shown, out, is_dry=False)
        else:
            for difference in shown.differs:
                print(f"brimline: {difference.sentence}", file=sys.stderr)
        if not shown.trims and not left_behind:
            if args.output != "table":
                _write_result(args.output, (), cycles)
            return ExitCode.DONE if _is_enough(shown, wanted) else ExitCode.PARTIAL
        if shown.trims and not args.yes and not consent(shown, sys.stdin, sys.stderr):
            print("brimline: not confirmed, nothing was deleted", file=sys.stderr)
            return ExitCode.FAILED
        done = _carried_out(cycles, shown, is_waiting=not args.no_wait)
        _write_result(args.output, done.cycles, cycles)
    for left_out in done.left_out:
        print(f"brimline: left out since it was shown: {left_out.trim.partition}: {left_out.why}", file=sys.stderr)
    if done.broken_off is not None:
        print(f"brimline: broken off, because {done.broken_off}; {_LOOKED_AFTER}", file=sys.stderr)
    is_whole = _is_enough(shown, wanted) and not (done.left_out or done.abandoned or done.broken_off)
    return ExitCode.DONE if is_whole else ExitCode.PARTIAL


def _is_enough(shown: "Preview", wanted: "Wanted") -> bool:
    """Whether all disks are below their ceiling when it is done. Of a plan from a file: whether all of it is true."""
    return not shown.left_out and (wanted.plan is not None or all(device.is_held for device in shown.devices))


def _carried_out(cycles: "HandCycles", shown: "Preview", *, is_waiting: bool) -> "CarriedOut":
    from brimline.cli.reclaim.asking import progress_text, status_on

    try:
        with status_on(sys.stderr) as say:
            return cycles.carry_out(
                shown,
                is_waiting=is_waiting,
                report=lambda progress: say(progress_text(progress, is_waiting=is_waiting)),
            )
    except KeyboardInterrupt:
        print(f"\nbrimline: interrupted; {_LOOKED_AFTER}", file=sys.stderr)
        raise


def _write_result(output: str, done: tuple[object, ...], cycles: "HandCycles") -> None:
    from brimline.act.ledger.state import CycleRecord
    from brimline.act.ledger.story import Story
    from brimline.cli.shared.output import writing_to

    story = Story(chapters=tuple(cycle for cycle in done if isinstance(cycle, CycleRecord)), damage=())
    with writing_to(sys.stdout, utf_8=output != "table") as out:
        if output == "json":
            from brimline.cli.ledger.for_programs import write_ledger_json

            write_ledger_json(story, cycles.files, out)
        elif output == "csv":
            from brimline.cli.ledger.for_programs import write_ledger_csv

            write_ledger_csv(story, out)
        else:
            from brimline.cli.ledger.table import write_ledger_table

            out.write("\n")
            write_ledger_table(story, cycles.files, out)


def _ceiling(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= _LARGEST_CEILING):
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 to {_LARGEST_CEILING}")
    return int(text)
