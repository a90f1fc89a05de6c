"""A run: clients write, faults come and go by the schedule, the witness watches; at the end everything is read back."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kafka.errors import KafkaError

from brimline.model import BrimlineError
from brimline.torture import world as worlds
from brimline.torture.faults.all_faults import FAULTS
from brimline.torture.faults.table import Fault, Stage, Undo
from brimline.torture.history import Begun, Finished, History, Recovered, Stored, Undone
from brimline.torture.history import Fault as FaultEvent
from brimline.torture.load import WRITERS, Load, LoadWriter, number_in
from brimline.torture.read_back import read_back
from brimline.torture.schedule import Step, Strike, step_of
from brimline.torture.waiting import came_true
from brimline.torture.witness import Witness
from brimline.torture.world import KEPT, PARTITIONS, TOPICS, World

_FLUSH_SECONDS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What was asked for. ``steps``: those to carry out, in this order; ``minutes`` bounds them in time."""

    seed: int
    version: str
    brokers: int
    steps: Collection[int]
    minutes: float
    only: Collection[str] = ()
    clients: Collection[str] = ()


def tortured(order: Order, history_path: Path, tell: Callable[[str], None]) -> None:
    """Carry it out and leave its history in the file. Raises ``BrimlineError`` if there is no such world to be had."""
    faults, no_faults = _to_be_had(order)
    writers, no_writers = _writers(order)
    with history_path.open("w", buffering=1 << 20) as file:
        history = History(file)
        history.note(
            Begun(
                seed=order.seed,
                version=order.version,
                brokers=order.brokers,
                replicas=order.brokers,
                protected=[KEPT],
                left_out={**no_faults, **no_writers},
            )
        )
        for name, why in {**no_faults, **no_writers}.items():
            tell(f"left out: {name}: {why}")
        tell(f"starting Kafka {order.version}, {order.brokers} broker{'s' * (order.brokers > 1)}, gateway and guard …")
        with worlds.made(order.version, order.brokers, lambda _: None) as world:
            Run(order, world, history, tell).run(faults, writers)


def _to_be_had(order: Order) -> tuple[list[Fault], dict[str, str]]:
    wanted = [fault for fault in FAULTS if not order.only or fault.name in order.only]
    left_out = {fault.name: why for fault in wanted if (why := fault.why_not(order.brokers))}
    faults = [fault for fault in wanted if fault.name not in left_out]
    if not faults:
        raise worlds.TortureFailed("; ".join(f"{name}: {why}" for name, why in left_out.items()))
    return faults, left_out


def _writers(order: Order) -> tuple[list[LoadWriter], dict[str, str]]:
    wanted = [writer for writer in WRITERS if not order.clients or writer.name in order.clients]
    left_out = {writer.name: why for writer in wanted if (why := writer.why_not())}
    return [writer for writer in wanted if writer.name not in left_out], left_out


class Run:
    def __init__(self, order: Order, world: World, history: History, tell: Callable[[str], None]) -> None:
        self._order = order
        self._world = world
        self._history = history
        self._tell = tell
        self._witness = Witness(world, history)
        self._began = time.monotonic()
        self._faults = 0

    def run(self, faults: list[Fault], writers: list[LoadWriter]) -> None:
        load = Load(writers, self._world.sandbox.bootstrap_servers, self._history)
        try:
            with self._witness.watching():
                if silent := load.silent():
                    raise worlds.TortureFailed(f"nothing is written before the first fault: {silent}")
                self._began = time.monotonic()
                self._steps(faults)
                self._settle(load)
                load.stop(_FLUSH_SECONDS)
                self._read_back()
        finally:
            load.close()
        self._history.note(Finished(minutes=(time.monotonic() - self._began) / 60, faults=self._faults))

    def _steps(self, faults: list[Fault]) -> None:
        brokers = list(self._world.stations)
        for number in self._order.steps:
            if self._minutes >= self._order.minutes:
                return
            step = step_of(self._order.seed, number, faults, brokers, len(PARTITIONS))
            time.sleep(step.pause)
            began = time.monotonic()
            self._carry_out(step)
            is_whole = came_true(self._world.is_whole)
            self._tell(
                f"{self._minutes:5.1f} min  step {number:3}  {step}, held {step.hold:.1f} s, "
                f"whole after {time.monotonic() - began:.1f} s"
            )
            if not is_whole:
                self._history.note(Recovered(what=f"the cluster after step {number}", works=False, why=str(step)))
                return

    @property
    def _minutes(self) -> float:
        return (time.monotonic() - self._began) / 60

    def _carry_out(self, step: Step) -> None:
        """The faults one after the other, each in force for a part of the time alone; undone in the same order."""
        undos: list[tuple[Strike, Undo]] = []
        for strike in step.strikes:
            undo = self._strike(step, strike)
            if undo is not None:
                undos.append((strike, undo))
            time.sleep(step.hold / len(step.strikes))
        for strike, undo in undos:
            try:
                undo()
            except (BrimlineError, KafkaError, OSError) as error:
                self._history.note(Recovered(what=f"{strike} in step {step.number}", works=False, why=str(error)))
                self._tell(f"           step {step.number:3}  {strike} cannot be undone: {error}")
            self._witness.look(self._world.stations[strike.broker])
            self._history.note(Undone(step=step.number, fault=strike.fault.name))

    def _strike(self, step: Step, strike: Strike) -> Undo | None:
        fault, station = strike.fault, self._world.stations[strike.broker]
        chance = Random(f"{self._order.seed}/{step.number}/{fault.name}")
        self._history.note(
            FaultEvent(step=step.number, fault=fault.name, target=station.broker.name, suspends=list(fault.suspends))
        )
        stage = Stage(
            world=self._world,
            witness=self._witness,
            history=self._history,
            station=station,
            volume=strike.volume,
            chance=chance,
        )
        try:
            undo = fault.inject(stage)
        except (BrimlineError, KafkaError, OSError) as error:
            # The world was in no state for it. What it cannot do is not a verdict; that it recovers is.
            self._tell(f"           step {step.number:3}  {strike} could not be done: {error}")
            return None
        self._faults += 1
        return undo

    def _settle(self, load: Load) -> None:
        """No fence is left, and everybody gets on."""
        for number, station in self._world.stations.items():
            released = came_true(lambda: station.fenced() == {})  # noqa: B023 (called at once)
            why = "" if released else f"fenced: {station.fenced()}"
            self._history.note(Recovered(what=f"gateway-{number}", works=released, why=why))
        silent = load.silent()
        for name in load.names:
            self._history.note(Recovered(what=f"client {name}", works=name not in silent, why=silent.get(name, "")))

    def _read_back(self) -> None:
        for topic in TOPICS:
            for partition in PARTITIONS:
                try:
                    records = read_back(self._world.sandbox, topic, partition)
                except (KafkaError, TimeoutError) as error:
                    self._history.note(Recovered(what=f"{topic}-{partition}", works=False, why=repr(error)))
                    continue
                for record in records:
                    client, number = number_in(record.value, partition) or ("?", -1)
                    self._history.note(
                        Stored(topic=topic, partition=partition, offset=record.offset, client=client, number=number)
                    )
