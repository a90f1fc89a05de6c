"""The session's JVM: what it may hold; and when it dies, a sentence, not a stack of Java's and Python's frames."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

MIB = 1 << 20

KILLS_ITS_JVM = """
import os, signal, sys
from brimline.fleet.session.errors import FleetError
from brimline.fleet.session.progress import Lines, Progress
from brimline.fleet.jobs.run import run_round
from brimline.fleet.session.session import SessionSettings, spark_session
from brimline.fleet.tables.warehouse import Warehouse

try:
    with spark_session(SessionSettings(master="local[1]", cores=1)) as spark:
        os.kill(spark._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
        run_round(spark, sys.argv[1], Warehouse(sys.argv[1]), Progress(Lines(sys.stderr)), tasks=1)
except FleetError as error:
    print(error)
"""


def test_a_jvm_for_one_round_has_room_for_the_code_of_many(spark: SparkSession) -> None:
    """With the first compiler alone Java would reserve 48 MiB, which one round fills."""
    assert spark._jvm is not None
    beans = spark._jvm.java.lang.management.ManagementFactory
    limits = {bean.getName(): bean.getUsage().getMax() for bean in beans.getMemoryPoolMXBeans()}

    assert "-XX:TieredStopAtLevel=1" in list(beans.getRuntimeMXBean().getInputArguments())
    assert limits["CodeCache"] == 240 * MIB
    assert limits["Compressed Class Space"] == 1024 * MIB
    assert limits["Metaspace"] == -1


def test_a_jvm_that_dies_in_the_middle_of_a_round_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLS_ITS_JVM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Spark's JVM exited during the run. Its last output:")
