"""A whole round: what has landed is taken in, then every table that answers is made anew. One session for all rounds.

Where nothing landed the tables stay as they are (``standing``).

Nothing here needs to be undone. The ingest goes on where it was, and a gold table is the old one until the new one is
whole; so a run may be interrupted anywhere, and the next one does what is left. A job that fails leaves its own table
as it was and is named; the others go on.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow as pa
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # has no type marker
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from brimline.fleet.ingest.ingest import FILES_PER_BATCH, IngestReport, ingest
from brimline.fleet.jobs.inputs import Inputs
from brimline.fleet.jobs.jobs import JOBS, Job, run_job
from brimline.fleet.jobs.standing import made_from, stand
from brimline.fleet.session.errors import JobFailed, LandingFailed, SparkGone, said_by
from brimline.fleet.session.progress import UNSEEN, Progress, RunStep
from brimline.fleet.session.session import tuned
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
    progress: Progress = UNSEEN,
    *,
    tasks: int | None = None,
    now: datetime | None = None,
    files_per_batch: int = FILES_PER_BATCH,
    jobs: Sequence[Job] = JOBS,
) -> RoundReport:
    """For notebooks too (docs/sql.md). Whoever calls it holds the warehouse (``only_run``).

    ``tasks``: how many read files side by side, one for each core of this machine unless it is said; ``now``: the time
    that the tables speak of, by default that of the first job's beginning. Raises ``FleetError``.
    """
    warehouse = replace(warehouse)  # its tables are opened again: somebody may have removed them since the last round
    with tuned(spark, is_small=True):  # the ingest has nothing for Spark to compile
        taken = _taken_in(spark, landing, warehouse, progress, tasks or os.cpu_count() or 1, files_per_batch)
    inputs = Inputs(spark=spark, warehouse=warehouse, now=now or datetime.now(UTC), is_small=warehouse.is_small())
    if stand(inputs, [job.name for job in jobs]):
        with progress.step("tables") as step:
            step.note = "nothing new, unchanged"
        return taken
    with tuned(spark, is_small=inputs.is_small):
        return replace(taken, failures={**taken.failures, **_made(inputs, progress, jobs)})


def _taken_in(
    spark: SparkSession, landing: str, warehouse: Warehouse, progress: Progress, tasks: int, files_per_batch: int
) -> RoundReport:
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
        except (LandingFailed, JobFailed) as error:
            step.failure = str(error)
            return RoundReport(ingest=None, failures={step.name: step.failure})
        step.rows, step.note = report.rows, _ingest_note(report)
        return RoundReport(ingest=report)


def _made(inputs: Inputs, progress: Progress, jobs: Sequence[Job]) -> dict[str, str]:
    """The tables; what failed, and why."""
    failures: dict[str, str] = {}
    told = made_from(inputs)
    for job in jobs:
        with progress.step(job.name.value) as step:
            _run(job, inputs, step, told)
        if step.failure is not None:
            failures[step.name] = step.failure
    return failures


def _run(job: Job, inputs: Inputs, step: RunStep, told: Mapping[str, str]) -> None:
    try:
        step.rows = run_job(job, inputs, told)
    except Py4JNetworkError as error:
        raise SparkGone from error
    except (PySparkException, Py4JError, DeltaError, OSError, pa.ArrowException) as error:
        step.failure = f"{said_by(error)} (table unchanged)"


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
