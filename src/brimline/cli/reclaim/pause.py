"""``brimline reclaim pause`` and ``resume``: a file and an entry in the ledger, which every cycle reads before every
batch. The file is first to come and last to go."""

import os
import sys
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta

from brimline.act.ledger.entries import Paused, Resumed
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import Pause
from brimline.cli.fence import who
from brimline.cli.shared.exit_codes import ExitCode
from brimline.cli.shared.output import writing_to
from brimline.documents.guard_note import NoteRefused
from brimline.guard.broker_client import BrokerClient
from brimline.guard.reclaim.note import current_note, is_shared, not_told
from brimline.model import BadInput, ObservationFailed, counted
from brimline.service.clock import SystemClock
from brimline.service.durable_files import NotRecorded
from brimline.settings import keys
from brimline.settings.config import GuardConfig

_PATIENCE = timedelta(seconds=5)
_NO_REASON = "no reason given"


def pause(config: GuardConfig, reason: str | None) -> int:
    """Raises ``NotRecorded``: then nothing is paused. It is although the ledger cannot be written."""
    by, why = who(os.environ), _one_line(reason)
    with closing(_ledger(config)) as ledger, writing_to(sys.stdout, utf_8=False) as out:
        before = _known_pause(ledger)
        if before is not None:
            since = f"{before.since:%Y-%m-%d %H:%M:%S} UTC"
            out.write(f"reclaim is already paused by {before.by} since {since}: {before.reason}\n")
            return ExitCode.DONE
        ledger.pause_file.write(by=by, reason=why or _NO_REASON, since=SystemClock().now())
        out.write(f"reclaim paused by {by}: {why or _NO_REASON}\n")
        try:
            ledger.append(Paused(by=by, reason=why or _NO_REASON))
        except NotRecorded as error:
            out.write(f"not in the ledger: {error.why}\n")
        under_way = len(ledger.state.cycles)
        if under_way:
            cycles = counted(under_way, "cycle")
            out.write(f"{cycles} in progress: what was sent will be carried out, nothing more is sent\n")
        out.write("ceilings are not held until it is resumed:\n")
        out.write(f"  brimline reclaim resume --config {config.path}\n")
        out.flush()
        out.write(_told_to_others(config, ledger.pause, "pause too, from their next cycle or batch"))
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
        out.write(f"reclaim resumed; it was paused by {before.by} since {before.since:%Y-%m-%d %H:%M:%S} UTC\n")
        out.flush()
        out.write(_told_to_others(config, None, "resume too, with their next cycle"))
    return ExitCode.DONE


def _told_to_others(config: GuardConfig, pause: Pause | None, what_they_do: str) -> str:
    """The guard tells them too, as soon as it sees the file: this is for one that does not run, and for the reader."""
    if not config.has_ceiling:
        return ""
    if not is_shared(config.reclaim_policy):
        return f"only on this broker: {keys.RECLAIM_BRAKES.name} is {keys.OWN}\n"
    client = BrokerClient(replace(config.admin, api_timeout=_PATIENCE), config.node_id, SystemClock())
    try:
        with closing(client):
            is_told = client.leave_guard_note(current_note(config.reclaim_policy, pause, SystemClock().now()))
    except (ObservationFailed, NoteRefused) as error:
        return f"{not_told(str(error))}; to pause them too, run it on their brokers\n"
    return f"guards of brokers with a replica in common {what_they_do}\n" if is_told else ""


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
