"""Plans and simulations by Spark's tasks: Spark schedules, pyarrow reads whole-broker files, numpy plans. No shuffle.

Nothing but DataFrames is used, so that it is the same on a cluster and over Spark Connect, which has no broadcast
variables: the names of files travel with the function, task by task, and a task unpacks its own.
It is for fleets whose snapshots are too many, or too far away, for one machine.
"""

import gc
import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from brimline.fleet.planner.tasks import BrokerRows, Files, balanced, tasks_for


def rows_on_spark(spark: SparkSession, files: Files, rows: BrokerRows, schema: StructType) -> DataFrame:
    tasks = [pickle.dumps(each) for each in balanced(files, tasks_for(files))]
    if not tasks:
        return spark.createDataFrame([], schema)
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(partial(_rows_of_tasks, tasks, rows), schema)


def _rows_of_tasks(
    tasks: Sequence[bytes], rows: BrokerRows, numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    # Spark's worker collects garbage after each task: of all that is imported, unless that is set aside
    gc.freeze()
    for batch in numbers:
        for task in batch.column(0).to_pylist():
            yield from rows.of_files(pickle.loads(tasks[task]))


def batches_on_spark(
    spark: SparkSession, files: Files, rows: BrokerRows, schema: pa.Schema
) -> Sequence[pa.RecordBatch]:
    made = rows_on_spark(spark, files, rows, from_arrow_schema(schema)).toArrow()
    found: Sequence[pa.RecordBatch] = made.cast(schema).to_batches()
    return found
