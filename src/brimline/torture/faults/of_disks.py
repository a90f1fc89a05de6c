"""Volumes of a broker that fill, hang, or come back in another state."""

import signal
import sys
from pathlib import Path

from brimline.model import Bytes
from brimline.sandbox import BadSpec
from brimline.torture.clients.table import KAFKA_PYTHON, ClientProcess
from brimline.torture.faults import stallable_volume
from brimline.torture.faults.table import Stage, Undo, fault, remove_all
from brimline.torture.history import Emptied
from brimline.torture.waiting import came_true
from brimline.torture.world import BULK, MIB, TortureFailed, run_inside

_LEFT_ON_A_FULL_DISK = Bytes(10 * MIB)
_FILLING_SECONDS = 20.0


@fault(
    "disk-foreign", "a foreign file fills a volume beyond its limit", undone_by="the file is removed", touches="disk"
)
def filled_by_a_file(stage: Stage) -> Undo:
    return _fill(stage, _LEFT_ON_A_FULL_DISK)


@fault(
    "disk-last-byte",
    "a foreign file takes the last byte of a volume",
    undone_by="the file is removed, the broker killed and started",
    touches="disk broker cluster",
    suspends=("no-enospc", "brokers-alive"),
)
def filled_to_the_last_byte(stage: Stage) -> Undo:
    unfill = _fill(stage, Bytes(0))

    def undo() -> None:
        unfill()
        # Its log dir may be offline by now, which only a restart mends
        stage.take_down(stage.station.broker, stage.station.broker.kill)
        stage.bring_back(stage.station.broker)

    return undo


def _fill(stage: Stage, leave_free: Bytes) -> Undo:
    try:
        file = stage.world.sandbox.fill(stage.log_dir, leave_free=leave_free)
    except BadSpec:
        return lambda: None  # it is that full already
    return lambda: stage.world.sandbox.unfill(file)


@fault(
    "disk-kafka",
    "a client fills a volume through the gateway, as fast as it may",
    undone_by="the client ends; its topic is deleted and created again",
    touches="disk cluster",
)
def filled_by_kafka(stage: Stage) -> Undo:
    """A client that writes as fast as it may, until the gateway refuses it."""
    arguments = {
        "--bootstrap-servers": stage.world.sandbox.bootstrap_servers,
        "--topic": BULK,
        "--partitions": str(stage.volume),
        "--rate": "400",
        "--name": "bulk",
        "--value-bytes": "100000",
    }
    command = KAFKA_PYTHON.command([word for pair in arguments.items() for word in pair], KAFKA_PYTHON.patience)
    process = ClientProcess(command, lambda _: None)
    came_true(lambda: any(station.fenced() for station in stage.world.stations.values()), _FILLING_SECONDS)

    def undo() -> None:
        process.close()
        stage.delete_topic(BULK)
        stage.create_topic(BULK)

    return undo


@fault(
    "disk-read-only",
    "the broker is killed and comes back with its second volume read-only",
    undone_by="writable again, and a start",
    touches="disk broker cluster",
    suspends=("brokers-alive",),
)
def read_only(stage: Stage) -> Undo:
    broker, volume = stage.station.broker, str(stage.station.broker.log_dirs[1].parent)
    stage.take_down(broker, broker.kill)
    run_inside(stage.world.sandbox, "mount", "-o", "remount,ro", volume)
    broker.launch()

    def undo() -> None:
        broker.kill()
        run_inside(stage.world.sandbox, "mount", "-o", "remount,rw", volume)
        stage.bring_back(broker)

    return undo


@fault(
    "disk-empty",
    "the broker is killed and comes back with its second volume empty",
    undone_by="a start; with one replica what was acknowledged there is lost",
    touches="disk broker cluster gateway guard",
)
def emptied(stage: Stage) -> Undo:
    """But for ``meta.properties``: a log dir with another identity is another log dir to Kafka."""
    broker, log_dir = stage.station.broker, stage.station.broker.log_dirs[1]
    stage.take_down(broker, broker.kill)
    partitions = stage.witness.partitions_in(stage.station, str(log_dir))
    remove_all(each for each in stage.world.sandbox.outside(log_dir).iterdir() if each.name != "meta.properties")
    if stage.world.replicas == 1:
        for topic, partition in partitions:
            stage.history.note(Emptied(topic=topic, partition=partition))
    return lambda: stage.bring_back(broker)


def _fuse() -> str | None:
    return None if Path(stallable_volume.DEVICE).exists() else f"there is no {stallable_volume.DEVICE}"


@fault(
    "disk-hang",
    "a volume answers nothing, and the broker on it stands still",
    undone_by="it answers again",
    touches="disk broker cluster gateway guard",  # a process that waits for such a disk cannot even be killed
    needs=_fuse,
)
def hung(stage: Stage) -> Undo:
    """The broker stands still as it would on such a disk; for everybody else a file system lies over the volume that
    answers nothing."""
    sandbox, station, volume = stage.world.sandbox, stage.station, stage.log_dir.parent
    script = [sys.executable, "-I", stallable_volume.__file__, str(volume)]
    server = sandbox.process(
        f"hung-{station.number}-{stage.chance.randrange(1 << 30)}", script, station.broker.node.home
    )
    station.broker.signal(signal.SIGSTOP)
    server.launch()
    if not came_true(lambda: "mounted" in server.complaint() or not server.is_running, 30.0) or not server.is_running:
        station.broker.signal(signal.SIGCONT)
        raise TortureFailed(f"no file system that hangs: {server.complaint()}")
    server.signal(signal.SIGSTOP)

    def undo() -> None:
        server.kill()
        run_inside(sandbox, "umount", "--lazy", str(volume))
        station.broker.signal(signal.SIGCONT)

    return undo


@fault(
    "disk-full-hang",
    "a foreign file fills a volume, which then answers nothing; the broker on it stands still",
    undone_by="it answers again, and the file is removed",
    touches="disk broker cluster gateway guard",
    needs=_fuse,
)
def full_and_hung(stage: Stage) -> Undo:
    unfill = _fill(stage, _LEFT_ON_A_FULL_DISK)
    came_true(lambda: str(stage.log_dir) in (stage.station.fenced() or {}), _FILLING_SECONDS)
    answer = hung(stage)

    def undo() -> None:
        answer()
        unfill()

    return undo
