"""A cycle by hand for people: the disks now and after, what would go, how old it is, who would miss it, what stays.

A terminal's width is kept from 60 columns on: names give way, sentences go on below themselves. No number is ever cut.
Without a terminal there is no width to keep and no colour.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TextIO

from rich.console import Console
from rich.text import Text

from brimline.act.plan_file import CeilingFrom
from brimline.cli.log_dirs.table import level_style
from brimline.cli.shared.columns import Column, column_lines
from brimline.cli.shared.glyphs import Glyphs, glyphs_for, printable
from brimline.cli.shared.output import console_on, print_hanging, room_on
from brimline.decide.reclaim.floor import ALWAYS_NAMED
from brimline.decide.reclaim.summary import RESET_SENTENCE, UNSEEN_SENTENCE, AgeSpan, together
from brimline.guard.reclaim.preview import DevicePreview, Preview
from brimline.guard.reclaim.recheck import LeftOut
from brimline.model import counted, human_bytes, human_count, human_percent, human_span, used_percent
from brimline.model.blast_radius import BlastRadius, GroupActivity
from brimline.model.reclaim import CEILING_OFF
from brimline.model.reclaim_plan import GOING, DeviceOutcome, Going, ReclaimReason

_WIDEST_BAR, _NARROWEST_BAR = 24, 8
_BESIDE_THE_BAR = 56
_BEHIND_THE_BAR = 11
"""The percentage, and the gaps around it."""
_INDENT = 2
_LABEL = 10
_SHOWN = 20
"""Of topics, of groups and of what is left out; the other outputs have them all."""
_MOST_SPANS = 16
_NAMED_CURES = 3
_NAMED_TOPICS = 3
_AT_MOST = "Records are counted by offsets: an upper bound."
_ACTIVITY_STYLES = {GroupActivity.ACTIVE: "bold red", GroupActivity.EMPTY: "yellow", GroupActivity.UNKNOWN: "dim"}
_IDLE = {
    DeviceOutcome.NO_CEILING: (
        "no ceiling (log.retention.disk.usage.percent is 100): --ceiling 80 shows what one would do"
    ),
    DeviceOutcome.UNDER_CEILING: "below its ceiling: nothing to delete",
    DeviceOutcome.GOING_SUFFICES: "above its ceiling, but deletions in progress cover it",
}


def write_reclaim_table(shown: Preview, out: TextIO, *, is_dry: bool = True) -> None:
    console = console_on(out)
    glyphs = glyphs_for(out)
    _Table(console, glyphs, room_on(console), shown, is_dry=is_dry).write()


class _Table:
    def __init__(self, console: Console, glyphs: Glyphs, room: int, shown: Preview, *, is_dry: bool) -> None:
        self._console = console
        self._glyphs = glyphs
        self._room = room
        self._bar_width = min(max(room - _BESIDE_THE_BAR, _NARROWEST_BAR), _WIDEST_BAR)
        self._shown = shown
        self._is_dry = is_dry

    def write(self) -> None:
        self._head()
        self._differences()
        for device in self._shown.devices:
            self._disk(device)
        if self._shown.trims:
            self._topics()
            self._ages()
            self._groups(self._shown.radius)
        self._left_out(self._shown.left_out)
        for device in self._shown.devices:
            self._rest(device)
        if self._is_dry and self._shown.trims:
            self._hang(
                0,
                Text(
                    f"Nothing was changed. {self._apply()} deletes this after asking; --output json keeps it as a plan."
                ),
            )

    # Parts ------------------------------------------------------------------------------------------------------------

    def _head(self) -> None:
        shown = self._shown
        verdict = ("nothing to delete", "bold green")
        if shown.trims:
            topics = counted(len(shown.radius.topics), "topic")
            would = "would be deleted" if self._is_dry else "will be deleted"
            what = (
                f"{human_bytes(shown.trimmed_bytes)} {would}: {counted(shown.trimmed_segments, 'segment')} of {topics}"
            )
            verdict = (what, "bold red")
        elif not all(device.is_held for device in shown.devices):
            verdict = ("nothing is removable", "bold red")
        self._print(Text.assemble((f"Broker {shown.filed.broker}", "bold"), "  ", verdict))
        dot = f" {self._glyphs.dot} "
        parts = [f"{shown.filed.made_at:%Y-%m-%d %H:%M:%S} UTC", self._ceiling(), *self._brakes()]
        if self._is_dry:
            parts.insert(0, "dry run")
        self._hang(_INDENT, Text(f"  {dot.join(parts)}", "dim"))
        for sentence in shown.brakes:
            self._hang(_INDENT, Text(f"  {printable(sentence)}", "yellow"))
        self._print(Text())

    def _apply(self) -> str:
        """A plan's own ceiling must be repeated."""
        by_plan = [each.in_plan for each in self._shown.differs if each.plan_counts]
        return " --ceiling ".join(["--apply", *by_plan])

    def _differences(self) -> None:
        differs = self._shown.differs
        if not differs:
            return
        self._print(Text("Where plan and properties differ", "bold"))
        self._columns(
            Column("Key", [each.key for each in differs], is_name=True),
            Column("Plan", [printable(each.in_plan) for each in differs]),
            Column("Properties", [printable(each.in_file) for each in differs]),
            Column("Counts", [each.counts for each in differs], is_left=True),
        )
        self._print(Text())

    def _ceiling(self) -> str:
        ceiling = self._shown.policy.ceiling_percent
        if ceiling >= CEILING_OFF:
            return "no ceiling"
        if self._shown.filed.ceiling_from is CeilingFrom.PROPERTIES:
            return f"ceiling {ceiling} %"
        own = self._shown.own_ceiling_percent
        return f"ceiling {ceiling} % by hand (the file has {'none' if own >= CEILING_OFF else f'{own} %'})"

    def _brakes(self) -> Iterator[str]:
        policy = self._shown.policy
        if policy.min_retention_ms:
            yield f"newest {human_span(policy.min_retention_ms / 1000)} kept"
        if policy.min_retention_bytes:
            yield f"newest {human_bytes(policy.min_retention_bytes)} of a partition kept"
        if policy.max_bytes_per_cycle is not None:
            yield f"at most {human_bytes(policy.max_bytes_per_cycle)} a cycle"
        if policy.max_percent_per_cycle is not None:
            yield f"at most {policy.max_percent_per_cycle} % of a disk a cycle"
        if policy.protected_topics:
            yield f"protected: {', '.join(policy.protected_topics)}"

    def _disk(self, device: DevicePreview) -> None:
        paths = printable(", ".join(device.log_dirs))
        name = f"Disk {device.device}  "
        self._hang(len(name), Text.assemble((name, "bold"), paths))
        facts, planned = device.facts, device.planned
        if facts.total_bytes is None or facts.used_bytes is None:
            self._hang(_LABEL + 2, Text(f"  {self._glyphs.cross} use unknown", "magenta"))
            self._print(Text())
            return
        used = f"{human_bytes(facts.used_bytes)} used of {human_bytes(facts.total_bytes)}"
        self._bar("now", facts.used_bytes, device, used)
        if planned.going.total:
            self._bar("going", device.used_after_going, device, _going_words(planned.going))
        if device.trims:
            freed = f"{human_bytes(device.trimmed_bytes)} by this plan: {counted(device.trimmed_segments, 'segment')}"
            self._bar("after", device.used_after, device, freed)
        self._verdict(device)
        self._print(Text())

    def _bar(self, label: str, used: int | None, device: DevicePreview, words: str) -> None:
        total, limit = device.facts.total_bytes, device.facts.limit_bytes
        assert total is not None
        assert used is not None
        percent = used_percent(total, total - used)
        full, rest = self._glyphs.bar(percent / 100, self._bar_width)
        style = level_style(percent) if limit is None else "red" if used > limit else "green"
        line = Text.assemble(
            f"  {label:<{_LABEL - 2}}",
            (full, style),
            (rest, "dim"),
            "  ",
            (f"{human_percent(percent):>7}", f"bold {style}"),
            f"  {words}",
        )
        self._hang(_LABEL + self._bar_width + _BEHIND_THE_BAR, line)

    def _verdict(self, device: DevicePreview) -> None:
        planned = device.planned
        if planned.outcome in _IDLE:
            self._say(_IDLE[planned.outcome], "green" if device.is_held else "yellow")
        elif planned.outcome is DeviceOutcome.CYCLE_LIMIT:
            left = human_bytes(planned.missing_bytes)
            self._say(
                f"the limit per cycle ends the plan here (brimline.reclaim.max.percent.per.cycle, "
                f"brimline.reclaim.max.bytes.per.cycle): {left} over the ceiling are left to later cycles",
                "yellow",
            )
        elif planned.outcome is DeviceOutcome.NO_CURE:
            self._say(
                f"{self._glyphs.cross} what is not Kafka's is above its ceiling of "
                f"{device.facts.policy.ceiling_percent} %: only enough is deleted to stay below its fence",
                "red",
            )
        elif planned.outcome is DeviceOutcome.BRAKES_YIELD:
            self._say(
                f"{self._glyphs.cross} down to its last reserve and nothing refuses writes: minimum retention and "
                "the limit of a cycle are overridden",
                "red",
            )
        elif not device.is_held:
            self._say(f"{self._glyphs.cross} stays above its ceiling of {device.facts.policy.ceiling_percent} %", "red")

    def _topics(self) -> None:
        topics = self._shown.radius.topics
        now = self._shown.filed.made_at.timestamp()
        some = topics[:_SHOWN]
        self._print(Text("What would be deleted" if self._is_dry else "What will be deleted", "bold"))
        self._columns(
            Column("Topic", [printable(topic.topic) for topic in some], is_name=True),
            Column("Partitions", [human_count(topic.partitions) for topic in some], is_spare=True),
            Column("Segments", [human_count(topic.segments) for topic in some]),
            Column("Size", [human_bytes(topic.bytes) for topic in some]),
            Column("Records", [human_count(topic.records) for topic in some]),
            Column("Oldest", [_age(now, topic.oldest_ms) for topic in some]),
            Column("Newest", [_age(now, topic.newest_ms) for topic in some]),
            Column("Groups", [human_count(topic.groups) for topic in some], is_spare=True),
        )
        self._more(len(topics), "topics")
        self._say(_AT_MOST, "dim")
        self._print(Text())

    def _ages(self) -> None:
        spans = together([device.ages for device in self._shown.devices]).fitting_spans(_MOST_SPANS)
        largest = max(span.bytes for span in spans)
        labels = [_span_label(span) for span in spans]
        sizes = [human_bytes(span.bytes) for span in spans]
        counts = [counted(span.segments, "segment") for span in spans]
        self._print(Text("By age", "bold"))
        for label, size, count, span in zip(labels, sizes, counts, spans, strict=True):
            bar, _ = self._glyphs.bar(span.bytes / largest if largest else 0.0, self._bar_width)
            self._print(
                Text.assemble(
                    f"  {label:>{max(map(len, labels))}}  {size:>{max(map(len, sizes))}}  "
                    f"{count:>{max(map(len, counts))}}  ",
                    (bar, "cyan"),
                )
            )
        self._print(Text())

    def _groups(self, radius: BlastRadius) -> None:
        self._print(Text("Consumer groups that would lose records", "bold"))
        if radius.groups:
            some = radius.groups[:_SHOWN]
            self._columns(
                Column("Group", [printable(group.group) for group in some], is_name=True),
                Column(
                    "State",
                    [group.activity.value for group in some],
                    is_left=True,
                    styles=[_ACTIVITY_STYLES[group.activity] for group in some],
                ),
                Column("Partitions", [human_count(len(group.partitions)) for group in some], is_spare=True),
                Column("Records", [human_count(group.records) for group in some]),
                Column("Reset anyway", [human_count(group.below_already) for group in some], is_spare=True),
                Column("Topics", [printable(_some_of(group.topics)) for group in some], is_name=True, is_spare=True),
            )
            self._more(len(radius.groups), "groups")
            self._say(RESET_SENTENCE)
        else:
            asked = counted(radius.asked_groups, "consumer group")
            self._say(f"none of {asked} has an offset in what would be deleted", "green" if not radius.unknown else "")
        for unknown in radius.unknown:
            sentence = f"{self._glyphs.cross} unknown: {unknown.what}: {unknown.failure.message}"
            self._say(sentence, "yellow")
        self._say(UNSEEN_SENTENCE, "dim")
        self._print(Text())

    def _left_out(self, left_out: Sequence[LeftOut]) -> None:
        if not left_out:
            return
        self._print(Text("No longer true of the plan", "bold"))
        for each in left_out[:_SHOWN]:
            what = "left out" if each.down_to is None else f"cut down from {each.trim.target} to {each.down_to}"
            self._say(f"{self._glyphs.cross} {each.trim.partition}: {what}: {each.why}", "yellow")
        self._more(len(left_out), "partitions")
        self._print(Text())

    def _rest(self, device: DevicePreview) -> None:
        rest = [each for each in device.sums if each.reason is not ReclaimReason.TAKEN]
        if not rest:
            return
        where = f" on {printable(', '.join(device.log_dirs))}" if len(self._shown.devices) > 1 else ""
        self._print(Text(f"Why the rest stays{where}", "bold"))
        sizes = [human_bytes(each.bytes) for each in rest]
        counts = [counted(each.segments, "segment") for each in rest]
        before = 2 + max(map(len, sizes)) + 2 + max(map(len, counts)) + 2
        for each, size, count in zip(rest, sizes, counts, strict=True):
            line = f"  {size:>{max(map(len, sizes))}}  {count:>{max(map(len, counts))}}  {each.reason.sentence}"
            self._hang(before, Text(line, "dim" if each.reason in GOING else ""))
        if device.planned.local_retention_bytes:
            freed = human_bytes(device.planned.local_retention_bytes)
            self._say(
                f"Lowering local.retention.ms or local.retention.bytes of tiered topics would free up to {freed}."
            )
        for part in device.floor.parts if device.floor is not None else ():
            if part.kind in ALWAYS_NAMED:
                self._say(f"Never trimmed, {part.kind.value}: {_some_of([share.topic for share in part.topics])}.")
        if device.floor is not None:
            floor = replace(device.floor, device="this disk")
            self._say(f"{floor.sentence}.", "red" if floor.is_impossible else "dim")
            if device.floor.is_impossible:
                for part in device.floor.parts[:_NAMED_CURES]:
                    topics = f" ({', '.join(share.topic for share in part.topics)})" if part.topics else ""
                    self._hang(2 * _INDENT, Text(printable(f"    {part.kind.value}{topics}: {part.kind.cure}")))
        self._print(Text())

    # Lines ------------------------------------------------------------------------------------------------------------

    def _columns(self, *columns: Column) -> None:
        for line in column_lines(columns, self._glyphs, self._room):
            self._print(line)

    def _more(self, number: int, noun: str) -> None:
        if number > _SHOWN:
            self._print(
                Text(f"  {self._glyphs.ellipsis} and {human_count(number - _SHOWN)} more {noun}: --output json", "dim")
            )

    def _say(self, sentence: str, style: str = "") -> None:
        self._hang(_INDENT, Text(f"  {printable(sentence)}", style))

    def _hang(self, indent: int, line: Text) -> None:
        print_hanging(self._console, line, indent)

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True)


def _going_words(going: Going) -> str:
    parts = [
        (going.log_start, "below log starts"),
        (going.retention_bytes, "beyond retention.bytes"),
        (going.retention_ms, "older than retention.ms"),
        (going.deleted_files, "in .deleted files"),
        (going.delete_folders, "of deleted replicas"),
    ]
    named = ", ".join(f"{human_bytes(size)} {what}" for size, what in parts if size)
    return f"{human_bytes(going.total)} already being deleted: {named}"


def _some_of(names: Sequence[str]) -> str:
    more = f" and {human_count(len(names) - _NAMED_TOPICS)} more" if len(names) > _NAMED_TOPICS else ""
    return ", ".join(names[:_NAMED_TOPICS]) + more


def _age(now: float, milliseconds: int) -> str:
    return "-" if milliseconds < 0 else human_span(max(now - milliseconds / 1000, 0.0))


def _span_label(span: AgeSpan) -> str:
    minutes = span.from_ms // 60_000
    for size, unit in ((1440, "days"), (60, "h")):
        if not (span.to_ms - span.from_ms) // 60_000 % size:
            return f"{minutes // size} to {span.to_ms // 60_000 // size} {unit}"
    return f"{minutes} to {span.to_ms // 60_000} min"
