"""The writer: a short-lived child of the guard that makes a snapshot file of columns and delivers it.

    python -m brimline.landing.child < columns

It reads what ``columns`` writes, tells in one line of JSON what became of the snapshot, and ends. It is nice to
everybody else, and whatever hangs it (a dead network mount, an object store that does not answer) is over when its time
is: the kernel ends it, guard or no guard.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from brimline.documents.codec import from_json, to_json

_NICE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """What the guard wants done with the columns. ``header`` is JSON, without sections."""

    header: str
    uri: str
    spool: str
    spool_bytes: int
    seconds: int


def main() -> int:
    os.nice(_NICE)
    print(json.dumps(write(sys.stdin.buffer)))
    return 0


def write(columns: BinaryIO) -> Mapping[str, Any]:
    from brimline.landing.sections import read_columns

    given, sections = read_columns(columns)
    instructions = from_json(Instructions, given)
    signal.alarm(instructions.seconds)
    # Only now: by far the slowest part, and a limit holds for it already.
    import pyarrow as pa

    from brimline.landing.delivery import Spool, deliver
    from brimline.landing.header import Header
    from brimline.landing.place import LandingPlace
    from brimline.landing.writer import encode, tables_of

    pa.set_cpu_count(1)
    header = Header.from_json(instructions.header)
    data = encode(header, tables_of(sections))

    def put(name: str, content: bytes) -> None:
        LandingPlace(instructions.uri).put(name, content)

    spool = Spool(Path(instructions.spool), instructions.spool_bytes)
    delivery = deliver(put, spool, header.name, data)
    return {"name": header.name, "bytes": len(data), **to_json(delivery)}


if __name__ == "__main__":
    sys.exit(main())
