"""``brimline topics`` for people: the largest topics with their limits and readers, and a sentence for each."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.text import Text

from brimline.cli.shared.columns import Column, column_lines
from brimline.cli.shared.glyphs import Glyphs, glyphs_for, printable, wrapped
from brimline.cli.shared.output import console_on, room_on
from brimline.cli.topics.report import TopicsReport
from brimline.model import Bytes, counted, human_bytes, human_count, human_percent, human_span, used_percent
from brimline.model.topic_use import Stays, TopicPlace, TopicSummary

_HEAD = 2
"""Lines above the first row: titles and a rule."""
_NARROWEST_PATH = 8
_CALM = (Stays.WITHIN_LIMITS, Stays.GOING)


def write_table(report: TopicsReport, out: TextIO, *, top: int | None, by_disk: bool) -> None:
    console = console_on(out)
    for line in lines(report, glyphs_for(out), room_on(console), top=top, by_disk=by_disk):
        console.print(line, soft_wrap=True)


def lines(report: TopicsReport, glyphs: Glyphs, room: int, *, top: int | None, by_disk: bool) -> Iterator[Text]:
    yield from _disk_lines(report, glyphs, room, top) if by_disk else _topic_lines(report, glyphs, room, top)
    yield from _sum_lines(report, glyphs, room)


def _topic_lines(report: TopicsReport, glyphs: Glyphs, room: int, top: int | None) -> Iterator[Text]:
    shown = report.topics[:top]
    if not shown:
        return
    drawn = list(column_lines(_columns(report, shown), glyphs, room))
    yield from drawn[:_HEAD]
    for topic, line in zip(shown, drawn[_HEAD:], strict=False):
        yield line
        for part in wrapped("      ", topic.why, room):
            yield Text(part, "dim" if topic.stays in _CALM else "yellow")
    yield from drawn[_HEAD + len(shown) :]
    yield from _left_out(report, shown, glyphs)


def _columns(report: TopicsReport, shown: Sequence[TopicSummary]) -> list[Column]:
    now_ms = report.observed_at.timestamp() * 1000
    columns = [
        Column("Topic", [printable(topic.name) for topic in shown], is_name=True),
        Column("Size", [human_bytes(topic.bytes) for topic in shown]),
        *_one_copy(shown),
        Column("Written/h", [human_bytes(topic.written_bytes) for topic in shown]),
    ]
    if report.include_remote_info:
        columns.append(Column("Remote", [human_bytes(topic.remote_bytes) for topic in shown]))
        columns.append(Column("Only local", [human_bytes(topic.only_local_bytes) for topic in shown], is_spare=True))
    return [
        *columns,
        Column("Retention", [topic.use.retention("*") for topic in shown]),
        Column("Oldest", [_age(topic.oldest_ms, now_ms) for topic in shown], is_spare=True),
        Column("Readers", [_readers(topic) for topic in shown], is_spare=True),
        Column(
            "Behind", [human_count(each.groups[0].records) if each.groups else "-" for each in shown], is_spare=True
        ),
    ]


def _one_copy(shown: Sequence[TopicSummary]) -> list[Column]:
    """Where there is but one copy of everything, it says nothing more than the size."""
    if all(topic.one_copy_bytes == topic.bytes for topic in shown):
        return []
    return [Column("One copy", [human_bytes(topic.one_copy_bytes) for topic in shown])]


def _age(oldest_ms: int | None, now_ms: float) -> str:
    return "-" if oldest_ms is None else human_span(max(now_ms - oldest_ms, 0) / 1000)


def _readers(topic: TopicSummary) -> str:
    if topic.groups:
        return counted(len(topic.groups), "group")
    return "none" if topic.is_unread else "-"


def _disk_lines(report: TopicsReport, glyphs: Glyphs, room: int, top: int | None) -> Iterator[Text]:
    """A part for each log dir, with what the topics in it take of its volume."""
    for answer in sorted(report.brokers.values(), key=lambda each: each.broker):
        for path, log_dir in sorted(answer.log_dirs.items()):
            there = [
                (topic, place)
                for topic in report.topics
                for place in topic.places
                if (place.broker, place.log_dir) == (answer.broker, path)
            ]
            there.sort(key=lambda pair: -pair[1].bytes)
            used = ""
            if log_dir.total_bytes is not None and log_dir.usable_bytes is not None:
                percent = human_percent(used_percent(log_dir.total_bytes, log_dir.usable_bytes))
                used = f"  {percent} of {human_bytes(log_dir.total_bytes)} used"
            head = f"Broker {answer.broker}  "
            place = glyphs.without_beginning(printable(path), max(room - len(head) - len(used), _NARROWEST_PATH))
            yield Text(f"{head}{place}{used}", "bold")
            if there:
                yield from column_lines(_place_columns(there[:top], log_dir.total_bytes), glyphs, room)
            yield Text()


def _place_columns(there: Sequence[tuple[TopicSummary, TopicPlace]], total: Bytes | None) -> list[Column]:
    shares = [human_percent(place.bytes * 100 / total) if total else "-" for _, place in there]
    return [
        Column("Topic", [printable(topic.name) for topic, _ in there], is_name=True),
        Column("Here", [human_bytes(place.bytes) for _, place in there]),
        Column("Of volume", shares),
        Column("Replicas", [human_count(place.replicas) for _, place in there]),
        Column("Retention", [topic.use.retention("*") for topic, _ in there], is_spare=True),
        Column("Stays for", [topic.stays.label.replace("-", " ") for topic, _ in there], is_left=True, is_spare=True),
    ]


def _left_out(report: TopicsReport, shown: Sequence[TopicSummary], glyphs: Glyphs) -> Iterator[Text]:
    hidden = report.topics[len(shown) :]
    if hidden:
        size = human_bytes(Bytes(sum(topic.bytes for topic in hidden)))
        yield Text(f"{glyphs.ellipsis} and {human_count(len(hidden))} more ({size}): --all shows them", "dim")
    yield Text()


def _sum_lines(report: TopicsReport, glyphs: Glyphs, room: int) -> Iterator[Text]:
    kind = "topic without readers" if report.only_unread else "topic"
    plural = "topics without readers" if report.only_unread else "topics"
    size = human_bytes(Bytes(sum(topic.bytes for topic in report.topics)))
    one = human_bytes(Bytes(sum(topic.one_copy_bytes for topic in report.topics)))
    unread = [topic for topic in report.topics if topic.is_unread]
    sizes = [size] if one == size else [f"{size} with all replicas", f"{one} without"]
    parts = [counted(len(report.topics), kind, plural), *sizes]
    if unread and not report.only_unread:
        parts.append(f"{human_count(len(unread))} without readers: --unread")
    yield from (Text(line, "bold") for line in wrapped("", f" {glyphs.dot} ".join(parts), room))
    for unknown in report.groups.unknown:
        for line in wrapped("", f"unknown: {unknown.what}: {unknown.failure.message}", room):
            yield Text(line, "yellow")
