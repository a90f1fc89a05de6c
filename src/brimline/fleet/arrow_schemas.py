"""The bronze tables' schemas as Arrow has them: made from Spark's, so that there is one place to change."""

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from brimline.fleet.catalogue import Table
from brimline.fleet.schemas import BRONZE

ARROW: dict[Table, pa.Schema] = {table: to_arrow_schema(schema, timezone="UTC") for table, schema in BRONZE.items()}
