"""A reclaim plan as a file: what somebody has decided, to be carried out later, if it is still true by then.

One JSON object. ``brimline reclaim --output json`` writes it, and so may any other program::

    {"format": "brimline.reclaim-plan", "version": 2,
     "madeAt": "2026-01-31T12:00:00.000Z",  with a time zone
     "madeBy": "brimline 0.1.0",            who or what made it: any text, for the record
     "clusterId": "Zs3Y…", "broker": 1,     the only broker that it is for
     "ceilingPercent": 80,                  what it was made for; 100 is none
     "ceilingFrom": "properties",           the ceiling in the broker's file, which must still want it when this is
                                            carried out; or "hand": the ceiling above counts instead of that one, if
                                            whoever carries it out says it once more
     "brakes": {"minRetentionMs": 0, "minRetentionBytes": 0, "maxBytesPerCycle": null, "protectedTopics": []},
                                            that it was made under; those of the broker's file count when it is carried
                                            out
     "devices": [
       {"device": "8:1", "logDirs": ["/data/a"],
        "totalBytes": 1, "usedBytes": 1,    of the volume, by anyone
        "goingBytes": 1, "excessBytes": 1,  what leaves anyway; what is beyond the ceiling and does not
        "trims": [                          in the order in which they are carried out, a partition once in the file
          {"topic": "orders", "partition": 0, "topicId": "x7Jf…",   as kafka-topics.sh writes it
           "logDir": "/data/a",             where this broker's replica is
           "logStart": 0,                   as it was
           "target": 3000,                  the log's new start: the base offset of the first segment that stays
           "segments": 3,                   how many of this replica go, from and to these base offsets
           "firstBaseOffset": 0, "lastBaseOffset": 2000,
           "allocatedBytes": 1,             blocks of the disk that they hold
           "oldestMs": 1, "newestMs": 1,    range of age, milliseconds since 1970; null: unknown
           "reason": "…"}]}],               for the ledger
     "about": {…},                          whatever helps a reader; counts for nothing and may be left out
     "sha256": "…"}                         of all the rest (``checksum``)

**Invariant.** What is read is exactly what was written: every member is there, of its type and within its bounds, and
no other member is, and the checksum is right. A file that somebody mistyped, or a disk damaged, deletes nothing. That a
plan is well-formed does not make it true: that is for whoever carries it out to find.
"""

import hashlib
import json
import re
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from uuid import UUID

from brimline.act.ledger.entries import PlannedTrim, SegmentRange
from brimline.act.ledger.writing import topic_id_text
from brimline.model import BadInput, BrokerId, Bytes, Offset, TopicPartition
from brimline.model.reclaim import ReclaimPolicy
from brimline.model.times import time_text

FORMAT, VERSION = "brimline.reclaim-plan", 2
_CHECKSUM = "sha256"
LARGEST_FILE = Bytes(256 << 20)
_LARGEST_LONG, _LARGEST_INT = 2**63 - 1, 2**31 - 1
_A_FEW_WORDS = 60
_MAKE_ANEW = "nothing was deleted; make a new one with brimline reclaim --output json or brimline fleet simulate"
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")


class CeilingFrom(Enum):
    """Whose word the ceiling of a plan is."""

    PROPERTIES = "properties"
    HAND = "hand"


