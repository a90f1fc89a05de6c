"""A jar is used only if it was made of the source beside it."""

import shutil
from pathlib import Path

import pytest

from brimline.metrics import bridge_jar
from brimline.metrics.bridge_jar import NoBridge, compile_jar, find_jar, find_tool, recorded_hash, source_hash

NOBODY = Path("/nonexistent/javac")


@pytest.fixture(scope="session")
def javac() -> Path:
    found = find_tool("javac")
    assert found is not None, "the tests need a JDK"
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The Java source in an installation of its own."""
    directory = tmp_path / "java"
    directory.mkdir()
    return Path(shutil.copy(bridge_jar.SOURCE, directory))


def test_a_checkout_compiles_on_first_use_and_then_never_again(tmp_path: Path, source: Path, javac: Path) -> None:
    first = find_jar(tmp_path / "cache", source, javac)

    assert recorded_hash(first) == source_hash(source)
    assert find_jar(tmp_path / "cache", source, NOBODY) == first


def test_the_wheels_jar_needs_no_compiler_and_no_cache(tmp_path: Path, source: Path, javac: Path) -> None:
    shipped = source.with_name("brimline-jmx.jar")
    compile_jar(javac, shipped, source)

    assert find_jar(tmp_path / "cache", source, NOBODY) == shipped
    assert not (tmp_path / "cache").exists()


def test_a_jar_of_another_source_is_not_used(tmp_path: Path, source: Path, javac: Path) -> None:
    shipped = source.with_name("brimline-jmx.jar")
    compile_jar(javac, shipped, source)
    source.write_text(source.read_text() + "// changed\n")

    found = find_jar(tmp_path / "cache", source, javac)

    assert found != shipped
    assert recorded_hash(found) == source_hash(source)


def test_neither_jar_nor_compiler_is_one_clear_sentence(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(NoBridge, match="is not compiled in this installation and there is no javac"):
        find_jar(tmp_path / "cache", source)


def test_a_source_that_does_not_compile_is_named(tmp_path: Path, source: Path, javac: Path) -> None:
    source.write_text("class Broken {")

    with pytest.raises(NoBridge, match=r"could not compile .*BrimlineJmx\.java"):
        find_jar(tmp_path / "cache", source, javac)

    assert not (tmp_path / "cache").exists()


def test_two_builds_of_one_source_are_equal(tmp_path: Path, source: Path, javac: Path) -> None:
    for name in ("a.jar", "b.jar"):
        compile_jar(javac, tmp_path / name, source)

    assert (tmp_path / "a.jar").read_bytes() == (tmp_path / "b.jar").read_bytes()


def test_a_file_that_is_no_jar_has_no_hash(tmp_path: Path) -> None:
    (tmp_path / "odd.jar").write_text("not a zip file")

    assert recorded_hash(tmp_path / "odd.jar") is None
    assert recorded_hash(tmp_path / "absent.jar") is None


def test_the_cache_follows_the_xdg_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")

    assert bridge_jar.default_cache() == Path("/var/cache/me/brimline/jmx")
