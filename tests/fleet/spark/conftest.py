"""One real session for all tests of a process; each test has tables of its own."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from brimline.fleet.session.session import SessionSettings, spark_session

CORES = 2


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session(SessionSettings(master=f"local[{CORES}]", cores=CORES)) as session:
        yield session
