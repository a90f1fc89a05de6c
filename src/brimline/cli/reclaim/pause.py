"""``brimline reclaim pause`` and ``resume``: a file and an entry in the ledger, which every cycle reads before every
batch. The file is first to come and last to go."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta

from brimline.act.ledger.entries import Paused, Resumed
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import Pause
from brimline.cli.fence import who
from brimline.cli.shared.exit_codes import ExitCode
from brimline.cli.shared.output import writing_to
from brimline.guard.broker_client import BrokerClient
from brimline.guard.reclaim.others import ask_others
from brimline.model import BadInput, ObservationFailed, counted
from brimline.service.clock import SystemClock
from brimline.service.durable_files import NotRecorded
from brimline.settings.config import GuardConfig

_PATIENCE = timedelta(seconds=5)
_NO_REASON = "no reason given"


def pause(config: GuardConfig, reason: str | None, guards: Sequence[str] = ()) -> int:
    """``guards``: those to ask whether they are paused as well; none: those of the file.

    Raises ``NotRecorded``: then nothing is paused. It is although the ledger cannot be written.
    """
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
        for line in _where_else(config, guards):
            out.write(f"{line}\n")
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
    return ExitCode.DONE


def _where_else(config: GuardConfig, guards: Sequence[str]) -> Iterator[str]:
    """Whose guards go on: a trim by any of them shrinks this broker's replicas, too."""
    client = BrokerClient(replace(config.admin, api_timeout=_PATIENCE), config.node_id, SystemClock())
    try:
        with closing(client):
            holders = client.replica_holders()
    except ObservationFailed as error:
        yield f"on which brokers it does not count is unknown, because the cluster does not answer: {error}"
        return
    for broker, other in ask_others(config, holders, guards).items():
        if isinstance(other, str):
            yield f"unknown whether broker {broker} is paused, take it for no: {other}"
        elif other is None:
            yield f"broker {broker} deletes nothing: it has no ceiling"
        elif other.paused is not None:
            yield f"broker {broker} is paused as well, by {other.paused.by}: {other.paused.reason}"
        else:
            yield f"does not count on broker {broker}, which may delete from the same partitions: run it there too"


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
