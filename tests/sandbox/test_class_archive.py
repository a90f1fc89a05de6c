"""A class archive is used where it fits, and is never in the way where it does not."""

import os
import shutil
from pathlib import Path

import pytest

from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.sandbox.jars.cache import kafka_jars
from brimline.sandbox.java import archive_beside, kafka_command, make_archive, stock_jars
from brimline.sandbox.spec import DEFAULT_VERSION

pytestmark = pytest.mark.integration


def test_a_broker_takes_its_classes_from_the_archive() -> None:
    make_archive(DEFAULT_VERSION)
    log = "classes.log"
    spec = SandboxSpec(volumes=(VolumeSpec(),), tiered=True, java_options=(f"-Xlog:class+load:file={log}",))
    with Sandbox(spec) as sandbox:
        loaded = sandbox.outside(sandbox.broker(1).node.home / log).read_text().splitlines()
    kafka = [line for line in loaded if "] kafka.server.KafkaApis " in line]
    assert [line.rpartition("source: ")[2] for line in kafka] == ["shared objects file (top)"]


def test_a_copied_cache_has_an_archive_of_its_own(tmp_path: Path) -> None:
    jars = stock_jars(kafka_jars(DEFAULT_VERSION))
    copied = [Path(shutil.copy2(jar, tmp_path)) for jar in jars[:1]]
    first = archive_beside(copied)
    assert first.name != archive_beside(jars).name
    os.utime(copied[0], ns=(0, 0))
    assert archive_beside(copied).name != first.name


def test_a_broken_archive_is_no_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    archive = tmp_path / "broken.jsa"
    archive.write_bytes(b"nothing of the kind")
    monkeypatch.setattr("brimline.sandbox.java.archive_beside", lambda _: archive)
    with Sandbox() as sandbox:
        answer = sandbox.java_tool("topics", "--bootstrap-server", sandbox.bootstrap_servers, "--list")
    assert (answer.returncode, answer.stdout.strip(), answer.stderr) == (0, "", "")


def test_without_an_archive_no_option_names_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jars = stock_jars(kafka_jars(DEFAULT_VERSION))
    assert archive_beside(jars).parent == jars[0].parent
    monkeypatch.setattr("brimline.sandbox.java.archive_beside", lambda _: tmp_path / "none.jsa")
    assert not any("Archive" in word for word in kafka_command(jars, "kafka.Kafka", []))