class BadPlanFile(BadInput):
    """A file that is no plan; the text says where in it, and what is allowed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiledDevice:
    """``trims`` are in the order in which they are carried out."""

    device: str
    log_dirs: tuple[str, ...]
    total_bytes: Bytes
    used_bytes: Bytes
    going_bytes: Bytes
    excess_bytes: Bytes
    trims: tuple[PlannedTrim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiledPlan:
    made_at: datetime
    made_by: str
    cluster_id: str
    broker: BrokerId
    policy: ReclaimPolicy
    ceiling_from: CeilingFrom
    devices: tuple[FiledDevice, ...]

    @property
    def trims(self) -> tuple[PlannedTrim, ...]:
        return tuple(trim for device in self.devices for trim in device.trims)


# Writing --------------------------------------------------------------------------------------------------------------


def plan_document(plan: FiledPlan, about: Mapping[str, object] | None = None) -> dict[str, object]:
    """Ready for ``json.dump``. ``about`` is for readers."""
    document: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "madeAt": time_text(plan.made_at),
        "madeBy": plan.made_by,
        "clusterId": plan.cluster_id,
        "broker": plan.broker,
        "ceilingPercent": plan.policy.ceiling_percent,
        "ceilingFrom": plan.ceiling_from.value,
        "brakes": {
            "minRetentionMs": plan.policy.min_retention_ms,
            "minRetentionBytes": plan.policy.min_retention_bytes,
            "maxBytesPerCycle": plan.policy.max_bytes_per_cycle,
            "protectedTopics": list(plan.policy.protected_topics),
        },
        "devices": [_device_document(device) for device in plan.devices],
    }
    if about is not None:
        document["about"] = dict(about)
    return {**document, _CHECKSUM: checksum(document)}


def checksum(document: Mapping[str, object]) -> str:
    """Of its content and not of its spaces, so that a plan may be laid out anew, as ``python -m json.tool`` does."""
    content = {name: value for name, value in document.items() if name != _CHECKSUM}
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _device_document(device: FiledDevice) -> dict[str, object]:
    return {
        "device": device.device,
        "logDirs": list(device.log_dirs),
        "totalBytes": device.total_bytes,
        "usedBytes": device.used_bytes,
        "goingBytes": device.going_bytes,
        "excessBytes": device.excess_bytes,
        "trims": [_trim_document(trim) for trim in device.trims],
    }


def _trim_document(trim: PlannedTrim) -> dict[str, object]:
    return {
        "topic": trim.partition.topic,
        "partition": trim.partition.partition,
        "topicId": topic_id_text(trim.topic_id),
        "logDir": trim.log_dir,
        "logStart": trim.log_start,
        "target": trim.target,
        "segments": trim.segments.count,
        "firstBaseOffset": trim.segments.first,
        "lastBaseOffset": trim.segments.last,
        "allocatedBytes": trim.allocated_bytes,
        "oldestMs": None if trim.oldest_ms < 0 else trim.oldest_ms,
        "newestMs": None if trim.newest_ms < 0 else trim.newest_ms,
        "reason": trim.reason,
    }


# Reading --------------------------------------------------------------------------------------------------------------


def load_plan(path: Path) -> FiledPlan:
    """Raises ``BadPlanFile``."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise BadPlanFile(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_FILE:
        raise BadPlanFile(f"{path} is larger than {LARGEST_FILE:,} bytes: not a plan for one broker")
    return read_plan(content, str(path))


