from importlib.metadata import version
from pathlib import Path

import pytest

from brimline.fleet.session import delta_jars
from brimline.fleet.session.delta_jars import LOCK_FILE, ROOT
from brimline.fleet.session.errors import FleetError
from brimline.sandbox.jars.lock import read_lock, write_lock


def test_the_lock_is_for_the_delta_and_the_spark_that_are_installed() -> None:
    assert version("delta-spark") == ROOT.revision
    assert ROOT.artifact == f"delta-spark_{'.'.join(version('pyspark').split('.')[:2])}_2.13"
    assert ROOT in [jar.coordinates for jar in read_lock(LOCK_FILE)[ROOT.revision]]


def test_the_lock_file_is_as_its_writer_writes_it(tmp_path: Path) -> None:
    write_lock(reversed(read_lock(LOCK_FILE)[ROOT.revision]), tmp_path / "lock", delta_jars._HEADER)

    assert (tmp_path / "lock").read_text() == LOCK_FILE.read_text()


def test_the_lock_file_names_no_host() -> None:
    assert "//" not in LOCK_FILE.read_text()


def test_another_delta_is_refused_before_a_jar_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_jars, "version", lambda _: "3.0.0")

    with pytest.raises(FleetError, match=r"delta-spark 3\.0\.0 is installed, 4\.4\.0 is wanted"):
        delta_jars.delta_jars()
