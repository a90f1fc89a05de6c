import pytest

from brimline.fleet.tables.landing_paths import for_pyarrow, for_spark, listed


@pytest.mark.parametrize(
    ("listed_by_spark", "opened_by_pyarrow"),
    [
        ("file:/landing/snapshots/a%2Eb/1/x.parquet", "/landing/snapshots/a%2Eb/1/x.parquet"),
        ("file:///landing/a b.parquet", "/landing/a b.parquet"),
        ("/landing/x.parquet", "/landing/x.parquet"),
        ("s3a://bucket/fleet/a%2Eb/x.parquet", "s3://bucket/fleet/a%252Eb/x.parquet"),
        ("hdfs://name:8020/fleet/x.parquet", "hdfs://name%3A8020/fleet/x.parquet"),
    ],
)
def test_a_file_as_spark_lists_it_is_opened_by_pyarrow(listed_by_spark: str, opened_by_pyarrow: str) -> None:
    assert for_pyarrow(listed_by_spark) == opened_by_pyarrow


@pytest.mark.parametrize(
    ("place", "spark"),
    [("/data/a b", "file:///data/a b"), ("s3://bucket/x", "s3a://bucket/x"), ("hdfs://n/x", "hdfs://n/x")],
)
def test_a_place_as_spark_takes_it(place: str, spark: str) -> None:
    assert for_spark(place) == spark


def test_only_what_is_below_the_snapshots_root_is_listed() -> None:
    assert listed("/data/landing/") == "file:///data/landing/snapshots"
