"""The class archive of Spark's JVM: used when it is there, made when it can be, and nobody's trouble otherwise."""

from pathlib import Path

import pytest

from brimline.fleet.session.class_archive import archive_for


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_it_is_made_whole_or_not_at_all_and_then_used() -> None:
    archive = archive_for([Path("/jars/a.jar")])
    assert f"-XX:ArchiveClassesAtExit={archive.unfinished}" in archive.flags

    archive.finish()  # the JVM was killed, and left nothing
    assert not archive.is_there
    archive.unfinished.write_bytes(b"classes")
    archive.finish()

    assert f"-XX:SharedArchiveFile={archive.path}" in archive_for([Path("/jars/a.jar")]).flags
    assert not archive.unfinished.exists()


def test_other_jars_have_another() -> None:
    assert archive_for([Path("/jars/a.jar")]).path != archive_for([Path("/jars/b.jar")]).path


def test_where_it_cannot_be_kept_there_is_none(cache: Path) -> None:
    (cache / "brimline").write_text("not a folder")

    assert archive_for([]).flags == []
