import pytest

from brimline.fleet.tables.landing_paths import below, for_spark


@pytest.mark.parametrize(
    ("landing", "root", "listed", "opened_by_pyarrow"),
    [
        ("/landing", "/landing", "/landing/snapshots/a%2Eb/1/x.parquet", "/landing/snapshots/a%2Eb/1/x.parquet"),
        ("file:///landing", "/landing", "/landing/a b.parquet", "/landing/a b.parquet"),
        (
            "s3://bucket/fleet/",
            "bucket/fleet",
            "bucket/fleet/a%2Eb/x.parquet",
            "s3://bucket/fleet/a%252Eb/x.parquet",
        ),
        ("s3://b/f?region=x", "b/f", "b/f/x.parquet", "s3://b/f/x.parquet?region=x"),
        ("hdfs://name:8020/fleet", "/fleet", "/fleet/x.parquet", "hdfs://name:8020/fleet/x.parquet"),
    ],
)
def test_a_file_as_it_is_listed_is_opened_by_pyarrow(
    landing: str, root: str, listed: str, opened_by_pyarrow: str
) -> None:
    assert below(landing, root, listed) == opened_by_pyarrow


@pytest.mark.parametrize(
    ("place", "spark"),
    [("/data/a b", "file:///data/a b"), ("s3://bucket/x", "s3a://bucket/x"), ("hdfs://n/x", "hdfs://n/x")],
)
def test_a_place_as_spark_takes_it(place: str, spark: str) -> None:
    assert for_spark(place) == spark
