import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from brimline.sandbox import MissingPart
from brimline.sandbox.java import QUICK_START, find_java, parse_version

JAVA = Path("/somewhere/bin/java")
MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\n', 17),
        ('openjdk version "21" 2023-09-19\n', 21),
        ('java version "1.8.0_392"\n', 8),
    ],
)
def test_version(text: str, version: int) -> None:
    assert parse_version(text, JAVA) == version


def test_a_java_that_does_not_tell_its_version_is_refused() -> None:
    with pytest.raises(MissingPart, match="does not tell its version"):
        parse_version("Segmentation fault", JAVA)


def test_an_old_java_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _make_jdk(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(MissingPart, match="is Java 11: Kafka needs 17 or newer"):
        find_java.__wrapped__()


def test_java_home_wins_over_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _make_jdk(tmp_path, "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert find_java.__wrapped__() == tmp_path / "bin" / "java"


def test_no_java_at_all_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingPart, match="no java on the PATH: install a JDK 17 or newer"):
        find_java.__wrapped__()


@pytest.mark.parametrize(
    "limit", ["ReservedCodeCacheSize", "MaxMetaspaceSize", "CompressedClassSpaceSize", "MaxHeapSize"]
)
def test_a_jvm_that_starts_quickly_may_hold_as_much_as_any(limit: str) -> None:
    """Java shrinks the code cache for the first compiler alone; a JVM that fills it may die."""
    assert _limits(*QUICK_START)[limit] == _limits()[limit]


@cache
def _limits(*options: str) -> dict[str, int]:
    """What Java makes of its options, in MiB."""
    command = [str(find_java()), *options, "-XX:+PrintFlagsFinal", "-version"]
    flags = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return {name: int(value) // MIB for name, value in re.findall(r"(\w+) += (\d+)", flags)}


def _make_jdk(home: Path, version: str) -> None:
    (home / "bin").mkdir()
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
