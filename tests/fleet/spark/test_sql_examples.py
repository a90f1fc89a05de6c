"""What docs/sql.md says is what Spark SQL understands; what tables.md says of comments, keys and nulls is so."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from brimline.fleet.jobs.run import run_round
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.dictionary import KEYS, meaning
from brimline.fleet.tables.warehouse import Warehouse, schema_of
from tests.fleet.landed import NOW, broker, land, later, name_beside, put
from tests.fleet.spark.conftest import CORES

pytestmark = pytest.mark.integration

PAGE = Path(__file__).parents[3] / "docs" / "sql.md"
MADE, *QUESTIONS = [block.strip() for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)]
WRITTEN = [table for table in Table if table is not Table.THINNED]


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Three brokers, looked at twice, and a file that is none: as a notebook makes them."""
    landing, made = tmp_path_factory.mktemp("landing"), Warehouse(str(tmp_path_factory.mktemp("warehouse")))
    for number in range(3):
        found = broker(number, ago=timedelta(hours=1))
        land(landing, found)
        land(landing, later(found, 50))
    put(landing, name_beside(broker(0).header, "text.parquet"), b"not Parquet")
    before = spark.conf.get("spark.sql.adaptive.enabled")
    report = run_round(spark, str(landing), made, tasks=CORES, now=NOW)
    assert report.failures == {}
    assert spark.conf.get("spark.sql.adaptive.enabled") == before
    return made


@pytest.fixture(scope="module")
def catalogue(spark: SparkSession, warehouse: Warehouse) -> Iterator[SparkSession]:
    for statement in filter(str.strip, MADE.split(";")):
        spark.sql(statement.replace("/data/warehouse", warehouse.place))
    yield spark
    for table in WRITTEN:
        spark.sql(f"DROP TABLE {table.value}")  # the name alone: its files are the warehouse's


def test_the_page_names_every_table_and_ten_questions(catalogue: SparkSession) -> None:
    named = {row["tableName"] for row in catalogue.sql("SHOW TABLES").collect() if not row["isTemporary"]}
    assert named == {table.value for table in WRITTEN}
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda text: text.split("FROM ")[-1].split()[0])
def test_a_question_is_answered(catalogue: SparkSession, question: str) -> None:
    assert catalogue.sql(question.rstrip(";")).toArrow().num_columns > 1


def test_the_largest_topics_are_those_of_the_newest_snapshots(catalogue: SparkSession) -> None:
    (question,) = (text for text in QUESTIONS if "FROM replicas r JOIN newest" in text)

    found = catalogue.sql(question.rstrip(";").replace("LIMIT 20", "")).collect()
    made = catalogue.sql("SELECT sum(size_bytes) AS bytes FROM retention_pressure WHERE NOT is_future").collect()

    assert sum(row["bytes"] for row in found) == made[0]["bytes"] > 0


@pytest.mark.parametrize("table", WRITTEN)
def test_columns_have_their_comments_in_delta(warehouse: Warehouse, table: Table) -> None:
    found = warehouse.opened(table)

    assert found is not None
    assert {each.name: each.metadata["comment"] for each in found.schema().fields} == {
        name: meaning(table, name) for name in schema_of(table).names
    }
    assert found.metadata().description == table.sentence


@pytest.mark.parametrize("table", WRITTEN)
def test_a_key_is_there_once_and_what_is_known_is_not_null(
    spark: SparkSession, warehouse: Warehouse, table: Table
) -> None:
    rows = warehouse.read(spark, table).toArrow().to_pylist()

    keys = [tuple(map(str, (row[name] for name in KEYS[table]))) for row in rows] if table in KEYS else []
    assert len(set(keys)) == len(keys)
    known = [field.name for field in schema_of(table).fields if not field.nullable]
    assert [name for row in rows for name in known if row[name] is None] == []
