"""A driver that ends itself: ``python -m tests.fleet.spark.driver LANDING WAREHOUSE MASTER JOBS [WRITES]``.

A round with the ingest and some jobs (names with commas, or ``all``). Right behind so many writes, of tables and of the
ingest's memory, it is killed by the signal that nothing can catch. In the environment: FILES_PER_BATCH, and
ARCHIVES for the executors.
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from unittest.mock import patch

from brimline.fleet.ingest import memory
from brimline.fleet.jobs.jobs import JOBS
from brimline.fleet.jobs.run import run_round
from brimline.fleet.session.progress import Lines, Progress
from brimline.fleet.session.session import SessionSettings, spark_session
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.data_files import DataFile
from brimline.fleet.tables.run_lock import only_run
from brimline.fleet.tables.warehouse import BatchName, Warehouse
from brimline.landing.place import LandingPlace
from tests.fleet.landed import ROUND_NOW
from tests.waiting import PATIENCE_SECONDS

FILES_PER_BATCH = int(os.environ.get("FILES_PER_BATCH", "2"))
ON_LOOPBACK = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}


class Death:
    def __init__(self, writes: int | None) -> None:
        self._left = writes

    def write_done(self) -> None:
        if self._left is None:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


DEATH = Death(int(sys.argv[5]) if len(sys.argv) > 5 else None)


class Mortal(Warehouse):
    __slots__ = ()

    def commit(
        self,
        table: Table,
        files: Sequence[DataFile],
        mode: str,
        batch: BatchName | None = None,
        told: Mapping[str, str] | None = None,
    ) -> None:
        super().commit(table, files, mode, batch, told)
        DEATH.write_done()


class MortalMemory(LandingPlace):
    def put(self, name: str, data: bytes) -> None:
        super().put(name, data)
        DEATH.write_done()


def main(landing: str, warehouse: str, master: str, jobs: str) -> int:
    with only_run(warehouse, patience_seconds=PATIENCE_SECONDS) as lock:
        sent = {"spark.archives": os.environ["ARCHIVES"]} if "ARCHIVES" in os.environ else {}
        more = ON_LOOPBACK | sent if master.startswith("spark:") else {}
        settings = SessionSettings(master=master, cores=2, more=more, held=lock)
        with spark_session(settings) as spark, patch.object(memory, "LandingPlace", MortalMemory):
            report = run_round(
                spark,
                landing,
                Mortal(warehouse),
                Progress(Lines(sys.stderr)),
                tasks=2,
                now=ROUND_NOW,
                files_per_batch=FILES_PER_BATCH,
                jobs=[job for job in JOBS if jobs == "all" or job.name.value in jobs.split(",")],
            )
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
