"""A class archive for every Kafka version (AppCDS): a broker that finds its classes read and checked starts with a
third less work, and so does a tool or a client.

It is made once for a version and a Java, from a real broker that is started and stopped, and kept beside the jars.
Java uses it where the stock jars come first on the class path, in this order; where there is none, or it does not
fit, everything works as without it.
"""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from brimline.sandbox.java import QUICK_START, class_path, find_java, stock_jars

_SILENT = "-Xlog:cds=off,cds+dynamic=off,class+path=off"
"""An archive that does not fit is nobody's business."""


def archive_options(path: Sequence[Path]) -> list[str]:
    """For a JVM with this class path."""
    archive = archive_beside(path)
    return [f"-XX:SharedArchiveFile={archive}", _SILENT] if archive.is_file() else []


def kafka_command(path: Sequence[Path], main_class: str, arguments: Iterable[str]) -> list[str]:
    """A short-lived program on Kafka's jars, from jars and directories of classes; the stock jars come first."""
    flags = [*QUICK_START, *archive_options(path), "-Xmx256m"]
    return [str(find_java()), *flags, "-cp", class_path(path), main_class, *arguments]


def archive_beside(jars: Sequence[Path]) -> Path:
    """Where the archive of these jars is kept; a Java's own files tell it from another one."""
    java = find_java().resolve()
    release = java.parent.parent / "release"
    stamp = hashlib.sha256(f"{java}\n{release.read_text() if release.is_file() else ''}".encode()).hexdigest()[:12]
    return jars[0].parent / f"classes-{stamp}.jsa"


def make_archive(version: str) -> None:
    """Whole or not at all; what is there already is kept."""
    from brimline.sandbox.cluster import Sandbox
    from brimline.sandbox.jar_cache import kafka_jars
    from brimline.sandbox.spec import SandboxSpec

    archive = archive_beside(stock_jars(kafka_jars(version)))
    if archive.exists():
        return
    print(f"brimline: making Kafka {version} start quickly …", file=sys.stderr, flush=True)
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with Sandbox(SandboxSpec(version=version, java_options=(f"-XX:ArchiveClassesAtExit={partial}",))) as sandbox:
        sandbox.broker(1).stop()
        if partial.is_file():
            partial.rename(archive)
