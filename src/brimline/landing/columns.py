"""A snapshot's columns before they are Parquet, and the file by which one process hands them to another.

The guard has numpy, and pyarrow is ten times its size: it writes its columns to a file without a name, and a
short-lived child reads them from there. The file has a line of JSON and then numpy's own format, array by array;
nothing in it can be executed.

A column of numbers is an array, masked where a number is not known; a column of texts has ``None`` there.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[Any]
"""Or a masked array, which is one too."""
Texts: TypeAlias = Sequence[str | None]
Columns: TypeAlias = Mapping[str, Numbers | Texts]
Sections: TypeAlias = Mapping[str, Columns]

_PLAIN, _MASKED, _TEXTS = "plain", "masked", "texts"


def known(values: Numbers) -> Numbers:
    """Masked where the number is below 0, which in the model's columns is "unknown"."""
    column: Numbers = np.ma.MaskedArray(values, mask=values < 0)
    return column


def write_columns(file: BinaryIO, instructions: Mapping[str, object], sections: Sections) -> None:
    """``instructions`` are whatever the reader needs besides, as JSON has it."""
    kinds = {
        section: {name: _kind(column) for name, column in columns.items()} for section, columns in sections.items()
    }
    texts = {
        section: {name: list(column) for name, column in columns.items() if not isinstance(column, np.ndarray)}
        for section, columns in sections.items()
    }
    line = json.dumps({"instructions": instructions, "kinds": kinds, "texts": texts})
    file.write(line.encode() + b"\n")
    for columns in sections.values():
        for column in columns.values():
            if isinstance(column, np.ndarray):
                np.save(file, np.ascontiguousarray(np.ma.getdata(column)), allow_pickle=False)
                if isinstance(column, np.ma.MaskedArray):
                    np.save(file, np.ma.getmaskarray(column), allow_pickle=False)


def read_columns(file: BinaryIO) -> tuple[Mapping[str, Any], Sections]:
    """``ValueError`` when the file is not whole."""
    head = json.loads(file.readline())
    sections: dict[str, dict[str, Numbers | Texts]] = {}
    for section, kinds in head["kinds"].items():
        columns = sections.setdefault(section, {})
        for name, kind in kinds.items():
            columns[name] = head["texts"][section][name] if kind == _TEXTS else _read_numbers(file, kind)
    return head["instructions"], sections


def _read_numbers(file: BinaryIO, kind: str) -> Numbers:
    values: Numbers = np.load(file, allow_pickle=False)
    if kind == _PLAIN:
        return values
    masked: Numbers = np.ma.MaskedArray(values, mask=np.load(file, allow_pickle=False))
    return masked


def _kind(column: Numbers | Texts) -> str:
    if not isinstance(column, np.ndarray):
        return _TEXTS
    return _MASKED if isinstance(column, np.ma.MaskedArray) else _PLAIN
