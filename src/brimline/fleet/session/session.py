"""One Spark session for a whole run: started quickly here, on a cluster, or found behind Spark Connect.

What a session must have is the same everywhere: Delta, UTC, our own Python on the workers. What makes a cold start
quick was measured, piece by piece (``make bench``): few shuffle partitions, one partition for Delta's own log, no UI,
and a JVM that is started for seconds of work (``jvm.py``).

Nothing in this room uses ``sparkContext`` or a broadcast variable: Spark Connect has neither.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # has no type marker
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from brimline.fleet.session.class_archive import archive_for
from brimline.fleet.session.delta_jars import delta_jars
from brimline.fleet.session.errors import FleetError, SparkGone, said_by
from brimline.fleet.session.jvm import FIRST_COMPILER_ONLY, SECOND_COMPILER_LATE, Jvm, java_program, spark_jars

CONNECT = "sc://"
_LOCAL = "local"

_ANYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    # The default is made for a table's log of millions of files
    "spark.databricks.delta.snapshotPartitions": "1",
    # What is sent round in a join is judged by its files, and ours are packed well: 8 bytes a topic, 300 in memory
    "spark.sql.sources.fileCompressionFactor": "4",
    # A run of minutes lists no table's files ahead of need
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    # A batch holds few days: no sort before they are written apart
    "spark.sql.maxConcurrentOutputFileWriters": "16",
}
_STARTED_HERE = {
    "spark.app.name": "brimline fleet",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Nobody asks for a catalogue of tables: they are found by path
    "spark.sql.catalogImplementation": "in-memory",
    # Else each operator on a column tells the JVM which line of Python it stands in: most of a small round's calls
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_ALONE = {
    # What the host is called is nobody's business, and a name that does not resolve costs seconds
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


# Measured on three brokers: compiling what is run once takes most of the time of a small table.
_FOR_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # It would plan anew, and start a job, after each shuffle
    "spark.sql.adaptive.enabled": "false",
    # A job of its own for each side of a join that is sent round
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@contextmanager
def tuned(spark: SparkSession, *, is_small: bool) -> Iterator[None]:
    """For queries over few rows what Spark does to be fast costs more than the query. Then the session is as it was."""
    before = {key: spark.conf.get(key) for key in _FOR_SMALL} if is_small else {}
    try:
        for key in before:
            spark.conf.set(key, _FOR_SMALL[key])
        yield
    finally:
        with suppress(Py4JError, PySparkException, OSError):  # it may be gone
            for key, value in before.items():
                spark.conf.set(key, str(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    master: str = "local[*]"
    """``local[…]``, ``spark://host:port``, or ``sc://host:port`` for Spark Connect."""
    driver_memory: str = "1g"
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    """How many partitions a shuffle has, and how many tasks read a batch."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Spark's own settings, which win."""
    is_long_lived: bool = False
    """For hours: then it pays to compile well what is used often. For one round it costs more than it saves."""
    held: tuple[int, ...] = ()
    """File descriptors that a JVM of ours holds open to its end."""

    @property
    def is_connect(self) -> bool:
        return self.master.startswith(CONNECT)


_DYING_SECONDS = 30.0
"""Between the end of a JVM's connections and its own, on a busy machine."""
_DOUBT_SECONDS = 2.0
"""A job may fail of its JVM's end before the connections do; most fail of something else."""


@contextmanager
def spark_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """A session, and its end: no JVM of ours outlives the block."""
    shuffle = {"spark.sql.shuffle.partitions": str(settings.cores)}
    if settings.is_connect:
        with _connected(settings.master, _ANYWHERE | shuffle | dict(settings.more)) as spark:
            yield spark
        return
    # Delta is on the driver's own class path: a class archive has no class of a jar that is added later. Executors
    # elsewhere are sent it. As URIs: in a plain path Spark takes a # for the start of a fragment.
    sent = {"spark.jars": ",".join(jar.as_uri() for jar in delta_jars())}
    start = _STARTED_HERE | (_ALONE if settings.master.startswith(_LOCAL) else sent)
    options = _ANYWHERE | shuffle | start | {"spark.master": settings.master} | dict(settings.more)
    with Jvm(_command(options, settings), settings.held, archive_for(class_path())) as jvm:
        spark = _started(options, jvm)
        try:
            yield spark
        except (SparkGone, Py4JError, PySparkException, OSError) as error:
            is_cut_off = isinstance(error, SparkGone | Py4JNetworkError | OSError)
            if jvm.ends_within(_DYING_SECONDS if is_cut_off else _DOUBT_SECONDS):
                raise FleetError(f"Spark's JVM exited during the run. Its last output:\n{jvm.last_words()}") from error
            raise
        finally:
            # The JVM may be gone, or a question to it was interrupted: it ends all the same.
            with suppress(Py4JError, OSError):
                spark.stop()


def _command(options: Mapping[str, str], settings: SessionSettings) -> list[str]:
    words = [word for key, value in options.items() for word in ("--conf", f"{key}={value}")]
    compiled = SECOND_COMPILER_LATE if settings.is_long_lived else (FIRST_COMPILER_ONLY,)
    flags = [f"-Xmx{settings.driver_memory}", *compiled]
    return java_program(flags, ["org.apache.spark.deploy.SparkSubmit", *words, "pyspark-shell"], delta_jars())


def class_path() -> list[Path]:
    """Of the driver, as far as a class archive goes by it."""
    return [*spark_jars(), *delta_jars()]


def _started(options: Mapping[str, str], jvm: Jvm) -> SparkSession:
    builder: SparkSession.Builder = SparkSession.builder
    for key, value in options.items():
        builder = builder.config(key, value)
    with jvm.gateway():
        try:
            spark = builder.getOrCreate()
            for names in _LOOKED_UP_ONCE:
                found = _LookedUpOnce(getattr(spark._jvm, names[0]))
                for name in names:
                    setattr(spark._jvm, name, found)
            return spark
        except (PySparkException, Py4JError) as error:
            raise FleetError(f"Spark did not start: {said_by(error)}. Its last output:\n{jvm.last_words()}") from error


_LOOKED_UP_ONCE = (("functions", "org.apache.spark.sql.functions"), ("PythonUtils",))
"""Under each name that pyspark has for it."""


class _LookedUpOnce:
    """A class of the JVM. py4j asks for it, and for its method, at each call: a third of a small round's calls.

    Columns by name are asked for once, too: they never change, and a round names some hundred of them several times.
    """

    def __init__(self, found: object) -> None:
        self._found = found

    def __getattr__(self, name: str) -> object:
        found = getattr(self._found, name)
        kept = cache(partial(found)) if name == "col" else found
        setattr(self, name, kept)
        return kept


@contextmanager
def _connected(url: str, options: Mapping[str, str]) -> Iterator[SparkSession]:
    try:
        spark = SparkSession.builder.remote(url).create()
        for key, value in options.items():
            spark.conf.set(key, value)
    except PySparkException as error:
        raise FleetError(f"no Spark Connect at {url}: {said_by(error)}") from error
    try:
        yield spark
    finally:
        spark.stop()
