"""Processes that are killed, stand still or are restarted."""

import signal

from brimline.sandbox import SupervisedProcess
from brimline.torture.faults.table import Stage, Undo, fault


def _process(stage: Stage, which: str) -> SupervisedProcess:
    if which == "controller":
        assert stage.world.controller is not None
        return stage.world.controller
    process: SupervisedProcess = getattr(stage.station, which)
    return process


def _add_process(which: str, touches: str, fewest_brokers: int = 1) -> None:
    """Killed, stopped and restarted: three faults of one process."""

    def killed(stage: Stage) -> Undo:
        process = _process(stage, which)
        stage.take_down(process, process.kill)
        return lambda: stage.bring_back(process)

    def stopped(stage: Stage) -> Undo:
        process = _process(stage, which)
        process.signal(signal.SIGSTOP)
        return lambda: process.signal(signal.SIGCONT)

    def restarted(stage: Stage) -> Undo:
        process = _process(stage, which)
        stage.take_down(process, process.stop)
        return lambda: stage.bring_back(process)

    for name, does, undone_by, inject in (
        ("kill", f"kill -9 of the {which}", "a start", killed),
        ("stop", f"SIGSTOP of the {which}", "SIGCONT", stopped),
        ("restart", f"a clean stop of the {which} (SIGTERM)", "a start", restarted),
    ):
        fault(f"{which}-{name}", does, undone_by=undone_by, touches=touches, fewest_brokers=fewest_brokers)(inject)


_add_process("broker", "broker cluster")
_add_process("gateway", "gateway")
_add_process("guard", "guard")
_add_process("controller", "broker cluster", fewest_brokers=2)
