"""``brimline torture``: real clients, real faults, and a judge; against a sandbox of its own."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from brimline.cli.shared.options import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brimline.cli.parser import Parser
    from brimline.torture.judge import Facts, InvariantVerdict

DESCRIPTION = """\
Inject faults into a sandbox and judge the result by invariants.

`run` starts a real Kafka on small volumes with a gateway and a guard beside every broker, lets clients of several
libraries write numbered records through the gateways, and injects faults by a seeded schedule: kills, stops and
restarts, disks that fill, hang or come back empty, damaged state, clock jumps, moving leaders. All of it is written to
a history. At the end all records are read back, and every invariant is judged. `check` judges a history again.
`hostile` sends malformed frames to a real broker behind a fence. `conformance` tests what any Kafka-compatible system
does when a disk fills. `writers` asks whether a broker outlives every writer of its disk. docs/torture.md explains the
invariants and the faults.
"""
RUN_EPILOG = """\
examples:
  brimline torture run
      ten minutes of all faults against one broker, with a random seed
  brimline torture run --seed 7 --brokers 3 --kafka-version 3.9.2 --minutes 30
      the same schedule again, against three brokers of another version
  brimline torture run --seed 7 --steps 4-6
      only three steps of that run
  brimline torture run --only gateway-kill,disk-foreign --steps 20
      twenty steps of these two faults, alone and together

exit codes:
  0    every invariant holds
  1    an invariant is violated, or the run could not be carried out"""
CHECK_EPILOG = """\
exit codes:
  0    every invariant holds
  1    an invariant is violated, or the file is not a history"""
MOST_SHOWN = 5


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    from brimline.torture.conformance import command as conformance
    from brimline.torture.hostile import command as hostile
    from brimline.torture.writers import command as writers

    torture = subparsers.add_parser("torture", description=DESCRIPTION)
    actions = torture.add_subparsers(dest="action", required=True, metavar="run|check|hostile|writers|conformance")
    run = actions.add_parser("run", help="torture a sandbox and judge", description=DESCRIPTION, epilog=RUN_EPILOG)
    run.add_argument("--seed", type=int, metavar="N", help="of the schedule (default: random, printed)")
    run.add_argument(
        "--only", type=names, default=(), metavar="FAULT[,FAULT]", help="only these faults; `list`: name them"
    )
    run.add_argument(
        "--steps",
        type=_steps,
        default=range(1, 10_000),
        metavar="N|N-M",
        help="the first N steps, or these (default: all)",
    )
    run.add_argument(
        "--minutes", type=float, default=10.0, metavar="M", help="start no step after this many minutes (default: 10)"
    )
    run.add_argument("--kafka-version", default="4.3.1", metavar="VERSION", help="of Kafka (default: %(default)s)")
    run.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="(default: 1)")
    run.add_argument("--clients", type=names, default=(), metavar="NAME[,NAME]", help="only these; `list`: name them")
    run.add_argument(
        "--history", type=Path, metavar="FILE", help="where it is written (default: torture-….jsonl, here)"
    )
    run.set_defaults(func=run_torture)
    check = actions.add_parser("check", help="judge a history again", epilog=CHECK_EPILOG)
    check.add_argument("history", type=Path, metavar="HISTORY")
    check.set_defaults(func=run_check)
    hostile.add_parser(actions)
    writers.add_parser(actions)
    conformance.add_parser(actions)


def run_torture(args: argparse.Namespace) -> int:
    import signal
    from random import SystemRandom

    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.torture.faults.all_faults import FAULTS
    from brimline.torture.load import WRITERS
    from brimline.torture.run import Order, tortured

    faults = {fault.name: fault.does for fault in FAULTS}
    clients = {writer.name: f"writes to {writer.topic}, {writer.promise}" for writer in WRITERS}
    for asked, known in ((args.only, faults), (args.clients, clients)):
        if asked == ("list",):
            _tell("\n".join(f"{name:24}{what}" for name, what in known.items()))
            return ExitCode.DONE
        _refuse_unknown(asked, known)
    seed = SystemRandom().randrange(1_000_000) if args.seed is None else args.seed
    history = args.history or Path(f"torture-{args.kafka_version}-{args.brokers}-{seed}.jsonl")
    order = Order(
        seed=seed,
        version=args.kafka_version,
        brokers=args.brokers,
        steps=args.steps,
        minutes=args.minutes,
        only=args.only,
        clients=args.clients,
    )
    _tell(f"seed {seed}, history in {history}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clients and brokers end with it
    tortured(order, history, _tell)
    return _judged(history)


def run_check(args: argparse.Namespace) -> int:
    return _judged(args.history)


def _judged(history: Path) -> int:
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.torture.history import read_history
    from brimline.torture.judge import judge

    facts, verdicts = judge(read_history(history))
    _tell(report(facts, verdicts, history))
    return ExitCode.DONE if all(verdict.holds for verdict in verdicts) else ExitCode.FAILED


def report(facts: "Facts", verdicts: "Sequence[InvariantVerdict]", history: Path) -> str:
    """What it saw, a line for every invariant, and the first violations of each with their place."""
    stored = sum(map(len, facts.stored.values()))
    lines = [""]
    if facts.begun and facts.finished:
        lines.append(
            f"Kafka {facts.begun.version}, {facts.begun.brokers} broker{'s' * (facts.begun.brokers > 1)}, "
            f"seed {facts.begun.seed}: "
            f"{facts.finished.faults} faults in {facts.finished.minutes:.1f} minutes"
        )
    lines += [
        f"{len(facts.clients)} clients, {len(facts.sent):,} records sent, {len(facts.acked):,} acknowledged, "
        f"{stored:,} read back, {len(facts.fences)} fences, {len(facts.planned)} trims planned",
        "",
    ]
    for verdict in verdicts:
        word = _word(verdict)
        lines.append(f"{verdict.invariant.name:26}{word:28}{verdict.invariant.sentence}")
        lines += [f"    {history}:{each.line}: {each.sentence}" for each in verdict.violations[:MOST_SHOWN]]
    return "\n".join(lines)


def _word(verdict: "InvariantVerdict") -> str:
    if verdict.holds:
        return "holds" if verdict.was_seen else "no data"
    return f"VIOLATED, {len(verdict.violations):,} time{'s' * (len(verdict.violations) > 1)}"


def _refuse_unknown(asked: "Sequence[str]", known: "dict[str, str]") -> None:
    from brimline.model import BadInput

    unknown = [name for name in asked if name not in known]
    if unknown:
        raise BadInput(f"no {', '.join(unknown)}: there are {', '.join(known)}")


def _steps(text: str) -> range:
    first, separator, last = text.partition("-")
    if not first.isdecimal() or not (last.isdecimal() or not separator) or int(first) < 1:
        raise argparse.ArgumentTypeError(f"{text}: a number of steps such as 20, or some of them such as 4-6")
    return range(int(first), int(last) + 1) if separator else range(1, int(first) + 1)


def _tell(text: str) -> None:
    print(text, file=sys.stdout, flush=True)
