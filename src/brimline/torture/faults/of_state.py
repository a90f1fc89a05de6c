"""What Brimline itself goes by: its state dir, its clock, its configuration, its way to other brokers."""

import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from brimline.torture.faults.table import Stage, Undo, fault, remove_all
from brimline.torture.world import MIB, run_inside, write_config

_CLOCK_JUMPS = (3600.0, -3600.0, 86_400.0, -86_400.0, 3650 * 86_400.0, -3650 * 86_400.0)


@fault(
    "state-full",
    "the state dir's volume is full to its last byte",
    undone_by="the foreign file is removed",
    touches="gateway guard",
)
def state_full(stage: Stage) -> Undo:
    file = stage.state_dir / "foreign"
    with suppress(OSError), file.open("wb", buffering=0) as foreign:
        for size in (MIB, 4096, 1):
            with suppress(OSError):
                while True:
                    foreign.write(bytes(size))
    return lambda: file.unlink(missing_ok=True)


@fault(
    "state-read-only",
    "gateway and guard are killed and come back with a read-only state dir",
    undone_by="writable again, and both restarted",
    touches="gateway guard",
)
def state_read_only(stage: Stage) -> Undo:
    def remount(how: str) -> Callable[[], None]:
        return lambda: run_inside(stage.world.sandbox, "mount", "-o", f"remount,{how}", str(stage.station.state_dir))

    stage.restart_ours(remount("ro"))
    return lambda: stage.restart_ours(remount("rw"))


@fault(
    "state-damaged",
    "one bit in one file of the state dir is flipped while gateway and guard are down",
    undone_by="the bit is flipped back, and both restarted",
    touches="gateway guard",
)
def state_damaged(stage: Stage) -> Undo:
    """One bit of one file. It is put right again, if nobody has written over it."""
    place: list[tuple[Path, int, int]] = []

    def flip() -> None:
        stage.witness.look(stage.station)  # what the ledger says is known before it is damaged
        files = [each for each in sorted(stage.state_dir.iterdir()) if each.is_file() and each.stat().st_size]
        if files:
            file = stage.chance.choice(files)
            content = bytearray(file.read_bytes())
            at, bit = stage.chance.randrange(len(content)), 1 << stage.chance.randrange(8)
            place.append((file, at, content[at]))
            _write_byte(file, at, content[at] ^ bit)

    def mend() -> None:
        for file, at, byte in place:
            if file.is_file() and file.stat().st_size > at:
                _write_byte(file, at, byte)

    stage.restart_ours(flip)
    return lambda: stage.restart_ours(mend)


@fault(
    "state-removed",
    "everything in the state dir is removed while gateway and guard are down",
    undone_by="nothing: they start empty",
    touches="gateway guard",
)
def state_removed(stage: Stage) -> Undo:
    def remove() -> None:
        stage.witness.look(stage.station)
        remove_all(stage.state_dir.iterdir())

    stage.restart_ours(remove)
    return lambda: None


def _write_byte(file: Path, at: int, byte: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(bytes([byte]))


@fault(
    "clock-jump",
    "the clock of gateway and guard jumps by an hour, a day or ten years, either way",
    undone_by="it jumps back",
    touches="clock",
)
def clock_jumped(stage: Stage) -> Undo:
    file = stage.world.sandbox.outside(stage.station.clock)
    file.write_text(str(stage.chance.choice(_CLOCK_JUMPS)))
    return lambda: file.unlink(missing_ok=True)


@fault(
    "reload",
    "gateway and guard read an altered configuration (SIGHUP)",
    undone_by="the old configuration, and SIGHUP",
    touches="gateway guard",
)
def reloaded(stage: Stage) -> Undo:
    def reload(changes: dict[str, str]) -> None:
        station = stage.station
        write_config(station.sandbox, station.broker, station.config, station.state_dir, changes)
        for process in (station.gateway, station.guard):
            process.signal(signal.SIGHUP)

    reload({"disk.usage.check.interval.ms": str(stage.chance.randrange(100, 900)), "brimline.log.level": "warning"})
    return lambda: reload({})


@fault(
    "guards-cut",
    "no guard reaches one of the brokers",
    undone_by="the network is mended",
    touches="network",
    fewest_brokers=2,
)
def guards_cut_off(stage: Stage) -> Undo:
    cut = stage.world.cuts[stage.station.number]
    cut.cut()
    return cut.mend
