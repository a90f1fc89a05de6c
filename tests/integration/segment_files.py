"""A partition's folder as the broker's disk has it: segments, their sizes, their batches."""

import struct
from contextlib import suppress
from pathlib import Path


def segment_files(folder: Path) -> dict[int, int]:
    """Base offset → size, of local and of tiered files. One that is renamed away meanwhile is gone, not an error."""
    found: dict[int, int] = {}
    with suppress(FileNotFoundError):  # the folder itself
        for file in folder.glob("*.log"):
            with suppress(FileNotFoundError):
                found[int(file.name[:20])] = file.stat().st_size
    return found


def batches(folder: Path) -> dict[int, bytes]:
    """By their first offset. Where one segment ends and the next begins is each broker's own affair."""
    found: dict[int, bytes] = {}
    for path in sorted(folder.glob("*.log")):
        try:
            data, at = path.read_bytes(), 0
        except FileNotFoundError:
            continue
        while at < len(data):
            base, length = struct.unpack_from(">qi", data, at)
            found[base] = data[at : at + 12 + length]
            at += 12 + length
    return found


def log_end(folder: Path) -> int:
    found = batches(folder)
    last = max(found)
    (delta,) = struct.unpack_from(">i", found[last], 23)
    return last + int(delta) + 1
