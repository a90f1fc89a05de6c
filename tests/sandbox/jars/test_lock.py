from pathlib import Path

import pytest

from brimline.sandbox import BadSpec
from brimline.sandbox.jars.lock import LOCK_FILE, Coordinates, LockedJar, jars_of, read_lock, write_lock

CLIENTS_TEST = Coordinates("org.apache.kafka", "kafka-clients", "4.3.1", "test")


def test_a_file_name_carries_the_coordinates() -> None:
    assert CLIENTS_TEST.file_name == "org.apache.kafka__kafka-clients__4.3.1__test.jar"
    assert Coordinates.of_file(CLIENTS_TEST.file_name) == CLIENTS_TEST


def test_the_lock_file_is_as_its_writer_writes_it(tmp_path: Path) -> None:
    everything = [jar for jars in read_lock().values() for jar in jars]

    write_lock(reversed(everything), tmp_path / "lock")

    assert (tmp_path / "lock").read_text() == LOCK_FILE.read_text()


def test_every_promised_version_is_locked() -> None:
    assert list(read_lock()) == ["3.2.3", "3.9.2", "4.1.2", "4.3.1"]


def test_versions_sort_by_number_not_by_letter(tmp_path: Path) -> None:
    jars = [LockedJar(version, CLIENTS_TEST, "0" * 64) for version in ("10.0.0", "4.3.1")]

    write_lock(jars, tmp_path / "lock")

    assert list(read_lock(tmp_path / "lock")) == ["4.3.1", "10.0.0"]


def test_an_unknown_version_is_refused_with_those_that_exist() -> None:
    with pytest.raises(BadSpec, match=r"no Kafka 1\.0\.0 .*4\.3\.1"):
        jars_of("1.0.0")


def test_the_lock_file_names_no_host() -> None:
    assert "//" not in LOCK_FILE.read_text()
