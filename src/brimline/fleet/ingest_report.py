"""What the tasks found in the files, on its way to the driver: a row per file."""

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from brimline.fleet.ingest_file import Examined, examine
from brimline.landing.bad_snapshot import BadSnapshot, QuarantineReason
from brimline.landing.header import Header

EXAMINED = StructType(
    [
        StructField("path", StringType(), nullable=False),
        StructField("file_bytes", LongType(), nullable=False),
        StructField("header", StringType(), nullable=True),
        StructField("reason", StringType(), nullable=True),
        StructField("detail", StringType(), nullable=True),
    ]
)
_ARROW = to_arrow_schema(EXAMINED)


def examined_rows(path: str) -> pa.RecordBatch:
    found = examine(path)
    row = {
        "path": found.path,
        "file_bytes": found.file_bytes,
        "header": None if found.header is None else found.header.to_json(),
        "reason": None if found.failure is None else found.failure.reason.value,
        "detail": None if found.failure is None else found.failure.detail,
    }
    return pa.RecordBatch.from_pylist([row], schema=_ARROW)


def examined_from_rows(rows: Iterable[Row]) -> list[Examined]:
    return [
        Examined(
            path=row["path"],
            file_bytes=row["file_bytes"],
            header=None if row["header"] is None else Header.from_json(row["header"]),
            failure=None if row["reason"] is None else BadSnapshot(QuarantineReason(row["reason"]), row["detail"]),
        )
        for row in rows
    ]
