"""Real Spark processes for tests: a standalone cluster, and a Spark Connect server, on loopback.

The wheel has no start scripts, so the classes are started directly.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from brimline.fleet.session.delta_jars import delta_jars
from brimline.fleet.session.jvm import FIRST_COMPILER_ONLY, java_program, spark_home
from tests.processes import children, command_line, free_port
from tests.waiting import PATIENCE_SECONDS, eventually

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneCluster:
    url: str
    workers: tuple[int, ...]
    """Process ids."""

    def executors(self) -> list[int]:
        """Process ids, as far as they run now."""
        return [
            pid for worker in self.workers for pid in children(worker) if "CoarseGrainedExecutor" in command_line(pid)
        ]


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[StandaloneCluster]:
    """A master and workers of one core each."""
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        port, web = free_port(), free_port()
        where = ["--host", _LOOPBACK, "--port", str(port), "--webui-port", str(web)]
        stack.enter_context(_java(folder / "master", [f"{deploy}.master.Master", *where], "I have been elected leader"))
        url = f"spark://{_LOOPBACK}:{port}"
        pids = []
        for number in range(workers):
            home = folder / f"worker-{number}"
            size = [
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                str(free_port()),
                "--work-dir",
                str(home / "work"),
            ]
            words = [f"{deploy}.worker.Worker", "--host", _LOOPBACK, *size, url]
            pids.append(stack.enter_context(_java(home, words, "Successfully registered with master")))
        yield StandaloneCluster(url=url, workers=tuple(pids))


def packed_environment(folder: Path) -> Path:
    """As venv-pack makes one: a Python of its own that has Brimline; what this one has is linked, to keep it small."""
    made = folder / "env"
    venv.create(made, symlinks=True)
    (site_packages,) = made.glob("lib/python*/site-packages")
    # Found by its path: what a .pth file there says of Brimline's source is not followed
    here = (Path(__file__).parents[3] / "src", sysconfig.get_path("purelib"))
    (site_packages / "linked.pth").write_text("\n".join(map(str, here)))
    with tarfile.open(folder / "env.tar.gz", "w:gz") as packed:
        packed.add(made, ".")
    return folder / "env.tar.gz"


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Its address. A server of somebody else would be started with the same settings."""
    port = free_port()
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.host": _LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.address": _LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.jars": ",".join(jar.as_uri() for jar in delta_jars()),
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    main = ["org.apache.spark.deploy.SparkSubmit", *words]
    main += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with _java(folder / "connect", main, "Spark Connect server started"):
        yield f"sc://{_LOOPBACK}:{port}"


@contextmanager
def _java(home: Path, words: Sequence[str], sign: str) -> Iterator[int]:
    """A Java program of Spark's, once its log has the sign that it is ready; its process id."""
    home.mkdir(parents=True)
    log = home / "log"
    command = java_program(["-Xmx1g", FIRST_COMPILER_ONLY], words)
    environment = os.environ | {
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": _LOOPBACK,
        # As the start scripts, which the wheel lacks, would say
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "PYTHONHASHSEED": "0",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment, cwd=home)
    try:
        eventually(lambda: sign in log.read_text(errors="replace") or process.poll() is not None)
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
