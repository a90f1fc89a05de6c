"""Files without a byte: Spark leaves them out when it reads, so the stream never shows them. They are named here."""

from datetime import UTC, datetime

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.fleet import columns as c
from brimline.fleet.catalogue import Table
from brimline.fleet.errors import LandingFailed
from brimline.fleet.ingest_batch import local_rows, quarantine_row
from brimline.fleet.ingest_judge import Refused
from brimline.fleet.landing_paths import is_uri
from brimline.fleet.warehouse import Warehouse, file_system
from brimline.landing.bad_snapshot import QuarantineReason
from brimline.landing.header import ROOT, SUFFIX


def refuse_empty(spark: SparkSession, landing: str, warehouse: Warehouse) -> int:
    """How many are new. Looked up first, and only one run is at work: so each is named once."""
    found = empty_files(landing)
    if not found:
        return 0
    refused = warehouse.read(spark, Table.QUARANTINE).where(F.col(c.PATH).isin(found)).select(c.PATH).collect()
    new = sorted(set(found) - {row[0] for row in refused})
    if new:
        now, reason = datetime.now(UTC), QuarantineReason.NOT_PARQUET.value
        rows = [
            quarantine_row(Refused(path=path, reason=reason, detail="the file is empty", header=None), now)
            for path in new
        ]
        warehouse.append(local_rows(spark, Table.QUARANTINE, rows), Table.QUARANTINE)
    return len(new)


def empty_files(landing: str) -> list[str]:
    files, root = file_system(landing)
    try:
        listed = files.get_file_info(fs.FileSelector(f"{root.rstrip('/')}/{ROOT}", recursive=True))
    except (OSError, pa.ArrowException) as error:
        raise LandingFailed(f"the landing place {landing} cannot be listed: {error}") from error
    names = (info.path for info in listed if info.is_file and info.size == 0 and _is_listed_by_spark(info.base_name))
    prefix = landing.rstrip("/") + "/" if is_uri(landing) else ""
    return [prefix + name.removeprefix(root.rstrip("/") + "/") if prefix else name for name in names]


def _is_listed_by_spark(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith((".", "_"))
