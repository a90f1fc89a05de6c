"""A whole round: what has landed is taken in, then every table that answers is made anew. One session for all rounds.

Nothing here needs to be undone. The ingest goes on where it was, and a gold table is the old one until the new one is
whole; so a run may be interrupted anywhere, and the next one does what is left. A job that fails leaves its own table
as it was and is named; the others go on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # has no type marker
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from brimline.fleet.ingest.ingest import FILES_PER_BATCH, IngestReport, ingest
from brimline.fleet.jobs.inputs import Inputs
from brimline.fleet.jobs.jobs import JOBS, Job, run_job
from brimline.fleet.session.errors import JobFailed, LandingFailed, SparkGone, said_by
from brimline.fleet.session.progress import Progress, RunStep
from brimline.fleet.session.session import tune
from brimline.fleet.tables.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    ingest: IngestReport | None
    """``None``: it failed."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """What failed, and why."""


def run_round(
    spark: SparkSession,
    landing: str,
    warehouse: Warehouse,
    progress: Progress,
    *,
    tasks: int,
    now: datetime | None = None,
    files_per_batch: int = FILES_PER_BATCH,
    jobs: Sequence[Job] = JOBS,
) -> RoundReport:
    """``now`` is the time that the tables speak of; by default that of the first job's beginning."""
    failures: dict[str, str] = {}
    report = None
    tune(spark, is_small=True)  # the ingest has nothing for Spark to compile
    with progress.step("ingest") as step:
        try:
            report = ingest(
                spark,
                landing,
                warehouse,
                tasks=tasks,
                files_per_batch=files_per_batch,
                on_files=lambda files: progress.files(step, files),
            )
            step.rows, step.note = report.rows, _ingest_note(report)
        except (LandingFailed, JobFailed) as error:
            failures[step.name] = step.failure = str(error)
    inputs = Inputs(spark=spark, warehouse=warehouse, now=now or datetime.now(UTC), is_small=warehouse.is_small())
    tune(spark, is_small=inputs.is_small)
    for job in jobs:
        with progress.step(job.name.value) as step:
            _run(job, inputs, step)
        if step.failure is not None:
            failures[step.name] = step.failure
    return RoundReport(ingest=report, failures=failures)


def _run(job: Job, inputs: Inputs, step: RunStep) -> None:
    try:
        step.rows = run_job(job, inputs)
    except Py4JNetworkError as error:
        raise SparkGone from error
    except (PySparkException, Py4JError, DeltaError, OSError, pa.ArrowException) as error:
        step.failure = f"{said_by(error)} (the table is still the one of the run before)"


def _ingest_note(report: IngestReport) -> str:
    refused = ", ".join(f"{count} {reason}" for reason, count in report.quarantined.items())
    taken = f"{report.snapshots} snapshots"
    return f"{taken}, quarantined: {refused}" if refused else taken


def rounds(every_seconds: float | None, wait: Callable[[float], None], clock: Callable[[], float]) -> Iterator[int]:
    """One round, or one at every full interval: a round that takes longer is followed by the next at once."""
    number, due = 0, clock()
    while True:
        yield number
        if every_seconds is None:
            return
        number += 1
        due = max(due + every_seconds, clock())
        wait(max(due - clock(), 0.0))
