"""What to tell the bridge so that its beans become the given families: bytes, no process.

``BeanTable`` knows what one JVM was told. A new JVM gets a new table, whose first batch is everything: so a replay
after a crash is not a case of its own. The commands are described in BrimlineJmx.java.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brimline.metrics.catalogue import BY_NAME
from brimline.metrics.metric import Bean, LabelValues, MetricFamily

_REGISTER = struct.Struct(">cIqH")
_UNREGISTER = struct.Struct(">cI")
_SET = struct.Struct(">cI")
_END = struct.Struct(">cI")
LONGEST_NAME = 0xFFFF
"""Bytes of an object name: a topic has at most 249, a path at most 4096. A longer one gets no bean."""


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """The rows of one metric as the JVM has them."""

    label_values: LabelValues
    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]


class BeanTable:
    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}
        self._free: list[int] = []
        self._next_id = 0

    def __len__(self) -> int:
        """How many beans were registered and not unregistered."""
        return self._next_id - len(self._free)

    def update(self, families: Iterable[MetricFamily]) -> bytes:
        """The commands that make the JVM's beans these; empty when they are."""
        wanted = {family.name: family for family in families if BY_NAME[family.name].bean}
        commands = [self._forget(name) for name in self._told.keys() - wanted.keys()]
        for name, family in wanted.items():
            commands.append(self._change(name, family))
        return b"".join(commands)

    def _forget(self, name: str) -> bytes:
        return b"".join(map(self._unregister, np.unique(self._told.pop(name).ids).tolist()))

    def _change(self, name: str, family: MetricFamily) -> bytes:
        told = self._told.get(name)
        values = np.asarray(family.values).astype(np.int64)
        if told is not None and (told.label_values is family.label_values or told.label_values == family.label_values):
            changed = np.flatnonzero(values != told.values)
            self._told[name] = _Told(family.label_values, told.ids, values)
            return _set(told.ids[changed], values[changed])
        return self._change_rows(name, family.label_values, values)

    def _change_rows(self, name: str, label_values: LabelValues, values: npt.NDArray[np.int64]) -> bytes:
        bean = BY_NAME[name].bean
        assert bean is not None
        told = self._told.get(name)
        ids = dict(zip(told.label_values, told.ids.tolist(), strict=True)) if told else {}
        gone = ids.keys() - set(label_values)
        commands = [self._unregister(ids.pop(row)) for row in gone]
        stayed = [position for position, row in enumerate(label_values) if row in ids]
        for row, value in zip(label_values, values.tolist(), strict=True):
            if row not in ids:
                ids[row] = self._new_id()
                commands.append(_register(ids[row], value, bean, row))
        all_ids = np.array([ids[row] for row in label_values], dtype=np.int64)
        self._told[name] = _Told(label_values, all_ids, values)
        return b"".join(commands) + _set(all_ids[stayed], values[stayed])

    def _new_id(self) -> int:
        """Used again once free: the JVM keeps its gauges in an array."""
        if self._free:
            return self._free.pop()
        self._next_id += 1
        return self._next_id - 1

    def _unregister(self, number: int) -> bytes:
        self._free.append(number)
        return _UNREGISTER.pack(b"U", number)


def end_of_batch(serial: int) -> bytes:
    """The JVM answers ``applied SERIAL BEANS``."""
    return _END.pack(b"E", serial & 0x7FFFFFFF)


def _register(number: int, value: int, bean: Bean, row: tuple[str, ...]) -> bytes:
    # A path may hold bytes that are not UTF-8; Java shows such a byte as U+FFFD too
    readable = tuple(part.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for part in row)
    name = bean.object_name(readable).encode()
    if len(name) > LONGEST_NAME:
        return b""
    return _REGISTER.pack(b"R", number, value, len(name)) + name


def _set(ids: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> bytes:
    if not len(ids):
        return b""
    return _SET.pack(b"S", len(ids)) + ids.astype(">i4").tobytes() + values.astype(">i8").tobytes()
