"""A document as an entry: the other direction of ``act.ledger.writing``, trusting nothing that it reads."""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from uuid import UUID

from brimline.act.ledger.entries import (
    Answered,
    AnsweredTrim,
    BallastAct,
    BallastEntry,
    CameBack,
    CordonAct,
    CordonEntry,
    CycleEnded,
    CycleId,
    Entry,
    FreedTrim,
    GivenUp,
    GivenUpAct,
    GivenUpTrim,
    PassedOver,
    Paused,
    Plan,
    PlannedTrim,
    Requested,
    RequestedTrim,
    Resumed,
    SegmentRange,
    ShedAct,
    ShedEntry,
    TrimNumber,
)
from brimline.act.ledger.writing import (
    ANSWER_COLUMNS,
    FREED_COLUMNS,
    GIVEN_UP_COLUMNS,
    REQUEST_COLUMNS,
    TRIM_COLUMNS,
)
from brimline.model import BrokerId, Bytes, Offset, TopicPartition


def entry_of(fields: "Fields") -> Entry:
    """Raises ``ValueError``, ``KeyError`` or ``IndexError`` for what is not an entry of this version."""
    return _READERS[fields.text("kind")](fields)


class Fields:
    """A document's members, each of the type that is asked for, or ``ValueError``."""

    def __init__(self, document: object) -> None:
        if not isinstance(document, dict):
            raise ValueError("not an object")
        self._document: Mapping[str, object] = document

    def number(self, name: str) -> int:
        return _number(self._document[name])

    def text(self, name: str) -> str:
        return _text(self._document[name])

    def flag(self, name: str) -> bool:
        return self._document[name] is True

    def values(self, name: str) -> list[object]:
        return _values(self._document[name])

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(_text(value) for value in self.values(name))

    def members(self, name: str) -> dict[str, object]:
        """None, where an older version has not written it."""
        return _members(self._document.get(name, {}))

    def rows(self, columns: tuple[str, ...]) -> list[list[object]]:
        if self.texts("columns") != columns:
            raise ValueError("other columns")
        return [_values(row) for row in self.values("trims")]

    @property
    def cycle(self) -> CycleId:
        return CycleId(self.text("cycle"))


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def _values(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return value


def _members(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not an object")
    return value


def _plan(fields: Fields) -> Plan:
    topics = [_topic(_values(row)) for row in fields.values("topics")]
    log_dirs, reasons = fields.texts("logDirs"), fields.texts("reasons")
    return Plan(
        cycle=fields.cycle,
        device=fields.text("device"),
        log_dirs=log_dirs,
        total_bytes=Bytes(fields.number("totalBytes")),
        used_bytes=Bytes(fields.number("usedBytes")),
        ceiling_percent=fields.number("ceilingPercent"),
        excess_bytes=Bytes(fields.number("excessBytes")),
        going_bytes=Bytes(fields.number("goingBytes")),
        by=fields.text("by"),
        trims=tuple(
            _planned_trim([_number(value) for value in row], topics, log_dirs, reasons)
            for row in fields.rows(TRIM_COLUMNS)
        ),
        passed_over=tuple(
            PassedOver(partition=TopicPartition(topic, _number(partition)), why=why)
            for why, topics_of_it in fields.members("passedOver").items()
            for topic, partitions in _members(topics_of_it).items()
            for partition in _values(partitions)
        ),
    )


def _topic(row: list[object]) -> tuple[str, UUID | None]:
    name, topic_id = row
    return _text(name), None if topic_id is None else UUID(bytes=urlsafe_b64decode(_text(topic_id) + "=="))


def _planned_trim(
    row: list[int], topics: list[tuple[str, UUID | None]], log_dirs: tuple[str, ...], reasons: tuple[str, ...]
) -> PlannedTrim:
    topic, partition, log_dir, log_start, target, first, last, count, allocated, oldest, newest, reason = row
    name, topic_id = topics[topic]
    return PlannedTrim(
        partition=TopicPartition(name, partition),
        topic_id=topic_id,
        log_dir=log_dirs[log_dir],
        log_start=Offset(log_start),
        target=Offset(target),
        segments=SegmentRange(first=Offset(first), last=Offset(last), count=count),
        allocated_bytes=Bytes(allocated),
        oldest_ms=oldest,
        newest_ms=newest,
        reason=reasons[reason],
    )


def _request(fields: Fields) -> Requested:
    rows = [[_number(value) for value in row] for row in fields.rows(REQUEST_COLUMNS)]
    return Requested(
        cycle=fields.cycle,
        trims=tuple(
            RequestedTrim(
                number=TrimNumber(number),
                leader=BrokerId(leader),
                log_start=Offset(log_start),
                present_bytes=Bytes(present),
            )
            for number, leader, log_start, present in rows
        ),
    )


def _answer(fields: Fields) -> Answered:
    return Answered(
        cycle=fields.cycle,
        trims=tuple(
            AnsweredTrim(
                number=TrimNumber(_number(number)),
                low_watermark=None if low_watermark is None else Offset(_number(low_watermark)),
                error=None if error is None else _text(error),
            )
            for number, low_watermark, error in fields.rows(ANSWER_COLUMNS)
        ),
    )


def _came_back(fields: Fields) -> CameBack:
    return CameBack(
        cycle=fields.cycle,
        trims=tuple(
            FreedTrim(number=TrimNumber(_number(number)), freed_bytes=Bytes(_number(freed)))
            for number, freed in fields.rows(FREED_COLUMNS)
        ),
    )


def _given_up(fields: Fields) -> GivenUp:
    return GivenUp(
        act=GivenUpAct(fields.text("kind")),
        cycle=fields.cycle,
        trims=tuple(
            GivenUpTrim(number=TrimNumber(_number(number)), why=_text(why), freed_bytes=Bytes(_number(freed)))
            for number, why, freed in fields.rows(GIVEN_UP_COLUMNS)
        ),
    )


def _ended(fields: Fields) -> CycleEnded:
    return CycleEnded(
        cycle=fields.cycle,
        done=fields.number("done"),
        abandoned=fields.number("abandoned"),
        freed_bytes=Bytes(fields.number("freedBytes")),
    )


def _ballast(fields: Fields) -> BallastEntry:
    return BallastEntry(
        act=BallastAct(fields.text("kind")),
        path=fields.text("path"),
        device=fields.text("device"),
        size=Bytes(fields.number("size")),
        usable_bytes=Bytes(fields.number("usableBytes")),
        why=fields.text("why"),
        was_late=fields.flag("late"),
    )


def _cordon(fields: Fields) -> CordonEntry:
    return CordonEntry(act=CordonAct(fields.text("kind")), log_dir=fields.text("logDir"), why=fields.text("why"))


def _shed(fields: Fields) -> ShedEntry:
    return ShedEntry(
        act=ShedAct(fields.text("kind")),
        partition=TopicPartition(fields.text("topic"), fields.number("partition")),
        follower=BrokerId(fields.number("follower")),
        log_dir=fields.text("logDir"),
        before=tuple(BrokerId(_number(value)) for value in fields.values("before")),
        size=Bytes(fields.number("size")),
        why=fields.text("why"),
    )


def _paused(fields: Fields) -> Paused:
    return Paused(by=fields.text("by"), reason=fields.text("reason"))


def _resumed(fields: Fields) -> Resumed:
    return Resumed(by=fields.text("by"), reason=fields.text("reason"))


_READERS: Mapping[str, Callable[[Fields], Entry]] = {
    "plan": _plan,
    "request": _request,
    "answer": _answer,
    "came-back": _came_back,
    "ended": _ended,
    "paused": _paused,
    "resumed": _resumed,
    **{act.value: _given_up for act in GivenUpAct},
    **{act.value: _ballast for act in BallastAct},
    **{act.value: _cordon for act in CordonAct},
    **{act.value: _shed for act in ShedAct},
}
