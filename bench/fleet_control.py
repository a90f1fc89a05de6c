"""What a round of the ingest does beside reading files, late on a day with a snapshot of each broker in five minutes.

``python -m bench.fleet_control 10000`` is for 10,000 brokers: 2.9 million empty files, and a table that knows all but
the last of each broker. Opening them is left out (no task runs); listing, choosing, judging and commits are real.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from bench.ratio import AgainstGoal
from brimline.landing.header import Header, Section, Source
from brimline.landing.schema import SECTIONS

BROKERS, LARGE_BROKERS = 1_000, 10_000
A_DAY = 288
ROUND_SECONDS = 300


def figures(brokers: int = BROKERS) -> Iterator[AgainstGoal]:
    from brimline.fleet.ingest import batch, ingest
    from brimline.fleet.ingest.look import look_for_new
    from brimline.fleet.ingest.memory import Memory, remember
    from brimline.fleet.tables.warehouse import Warehouse

    until = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(minutes=1)
    moments = [round((until - timedelta(minutes=5 * ago)).timestamp() * 1000) for ago in reversed(range(A_DAY))]
    with TemporaryDirectory(prefix="brimline-bench-") as folder:
        landing, warehouse = Path(folder) / "landing", Warehouse(str(Path(folder) / "warehouse"))
        _land(landing, brokers, moments)
        _know(warehouse, landing, brokers, moments[:-1])
        folders = {"/".join(_header(each, 0).name.split("/")[:3]): moments[-2] for each in range(brokers)}
        now_ms = round(time.time() * 1000)
        remember(warehouse, Memory(stream="s", number=A_DAY, marks_ms=folders, looked_through_ms=now_ms))
        run = ingest._Ingest(None, warehouse, tasks=2)  # type: ignore[arg-type]  # no task runs
        spent: dict[str, tuple[float, float]] = {}
        look = _timed(spent, "the look for new files", look_for_new)
        with patch.object(ingest, "look_for_new", look), patch.object(batch, "_run_tasks", _examined):
            report = _timed(spent, "the whole control path", run.everything)(str(landing), 2_000, lambda _: None)
    if report.snapshots != brokers:
        raise RuntimeError(f"{report.snapshots} snapshots were taken in, not {brokers}")
    what = f"{brokers:,} brokers, {brokers * A_DAY:,} files a day, a round late on it"
    for name, (seconds, cpu) in spent.items():
        yield AgainstGoal(what=f"{what}: {name}", unit="s", ours=seconds, goal=ROUND_SECONDS)
        yield AgainstGoal(what="the same: CPU time", unit="s", ours=cpu)


def _timed(spent: dict[str, tuple[float, float]], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: object) -> object:
        begin, cpu = time.monotonic(), time.process_time()
        try:
            return function(*args)
        finally:
            spent[name] = time.monotonic() - begin, time.process_time() - cpu

    return timed


def _header(broker: int, at_ms: int) -> Header:
    sections = {name: Section(first_group=place, groups=1, rows=1) for place, name in enumerate(SECTIONS)}
    return Header(
        snapshot_id=f"{at_ms:012x}{broker:06x}",
        cluster_id=f"cluster-{broker % 10}",
        broker_id=broker,
        source=Source.GUARD,
        taken_at_ms=at_ms,
        sections=sections,
    )


def _land(landing: Path, brokers: int, moments: Sequence[int]) -> None:
    for broker in range(brokers):
        for at_ms in moments:
            path = landing / _header(broker, at_ms).name
            if at_ms == moments[0] or not path.parent.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
            os.mknod(path)


def _know(warehouse: Any, landing: Path, brokers: int, moments: Sequence[int]) -> None:
    """A commit for each moment: ``snapshots`` as the rounds before have left it, and ``newest``."""
    from brimline.fleet.ingest.batch import _snapshot_row
    from brimline.fleet.ingest.judge import Accepted
    from brimline.fleet.tables.catalogue import Table
    from brimline.fleet.tables.manifest import with_snapshots

    for at_ms in moments:
        headers = [_header(broker, at_ms) for broker in range(brokers)]
        taken = [Accepted(path=str(landing / each.name), file_bytes=1, header=each) for each in headers]
        rows = [_snapshot_row(each, datetime.now(UTC)) for each in taken]
        warehouse.write(rows, Table.SNAPSHOTS, "append")
    warehouse.write(with_snapshots([], rows), Table.NEWEST, "overwrite")


def _examined(_: object, __: object, paths: Sequence[str], *___: object) -> Any:
    """What tasks would say of these files."""
    from brimline.fleet.ingest.batch import _examined_row, _Report
    from brimline.fleet.ingest.file import Examined

    rows = []
    for path in paths:
        broker, at_ms = Path(path).parts[-3], Path(path).name.split("-")[0]
        header = _header(int(broker), int(at_ms))
        rows.append(_examined_row(Examined(path=path, file_bytes=1, header=header, failure=None), is_written=True))
    return _Report([{**row, "table": None} for row in rows])


if __name__ == "__main__":
    for row in figures(*map(int, sys.argv[1:2])):
        print(row.row(), flush=True)
