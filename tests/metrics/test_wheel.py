"""The wheel carries the JMX bridge, compiled from the source that it carries beside it."""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from brimline.metrics import bridge_jar

pytestmark = pytest.mark.integration

JAVA = "brimline/metrics/java"


def build(directory: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_jar_in_the_wheel_is_made_of_the_source_in_the_wheel(tmp_path: Path) -> None:
    done = build(tmp_path)

    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        source = archive.read(f"{JAVA}/BrimlineJmx.java")
        archive.extract(f"{JAVA}/brimline-jmx.jar", tmp_path)
    assert bridge_jar.recorded_hash(tmp_path / JAVA / "brimline-jmx.jar") == hashlib.sha256(source).hexdigest()


def test_without_a_compiler_there_is_no_wheel_but_a_sentence(tmp_path: Path) -> None:
    done = build(tmp_path, JAVA_HOME=str(tmp_path))

    assert done.returncode != 0
    assert "install a JDK 11 or newer, or set BRIMLINE_BUILD_WITHOUT_JMX=1" in done.stderr


def test_a_wheel_without_the_bridge_is_there_for_those_who_ask(tmp_path: Path) -> None:
    done = build(tmp_path, JAVA_HOME=str(tmp_path), BRIMLINE_BUILD_WITHOUT_JMX="1")

    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert f"{JAVA}/brimline-jmx.jar" not in archive.namelist()
