"""``brimline reclaim pause`` and ``resume``: an entry in the ledger, which every cycle reads before every batch."""

import os
import sys
from contextlib import closing

from brimline.act.ledger import Ledger
from brimline.act.ledger_entries import Paused, Resumed
from brimline.cli.exit_codes import ExitCode
from brimline.cli.fence_target import who
from brimline.cli.output import writing_to
from brimline.guard.clock import SystemClock
from brimline.guard.config import GuardConfig
from brimline.model import BadInput, human_count

_NO_REASON = "no reason given"


def pause(config: GuardConfig, reason: str | None) -> int:
    """Raises ``NotRecorded``: then nothing is paused."""
    by, why = who(os.environ), _one_line(reason)
    with closing(_ledger(config)) as ledger, writing_to(sys.stdout, utf_8=False) as out:
        ledger.refresh()
        before = ledger.state.pause
        if before is not None:
            since = f"{before.since:%Y-%m-%d %H:%M:%S} UTC"
            out.write(f"reclaim was paused already by {before.by} since {since}: {before.reason}\n")
            return ExitCode.DONE
        ledger.append(Paused(by=by, reason=why or _NO_REASON))
        out.write(f"reclaim is paused by {by}: {why or _NO_REASON}\n")
        under_way = len(ledger.state.cycles)
        if under_way:
            cycles = f"{human_count(under_way)} cycle{'s' * (under_way != 1)}"
            out.write(f"{cycles} under way: what has been sent will still be carried out, nothing more is sent\n")
        out.write("the disks are not held below their ceiling until then:\n")
        out.write(f"  brimline reclaim resume --config {config.path}\n")
    return ExitCode.DONE


def resume(config: GuardConfig, reason: str | None) -> int:
    by, why = who(os.environ), _one_line(reason)
    with closing(_ledger(config)) as ledger, writing_to(sys.stdout, utf_8=False) as out:
        ledger.refresh()
        before = ledger.state.pause
        if before is None:
            out.write("reclaim is not paused\n")
            return ExitCode.DONE
        ledger.append(Resumed(by=by, reason=why))
        out.write(f"reclaim goes on; it was paused by {before.by} since {before.since:%Y-%m-%d %H:%M:%S} UTC\n")
    return ExitCode.DONE


def _ledger(config: GuardConfig) -> Ledger:
    assert config.broker.node_id is not None
    return Ledger(config.state_dir, config.broker.node_id, SystemClock().now)


def _one_line(reason: str | None) -> str:
    text = (reason or "").strip()
    if not text.isprintable():
        raise BadInput("--reason: write one line of plain text")
    return text
