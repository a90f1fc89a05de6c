"""Ordinary retention believes a record's time that lies in the future, in every Kafka that is known here.

Kafka's trunk (KAFKA-20609) takes the file's time instead, for tiered topics. A version that does shows in its retention
asking for that time: then ``decide.reclaim.rules`` has to follow the broker's version.
"""

import zipfile

import pytest

from brimline.sandbox.jars.__main__ import RECIPES
from brimline.sandbox.jars.cache import kafka_jars

pytestmark = pytest.mark.integration

RETENTION = "org/apache/kafka/storage/internals/log/UnifiedLog.class"
IN_JAVA = [version for version in RECIPES if int(version.partition(".")[0]) >= 4]
"""Before, the class was Scala's and of another module; those releases are older than the change."""


@pytest.mark.parametrize("version", IN_JAVA)
def test_retention_never_asks_for_the_time_of_a_file(version: str) -> None:
    (storage,) = (path for path in kafka_jars(version) if path.name.endswith(f"kafka-storage__{version}.jar"))
    with zipfile.ZipFile(storage) as jar:
        retention = jar.read(RETENTION)

    assert b"deleteRetentionMsBreachedSegments" in retention
    assert b"lastModified" not in retention
