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
Show what a disk ceiling would delete from this broker now, which consumer groups would lose records, and how full the
disks would be. With --apply, delete it.

The ceiling is log.retention.disk.usage.percent of the broker's own properties file (KIP-61). Above it the oldest closed
segments of all topics are deleted until the disk is below it. Never deleted: active segments, records above the high
watermark, internal, tiered, only compacted or protected topics, anything within the minimum retention; by default also
compact,delete topics and topics kept forever (brimline.reclaim.policy). A trim shrinks the partition on every broker
that has a replica.

Runs on the broker's host. Without --apply it changes nothing and can run at any time, beside a guard too.

acts:
  pause     stop all cycles of this broker, the guard's and those by hand, until resume. It says on which other brokers
            it does not count: their guards may delete from the same partitions
  resume    end the pause; both are recorded in the ledger"""
EPILOG = """\
examples:
  brimline reclaim --config /etc/kafka/server.properties
      what would be deleted, per topic and by age; which consumer groups would lose records; why the rest stays
  brimline reclaim --config /etc/kafka/server.properties --ceiling 70
      the same with another ceiling
  brimline reclaim --config /etc/kafka/server.properties --apply
      show it, ask, delete only what was shown, and wait until the space is freed
  brimline reclaim --config /etc/kafka/server.properties --output json > plan.json
  brimline reclaim --config /etc/kafka/server.properties --apply --plan plan.json --yes
      save a plan, review it, and carry out later what is still true of it. A plan with its own ceiling (--ceiling,
      fleet simulate) needs that ceiling again: --apply --plan plan.json --ceiling 70
  brimline reclaim --config /etc/kafka/server.properties --output json | jq '.about.groups[].group'
      the consumer groups that would lose records
  brimline reclaim pause --config /etc/kafka/server.properties --reason "replay of orders, CHG-1042"
      --guard http://broker2:9827 --guard http://broker3:9827 asks these whether they are paused as well
  brimline reclaim resume --config /etc/kafka/server.properties

exit codes:
  0    shown, or nothing to delete; with --apply: all planned space was freed
  1    nothing was deleted: paused, not confirmed, another cycle running, no answer, a plan for another broker
  3    a disk stays above its ceiling or is unknown; with --apply also: a part was skipped, abandoned or stopped: the
       output says why
  130  interrupted from the keyboard; with --apply the guard or the next brimline reclaim --apply finishes what was
       sent and plans the rest again"""
_PAUSE, _RESUME = "pause", "resume"
_LARGEST_CEILING = 99
_LOOKED_AFTER = (
    "the guard or the next brimline reclaim --apply finishes what was sent and plans the rest again (brimline "
    "ledger shows which)"
)


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser(
        "reclaim", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "act",
        nargs="?",
        choices=(_PAUSE, _RESUME),
        metavar="pause|resume",
        help="pause or resume all reclaim of this broker; else a cycle is planned",
    )
    add_config_options(parser)
    add(
        "--ceiling",
        type=_ceiling,
        metavar="PERCENT",
        help="plan for this ceiling instead of the file's; with --plan: confirms the plan's own",
    )
    add(
        "--log-dir", action="append", default=[], metavar="DIR", help="only the volume of this log dir; may be repeated"
    )
    add("--device", action="append", default=[], metavar="MAJOR:MINOR", help="only this volume; may be repeated")
    add("--apply", action="store_true", help="delete what is shown, after asking")
    add(
        "--plan", type=Path, metavar="FILE", help="a plan from --output json: deletes only what is in it and still true"
    )
    add("--yes", action="store_true", help="with --apply: do not ask")
    add(
        "--no-wait",
        action="store_true",
        help="with --apply: end when the leaders have answered, do not wait for the space",
    )
    add(
        "--guard",
        action="append",
        default=[],
        metavar="URL",
        help="with pause: address of another broker's guard, asked whether it is paused too; may be repeated (default: "
        "brimline.guards)",
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

        return pause(config, args.reason, args.guard) if args.act == _PAUSE else resume(config, args.reason)
    wanted = _wanted(args, config)
    return _apply(args, config, wanted) if args.apply else _show(args, config, wanted)


def _refuse_contradictions(args: argparse.Namespace) -> None:
    from brimline.model.failures import BadInput

    of_a_cycle = ("ceiling", "log_dir", "device", "apply", "plan", "yes", "no_wait")
    given = [f"--{name.replace('_', '-')}" for name in of_a_cycle if _is_given(getattr(args, name))]
    if args.act is not None and given:
        raise BadInput(f"{args.act} applies to all cycles of this broker: remove {given[0]}")
    if args.act is None and args.reason is not None:
        raise BadInput("--reason is for pause and resume")
    if args.act != _PAUSE and args.guard:
        raise BadInput("--guard is for pause")
    if args.plan is not None and {"--log-dir", "--device"}.intersection(given):
        raise BadInput("the plan names its volumes: remove --log-dir and --device")
    for option in ("--yes", "--no-wait"):
        if option in given and not args.apply:
            raise BadInput(f"{option} needs --apply")


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
    from brimline.act.ledger.ledger import PauseFile
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import writing_to
    from brimline.guard.reclaim.words import pause_sentence

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
    pause = PauseFile(config.state_dir, config.node_id).read()
    if pause is not None:
        print(f"brimline: reclaim {pause_sentence(pause)}: --apply deletes nothing until then", file=sys.stderr)
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
    from brimline.guard.reclaim.hand import HandCycles
    from brimline.service.clock import SystemClock

    if not args.yes:
        refuse_without_terminal(sys.stdin)
    by = f"{who(os.environ)} (brimline reclaim{', ceiling by hand' * wanted.is_ceiling_by_hand})"
    with closing(HandCycles(config, SystemClock(), by)) as cycles:
        cycles.refuse_while_paused()
        shown = _looked(config, wanted)
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
    _tell_left_out(done)
    is_whole = _is_enough(shown, wanted) and not (done.left_out or done.abandoned or done.broken_off)
    return ExitCode.DONE if is_whole else ExitCode.PARTIAL


def _tell_left_out(done: "CarriedOut") -> None:
    for left_out in done.left_out:
        print(
            f"brimline: skipped, changed since it was shown: {left_out.trim.partition}: {left_out.why}", file=sys.stderr
        )
    if done.broken_off is not None:
        print(f"brimline: stopped: {done.broken_off}; {_LOOKED_AFTER}", file=sys.stderr)


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