def read_plan(content: bytes, name: str) -> FiledPlan:
    """``name`` is what the file is called in an error. Raises ``BadPlanFile``."""
    try:
        document = json.loads(content, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
        found = checksum(document) if isinstance(document, dict) else ""
    except (ValueError, RecursionError) as error:
        raise BadPlanFile(f"{name} is not a JSON document: {error}") from error
    return _plan(_Object(document, name), found)


def _plan(fields: "_Object", right_checksum: str) -> FiledPlan:
    found = fields.optional("format")
    if found != FORMAT:
        raise fields.refusal("format", f"{FORMAT!r}: not a reclaim plan")
    _refuse_other_versions(fields.number("version", 1, _LARGEST_INT), fields)
    if fields.text(_CHECKSUM) != right_checksum:
        raise fields.problem(f"damaged or edited: its {_CHECKSUM} does not match; {_MAKE_ANEW}")
    fields.optional("about")
    plan = FiledPlan(
        made_at=fields.time("madeAt"),
        made_by=fields.text("madeBy"),
        cluster_id=fields.text("clusterId", is_filled=True),
        broker=BrokerId(fields.number("broker", 0, _LARGEST_INT)),
        policy=_policy(fields.number("ceilingPercent", 0, 100), fields.member("brakes")),
        ceiling_from=CeilingFrom(fields.one_of("ceilingFrom", [each.value for each in CeilingFrom])),
        devices=tuple(_device(each) for each in fields.objects("devices")),
    )
    fields.no_more()
    _refuse_repeats(plan, fields)
    return plan


def _refuse_other_versions(version: int, fields: "_Object") -> None:
    if version > VERSION:
        raise fields.problem(f"plan version {version} needs a later Brimline; this one reads version {VERSION}")
    if version < VERSION:
        raise fields.problem(f"plan version {version} has no checksum (earlier Brimline); {_MAKE_ANEW}")


def _policy(ceiling_percent: int, fields: "_Object") -> ReclaimPolicy:
    policy = ReclaimPolicy(
        ceiling_percent=ceiling_percent,
        min_retention_ms=fields.size("minRetentionMs"),
        min_retention_bytes=fields.size("minRetentionBytes"),
        max_bytes_per_cycle=fields.size_or_none("maxBytesPerCycle"),
        protected_topics=fields.texts("protectedTopics"),
    )
    fields.no_more()
    return policy


def _device(fields: "_Object") -> FiledDevice:
    log_dirs = fields.texts("logDirs", "a list of absolute paths", begin="/")
    device = FiledDevice(
        device=fields.text("device", is_filled=True),
        log_dirs=log_dirs,
        total_bytes=fields.size("totalBytes"),
        used_bytes=fields.size("usedBytes"),
        going_bytes=fields.size("goingBytes"),
        excess_bytes=fields.size("excessBytes"),
        trims=tuple(_trim(each, log_dirs) for each in fields.objects("trims")),
    )
    fields.no_more()
    return device


def _trim(fields: "_Object", log_dirs: tuple[str, ...]) -> PlannedTrim:
    topic = fields.text("topic", is_filled=True)
    if not _TOPIC_NAME.fullmatch(topic):
        raise fields.refusal("topic", "a topic's name")
    log_dir = fields.one_of("logDir", log_dirs)
    log_start, target = fields.offset("logStart"), fields.offset("target")
    segments = SegmentRange(
        first=fields.offset("firstBaseOffset"),
        last=fields.offset("lastBaseOffset"),
        count=fields.number("segments", 1, _LARGEST_INT),
    )
    if not segments.first <= segments.last < target:
        raise fields.refusal("target", "above lastBaseOffset, and that not below firstBaseOffset")
    if segments.count > segments.last - segments.first + 1:
        raise fields.refusal("segments", "no more than there are offsets from firstBaseOffset to lastBaseOffset")
    if log_start >= target:
        raise fields.refusal("target", f"above logStart, which is {log_start}")
    trim = PlannedTrim(
        partition=TopicPartition(topic, fields.number("partition", 0, _LARGEST_INT)),
        topic_id=fields.topic_id("topicId"),
        log_dir=log_dir,
        log_start=log_start,
        target=target,
        segments=segments,
        allocated_bytes=fields.size("allocatedBytes"),
        oldest_ms=fields.milliseconds("oldestMs"),
        newest_ms=fields.milliseconds("newestMs"),
        reason=fields.text("reason"),
    )
    fields.no_more()
    return trim


def _refuse_repeats(plan: FiledPlan, fields: "_Object") -> None:
    seen: set[object] = set()
    for key in (*_log_dirs(plan), *(trim.partition for trim in plan.trims)):
        if key in seen:
            raise fields.refusal("devices", f"{key} is there twice; every log dir and partition may occur once")
        seen.add(key)


def _log_dirs(plan: FiledPlan) -> Iterator[str]:
    return (log_dir for device in plan.devices for log_dir in device.log_dirs)


class _Object:
    """An object of the document, and where it stands in it."""

    def __init__(self, document: object, where: str) -> None:
        self._where = where
        if not isinstance(document, dict):
            raise BadPlanFile(f"{where}: must be an object, is {_shown(document)}")
        self._document: dict[str, object] = document
        self._asked: set[str] = set()

    def problem(self, sentence: str) -> BadPlanFile:
        return BadPlanFile(f"{self._where}: {sentence}")

    def refusal(self, name: str, allowed: str) -> BadPlanFile:
        if name not in self._document:
            return BadPlanFile(f"{self._where}: {name} is missing; allowed: {allowed}")
        return BadPlanFile(f"{self._where}: {name} is {_shown(self._document[name])}; allowed: {allowed}")

    def no_more(self) -> None:
        unknown = sorted(self._document.keys() - self._asked)
        if unknown:
            raise BadPlanFile(f"{self._where}: there is no member {unknown[0]!r} in a plan of version {VERSION}")

    def optional(self, name: str) -> object:
        self._asked.add(name)
        return self._document.get(name)

    def number(self, name: str, low: int, high: int) -> int:
        value = self.optional(name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.refusal(name, f"a whole number from {low} to {high}")
        return value

    def size(self, name: str) -> Bytes:
        return Bytes(self.number(name, 0, _LARGEST_LONG))

    def size_or_none(self, name: str) -> Bytes | None:
        return None if self.optional(name) is None and name in self._document else self.size(name)

    def offset(self, name: str) -> Offset:
        return Offset(self.number(name, 0, _LARGEST_LONG))

    def milliseconds(self, name: str) -> int:
        found = self.size_or_none(name)
        return -1 if found is None else found

    def text(self, name: str, *, is_filled: bool = False) -> str:
        value = self.optional(name)
        if not isinstance(value, str) or (is_filled and not value):
            raise self.refusal(name, "a text" + (", not an empty one" if is_filled else ""))
        return value

    def one_of(self, name: str, choices: "list[str] | tuple[str, ...]") -> str:
        value = self.text(name)
        if value not in choices:
            raise self.refusal(name, ", ".join(choices) or "nothing: logDirs is empty")
        return value

    def texts(self, name: str, allowed: str = "a list of texts", begin: str = "") -> tuple[str, ...]:
        values = self._values(name)
        texts = tuple(value for value in values if isinstance(value, str) and value.startswith(begin))
        if len(texts) < len(values):
            raise self.refusal(name, allowed)
        return texts

    def member(self, name: str) -> "_Object":
        value = self.optional(name)
        if not isinstance(value, dict):
            raise self.refusal(name, "an object")
        return _Object(value, f"{self._where}: {name}")

    def objects(self, name: str) -> "list[_Object]":
        values = self._values(name)
        return [_Object(value, f"{self._where}: {name}[{number}]") for number, value in enumerate(values)]

    def time(self, name: str) -> datetime:
        try:
            moment = datetime.fromisoformat(self.text(name))
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise self.refusal(name, "a time with its zone, such as 2026-01-31T12:00:00Z")
        return moment

    def topic_id(self, name: str) -> UUID:
        text = self.text(name)
        try:
            if not _TOPIC_ID.fullmatch(text):
                raise ValueError(text)
            return UUID(bytes=urlsafe_b64decode(f"{text}=="))
        except (ValueError, NotBase64):
            raise self.refusal(name, "a topic's id, 22 letters as kafka-topics.sh --describe shows it") from None

    def _values(self, name: str) -> list[object]:
        value = self.optional(name)
        if not isinstance(value, list):
            raise self.refusal(name, "a list")
        return value


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value)
    return text if len(text) <= _A_FEW_WORDS else f"{text[: _A_FEW_WORDS - 3]}..."


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a member occurs twice in one object")
    return document


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number")
