"""What a snapshot says of itself: whose it is, when it was taken, and where its sections are.

The header stands as JSON in the file's own metadata, so whoever lists a landing place learns it from the file's end
without reading a row. It also names the file: all snapshots of a broker's day lie in one folder, in the order of time,
so whoever looks for new ones need not list the old.

No pyarrow here: the guard makes headers and must stay small.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from urllib.parse import quote

from brimline import __version__

SCHEMA_VERSION = 1
ROOT = "snapshots"
SUFFIX = ".parquet"
MADE_BY = f"brimline {__version__}"
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
NAME = re.compile(rf"{ROOT}/[^/]+/\d+/(?:{DAY.pattern}/)?\d{{13}}-[0-9a-f]+\{SUFFIX}")
"""Before there were folders of days, all snapshots of a broker lay in one."""
_LATEST_MS = 10**13 - 1
"""The last moment of 13 digits, in the year 2286."""
_HEX = re.compile(r"[0-9a-f]{1,64}")
_HALF_A_LETTER = re.compile(r"[\ud800-\udfff]")
"""What JSON and Java's files may have, and no file and no table."""
_LARGEST_BROKER_ID = 2**31 - 1
_LONGEST_FOLDER = 128
"""Bytes of a cluster's. A snapshot that waits has all of its name in one file's, of 255 at most."""


class BadHeader(ValueError):
    """A header that no writer of this version makes."""


class UnknownVersion(BadHeader):
    """A header of a schema that was made after this code."""


class Source(Enum):
    """Who took the snapshot. Only guards see segments; ``synth`` is made up, to try things on."""

    GUARD = "guard"
    COLLECT = "collect"
    SYNTH = "synth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Where a section is in the file: row groups of its own, one after the other."""

    first_group: int
    groups: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    snapshot_id: str
    """Lower-case hexadecimal, new for every snapshot."""
    cluster_id: str
    broker_id: int
    source: Source
    taken_at_ms: int
    made_by: str = MADE_BY
    sections: Mapping[str, Section] = field(default_factory=dict)
    version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(self.snapshot_id):
            raise BadHeader(f"snapshot_id {self.snapshot_id!r} is not of lower-case hexadecimal digits")
        folder_of(self.cluster_id)
        if not 0 <= self.broker_id <= _LARGEST_BROKER_ID:
            raise BadHeader(f"broker_id {self.broker_id} is not a broker's id")
        if not 0 <= self.taken_at_ms <= _LATEST_MS:
            raise BadHeader(f"taken_at_ms {self.taken_at_ms} is not a time of 13 digits")

    @property
    def name(self) -> str:
        """The file's name below the landing place's root."""
        cluster = folder_of(self.cluster_id)
        day = datetime.fromtimestamp(self.taken_at_ms / 1000, UTC).date().isoformat()
        return f"{ROOT}/{cluster}/{self.broker_id}/{day}/{self.taken_at_ms:013d}-{self.snapshot_id}{SUFFIX}"

    def with_sections(self, sections: Mapping[str, Section]) -> "Header":
        return replace(self, sections=dict(sections))

    def to_json(self) -> str:
        document = {
            "version": self.version,
            "snapshot_id": self.snapshot_id,
            "cluster_id": self.cluster_id,
            "broker_id": self.broker_id,
            "source": self.source.value,
            "taken_at_ms": self.taken_at_ms,
            "made_by": self.made_by,
            "sections": {
                name: {"first_group": each.first_group, "groups": each.groups, "rows": each.rows}
                for name, each in self.sections.items()
            },
        }
        return json.dumps(document, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Header":
        """Raises ``UnknownVersion`` or ``BadHeader``."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadHeader(f"the header is not JSON: {error}") from None
        if not isinstance(document, dict):
            raise BadHeader("the header is not a JSON object")
        version = _number(document, "version")
        if version > SCHEMA_VERSION:
            raise UnknownVersion(f"snapshot version {version}; this brimline reads {SCHEMA_VERSION}")
        if version < 1:
            raise BadHeader(f"there is no version {version}")
        sections = document.get("sections")
        if not isinstance(sections, dict):
            raise BadHeader("the header has no sections")
        try:
            source = Source(document.get("source"))
        except ValueError:
            raise BadHeader(
                f"the source {document.get('source')!r} is not one of {[each.value for each in Source]}"
            ) from None
        return cls(
            version=version,
            snapshot_id=_text(document, "snapshot_id"),
            cluster_id=_text(document, "cluster_id"),
            broker_id=_number(document, "broker_id"),
            source=source,
            taken_at_ms=_number(document, "taken_at_ms"),
            made_by=_text(document, "made_by"),
            sections={name: _section(name, value) for name, value in sections.items()},
        )


def folder_of(cluster_id: str) -> str:
    """Raises ``BadHeader``."""
    folder = "" if _HALF_A_LETTER.search(cluster_id) else quote(cluster_id, safe="").replace(".", "%2E")
    if not 0 < len(folder) <= _LONGEST_FOLDER:
        raise BadHeader(f"the cluster id {cluster_id[:200]!r} makes no folder's name of 1 to {_LONGEST_FOLDER} bytes")
    return folder


def _section(name: str, value: object) -> Section:
    if not isinstance(value, dict):
        raise BadHeader(f"the section {name} is not described")
    section = Section(**{key: _number(value, key) for key in ("first_group", "groups", "rows")})
    if min(section.first_group, section.groups, section.rows) < 0:
        raise BadHeader(f"the section {name} has a number below 0")
    return section


def _number(document: Mapping[str, Any], key: str) -> int:
    value = document.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadHeader(f"{key} is {value!r}, not a whole number")
    return value


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or _HALF_A_LETTER.search(value):
        raise BadHeader(f"{key} is {value!r}, not a text")
    return value
