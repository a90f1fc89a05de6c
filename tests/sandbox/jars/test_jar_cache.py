"""The cache's promise: a version's directory is complete and verified, or it is not there."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from brimline.sandbox import DownloadFailed, JarMismatch
from brimline.sandbox.jars.cache import install
from brimline.sandbox.jars.lock import Coordinates, LockedJar

CONTENT = b"a jar"
JARS = tuple(
    LockedJar("9.9.9", Coordinates("group", name, "1"), hashlib.sha256(CONTENT).hexdigest()) for name in ("a", "b")
)


def retrieve(coordinates: Sequence[Coordinates], directory: Path) -> None:
    for jar in coordinates:
        (directory / jar.file_name).write_bytes(CONTENT)


def retrieve_tampered(coordinates: Sequence[Coordinates], directory: Path) -> None:
    retrieve(coordinates, directory)
    (directory / coordinates[-1].file_name).write_bytes(b"not that jar")


def refuse(_coordinates: Sequence[Coordinates], _directory: Path) -> None:
    raise DownloadFailed("no network")


def test_a_cold_cache_is_filled(tmp_path: Path) -> None:
    paths = install(JARS, tmp_path / "9.9.9", retrieve)

    assert [path.read_bytes() for path in paths] == [CONTENT, CONTENT]


def test_a_warm_cache_needs_no_download(tmp_path: Path) -> None:
    cold = install(JARS, tmp_path / "9.9.9", retrieve)

    assert install(JARS, tmp_path / "9.9.9", refuse) == cold


def test_a_tampered_jar_is_named_and_nothing_is_installed(tmp_path: Path) -> None:
    found = hashlib.sha256(b"not that jar").hexdigest()

    with pytest.raises(JarMismatch, match=f"group:b:1 .*expected sha256 {JARS[1].sha256}, found {found}"):
        install(JARS, tmp_path / "9.9.9", retrieve_tampered)

    assert [path.name for path in tmp_path.iterdir()] == ["9.9.9.lock"]


def test_a_failed_download_installs_nothing(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed):
        install(JARS, tmp_path / "9.9.9", refuse)

    assert not (tmp_path / "9.9.9").exists()


def test_what_an_interrupted_download_left_is_not_used(tmp_path: Path) -> None:
    staging = tmp_path / "9.9.9.staging-x"
    staging.mkdir()
    (staging / "half.jar").write_bytes(b"hal")

    install(JARS, tmp_path / "9.9.9", retrieve)

    assert not staging.exists()
    assert not (tmp_path / "9.9.9" / "half.jar").exists()


def test_a_directory_without_all_jars_is_fetched_anew(tmp_path: Path) -> None:
    install(JARS[:1], tmp_path / "9.9.9", retrieve)

    paths = install(JARS, tmp_path / "9.9.9", retrieve)

    assert all(path.is_file() for path in paths)
