"""From columns of numpy to the tables of a snapshot file."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from brimline.landing.columns import Columns, Numbers, Sections, Texts
from brimline.landing.schema import SECTIONS, SEGMENTS


def tables_of(sections: Sections) -> Mapping[str, pa.Table]:
    """``ValueError`` for columns that are not of the schema."""
    return {name: _table(name, columns) for name, columns in sections.items()}


def _table(section: str, columns: Columns) -> pa.Table:
    schema = SECTIONS[section]
    if not columns:
        return schema.empty_table()
    given = dict(columns)
    if section == SEGMENTS:
        counts = np.asarray(given.pop("counts"))
        given["log"] = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    if set(given) != set(schema.names):
        raise ValueError(f"{section} has the columns {sorted(given)}, not {sorted(schema.names)}")
    return pa.Table.from_arrays([_array(given[field.name], field) for field in schema], schema=schema)


def _array(column: Numbers | Texts, field: pa.Field) -> pa.Array:
    if not isinstance(column, np.ndarray):
        return pa.array(column, type=field.type)
    mask = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
    return pa.array(np.ma.getdata(column), type=field.type, mask=mask)
