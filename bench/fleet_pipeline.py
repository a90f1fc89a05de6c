"""The whole pipeline in a process of its own: from starting Python to the last table, and the ingest alone.

The session is Brimline's, or one as pyspark makes it by default, with only what the jobs cannot do without: Delta,
UTC, and this Python for the workers. The jobs are the same, and their tables must be.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from bench.fleet_landing import LANDING, UNTIL_MS
from bench.fleet_tree import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from brimline.fleet.session.progress import RunStep

NOW = datetime.fromtimestamp(UNTIL_MS / 1000, UTC) + timedelta(minutes=1)


class Session(Enum):
    OURS = "ours"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piped:
    seconds: float
    """From starting the process to the end of the last table."""
    steps: dict[str, float]
    digest: str
    peak_megabytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    seconds: float
    """Of the second ingest in a session, into an empty warehouse."""
    rows: int
    """In the landed files, segments included."""
    appended: int
    """Of them, those of volumes, topics and logs, which become rows of tables each."""


def piped(session: Session, folder: Path, warehouse: Path) -> Piped:
    begin = time.monotonic()
    command = [sys.executable, "-m", "bench.fleet_pipeline", "round", session.name, str(folder), str(warehouse)]
    run = watched([*command, str(begin)], {"PYSPARK_PYTHON": sys.executable})
    return Piped(**json.loads(run.output.splitlines()[-1]), peak_megabytes=run.peak_megabytes)


def ingested(folder: Path, warehouse: Path) -> Ingested:
    run = watched([sys.executable, "-m", "bench.fleet_pipeline", "ingest", str(folder), str(warehouse)])
    return Ingested(**json.loads(run.output.splitlines()[-1]))


def round_here(session: Session, folder: Path, warehouse: Path, began: float) -> dict[str, object]:
    from brimline.fleet.jobs.run import run_round
    from brimline.fleet.session.progress import Progress
    from brimline.fleet.tables.warehouse import Warehouse

    steps = _Steps()
    with _session(session) as spark:
        steps.seconds["start of Python and Spark"] = time.monotonic() - began
        report = run_round(
            spark, str(folder / LANDING), Warehouse(str(warehouse)), Progress(steps), tasks=os.cpu_count() or 1, now=NOW
        )
        seconds = time.monotonic() - began
    if report.failures:
        raise RuntimeError(f"steps failed: {report.failures}")
    return {"seconds": seconds, "steps": steps.seconds, "digest": _digest(warehouse)}


def ingest_here(folder: Path, warehouse: Path) -> dict[str, object]:
    from brimline.fleet.ingest.ingest import ingest
    from brimline.fleet.tables.warehouse import Warehouse
    from brimline.landing.reader import read_header

    with _session(Session.OURS) as spark:
        for number in range(2):
            begin = time.monotonic()
            place = Warehouse(str(warehouse / str(number)))
            report = ingest(spark, str(folder / LANDING), place, tasks=os.cpu_count() or 1)
            seconds = time.monotonic() - begin
    if report.quarantined:
        raise RuntimeError(f"files were refused: {report.quarantined}")
    headers = map(read_header, sorted((folder / LANDING).rglob("*.parquet")))
    segments = sum(header.sections["segments"].rows for header in headers)
    return {"seconds": seconds, "rows": report.rows, "appended": report.rows - segments}


class _Steps:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def show(self, step: "RunStep") -> None:
        if step.seconds is not None:
            self.seconds[step.name] = step.seconds


@contextmanager
def _session(session: Session) -> "Iterator[SparkSession]":
    from brimline.fleet.session.session import SessionSettings, spark_session

    if session is Session.OURS:
        with spark_session(SessionSettings()) as spark:
            yield spark
        return
    spark = _default_session()
    try:
        yield spark
    finally:
        spark.stop()


def _default_session() -> "SparkSession":
    from pyspark.sql import SparkSession

    from brimline.fleet.session.delta_jars import delta_jars

    builder: SparkSession.Builder = SparkSession.builder
    return (
        builder.master("local[*]")
        .config("spark.jars", ",".join(jar.as_uri() for jar in delta_jars()))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def _digest(warehouse: Path) -> str:
    """Of all rows of all tables that answer."""
    from brimline.fleet.tables.gold_schemas import GOLD
    from brimline.fleet.tables.show import TableLook, look_at

    content = hashlib.sha256()
    for table in sorted(GOLD):
        rows = sorted(map(repr, look_at(str(warehouse), table, TableLook()).rows))
        content.update(f"{table.value}: {rows}".encode())
    return content.hexdigest()


def main(arguments: list[str]) -> int:
    match arguments:
        case ["round", session, folder, warehouse, began]:
            found = round_here(Session[session], Path(folder), Path(warehouse), float(began))
        case ["ingest", folder, warehouse]:
            found = ingest_here(Path(folder), Path(warehouse))
        case _:
            raise SystemExit("round SESSION FOLDER WAREHOUSE BEGAN | ingest FOLDER WAREHOUSE")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
