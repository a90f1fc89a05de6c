"""What a fault is, where it acts, and how it gets into the table.

A fault returns what undoes it. Two are in force at once only if they touch different things, so that each can be undone
without a look at the other.
"""

import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kafka.errors import KafkaError

from brimline.sandbox import SupervisedProcess
from brimline.torture.history import Created, History
from brimline.torture.witness import Witness
from brimline.torture.world import Station, World

Undo = Callable[[], None]
Inject = Callable[["Stage"], Undo]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where a fault acts: one broker of the world, one of its volumes, and its own share of chance."""

    world: World
    witness: Witness
    history: History
    station: Station
    volume: int
    chance: Random

    @property
    def log_dir(self) -> Path:
        return self.station.broker.log_dirs[self.volume]

    @property
    def state_dir(self) -> Path:
        """As this process finds it."""
        return self.station.sandbox.outside(self.station.state_dir)

    def take_down(self, process: SupervisedProcess, how: Callable[[], None]) -> None:
        self.witness.expected_down.add(process.name)
        how()

    def bring_back(self, process: SupervisedProcess) -> None:
        """And wait for it. Should it end at once, the witness sees it: from here on it is expected to run."""
        if process in (self.station.gateway, self.station.guard):
            self.station.launch(process)
        else:
            process.launch()
        self.witness.expected_down.discard(process.name)
        if process is self.station.broker:
            self.station.broker.start()

    def restart_ours(self, change: Callable[[], None]) -> None:
        """``kill -9`` of gateway and guard, and a start after ``change``: what they keep is read again."""
        for process in (self.station.gateway, self.station.guard):
            self.take_down(process, process.kill)
        change()
        for process in (self.station.gateway, self.station.guard):
            self.bring_back(process)

    def delete_topic(self, topic: str) -> None:
        self.history.note(Created(topic=topic))
        self.world.delete_topic(topic)

    def create_topic(self, topic: str) -> None:
        give_up_at = time.monotonic() + 60.0
        while True:
            try:
                self.world.create_topic(topic)
                break
            except KafkaError:  # the deletion is still under way
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.5)
        self.history.note(Created(topic=topic))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``touches``: two faults at once have none of these in common. ``needs``: why it is not to be had here, if so."""

    name: str
    does: str
    undone_by: str
    touches: frozenset[str]
    inject: Callable[[Stage], Undo]
    suspends: tuple[str, ...] = ()
    fewest_brokers: int = 1
    needs: Callable[[], str | None] = lambda: None

    def why_not(self, brokers: int) -> str | None:
        """Why this fault is not to be had here."""
        return f"needs {self.fewest_brokers} brokers" if brokers < self.fewest_brokers else self.needs()


FAULTS: list[Fault] = []
"""In the order of their definitions below."""


def fault(
    name: str,
    does: str,
    *,
    undone_by: str,
    touches: str,
    suspends: tuple[str, ...] = (),
    fewest_brokers: int = 1,
    needs: Callable[[], str | None] = lambda: None,
) -> Callable[[Inject], Inject]:
    """Put the function below into the table."""

    def add(inject: Inject) -> Inject:
        FAULTS.append(
            Fault(
                name=name,
                does=does,
                undone_by=undone_by,
                touches=frozenset(touches.split()),
                inject=inject,
                suspends=suspends,
                fewest_brokers=fewest_brokers,
                needs=needs,
            )
        )
        return inject

    return add


def remove_all(paths: Iterable[Path]) -> None:
    for path in list(paths):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
