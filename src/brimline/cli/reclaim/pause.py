"""``brimline reclaim pause`` and ``resume``: a file and an entry in the ledger, which every cycle reads before every
batch. The file is first to come and last to go."""

import os
import sys
from contextlib import closing, suppress

from brimline.act.ledger.entries import Paused, Resumed
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import Pause
from brimline.cli.fence import who
from brimline.cli.shared.exit_codes import ExitCode
from brimline.cli.shared.output import writing_to
from brimline.model import BadInput, counted
from brimline.service.clock import SystemClock
from brimline.service.durable_files import NotRecorded
from brimline.settings.config import GuardConfig

_NO_REASON = "no reason given"


def pause(config: GuardConfig, reason: str | None) -> int:
    """Raises ``NotRecorded``: then nothing is paused. It is although the ledger cannot be written."""
    by, why = who(os.environ), _one_line(reason)
    with closing(_ledger(config)) as ledger, writing_to(sys.stdout, utf_8=False) as out:
        before = _known_pause(ledger)
        if before is not None:
            since = f"{before.since:%Y-%m-%d %H:%M:%S} UTC"
            out.write(f"reclaim was paused already by {before.by} since {since}: {before.reason}\n")
            return ExitCode.DONE
        ledger.pause_file.write(by=by, reason=why or _NO_REASON, since=SystemClock().now())
        out.write(f"reclaim is paused by {by}: {why or _NO_REASON}\n")
        try:
            ledger.append(Paused(by=by, reason=why or _NO_REASON))
        except NotRecorded as error:
            out.write(f"the ledger does not tell of it, because {error.why}\n")
        under_way = len(ledger.state.cycles)
        if under_way:
            cycles = counted(under_way, "cycle")
            out.write(f"{cycles} under way: what has been sent will still be carried out, nothing more is sent\n")
        out.write("the disks are not held below their ceiling until then:\n")
        out.write(f"  brimline reclaim resume --config {config.path}\n")
    return ExitCode.DONE


def resume(config: GuardConfig, reason: str | None) -> int:
    by, why = who(os.environ), _one_line(reason)
    with closing(_ledger(config)) as ledger, writing_to(sys.stdout, utf_8=False) as out:
        ledger.refresh()
        before = ledger.pause
        if before is None:
            out.write("reclaim is not paused\n")
            return ExitCode.DONE
        ledger.append(Resumed(by=by, reason=why))
        ledger.pause_file.remove()
        out.write(f"reclaim goes on; it was paused by {before.by} since {before.since:%Y-%m-%d %H:%M:%S} UTC\n")
    return ExitCode.DONE


def _known_pause(ledger: Ledger) -> Pause | None:
    with suppress(NotRecorded):
        ledger.refresh()
    return ledger.pause


def _ledger(config: GuardConfig) -> Ledger:
    return Ledger(config.state_dir, config.node_id, SystemClock().now)


def _one_line(reason: str | None) -> str:
    text = (reason or "").strip()
    if not text.isprintable():
        raise BadInput("--reason: write one line of plain text")
    return text
