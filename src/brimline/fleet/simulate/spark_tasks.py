"""A simulation by Spark's tasks, for fleets whose snapshots are too many, or too far away, for one machine."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from brimline.fleet.planner.spark_tasks import rows_on_spark
from brimline.fleet.planner.tasks import Files
from brimline.fleet.simulate.broker import SIMULATED_ROWS
from brimline.fleet.simulate.simulate import rows_of
from brimline.fleet.simulate.what_if import WhatIf


def batches_on_spark(spark: SparkSession, files: Files, what_if: WhatIf) -> Sequence[pa.RecordBatch]:
    rows = rows_on_spark(spark, files, rows_of(what_if), from_arrow_schema(SIMULATED_ROWS)).toArrow()
    found: Sequence[pa.RecordBatch] = rows.cast(SIMULATED_ROWS).to_batches()
    return found
