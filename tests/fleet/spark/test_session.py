"""A session whose JVM dies: a sentence, not a stack of Java's and Python's frames."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

KILLS_ITS_JVM = """
import os, signal
from brimline.fleet.errors import FleetError
from brimline.fleet.session import SessionSettings, spark_session

try:
    with spark_session(SessionSettings(master="local[1]", cores=1)) as spark:
        os.kill(spark._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
        spark.range(5).count()
except FleetError as error:
    print(error)
"""


def test_a_jvm_that_dies_in_the_middle_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", KILLS_ITS_JVM], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Spark's JVM ended in the middle; its last words:")
