"""One disk: its use over time, its topics, and what another ceiling would delete. A look, and a command to copy."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from shlex import quote
from urllib.parse import parse_qsl

from brimline.decide.reclaim.dry_run import DryRun
from brimline.decide.reclaim.summary import RESET_SENTENCE
from brimline.documents.history import Timeline
from brimline.model import counted, human_bytes, human_count, human_percent, human_span
from brimline.model.blast_radius import BlastRadius, GroupLoss, TopicLoss
from brimline.model.topic_use import TopicPlace, TopicSummary
from brimline.pages.chart import UseChart
from brimline.pages.html import Child, Html, fragment, page, tag
from brimline.pages.parts import (
    BAD,
    GOOD,
    NAMED,
    NUMBER,
    ODD,
    WARN,
    Bar,
    command_to_copy,
    live,
    marks_key,
    moment,
    table,
    timeline,
    word,
)
from brimline.pages.volumes_page import ShownVolume

LOWEST_CEILING, HIGHEST_CEILING = 1, 99
DEFAULT_CEILING = 80
_MOST_FIELDS = 20
_MOST_TOPICS = 20
_EVENTS = 50
_PLAN = "plan"
_HOUR_MS = 3_600_000
_KERNELS_NAME = re.compile(r"\d+:\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskQuery:
    """What is asked for. ``only_plan``: the dry run alone, for the slider."""

    cluster: str
    broker: str
    device: str
    ceiling: int | None
    only_plan: bool

    @classmethod
    def of(cls, query: str) -> "DiskQuery":
        """Raises ``ValueError`` for a ceiling that is none."""
        fields = dict(parse_qsl(query, max_num_fields=_MOST_FIELDS))
        ceiling = int(fields["ceiling"]) if fields.get("ceiling") else None
        if ceiling is not None and not LOWEST_CEILING <= ceiling <= HIGHEST_CEILING:
            raise ValueError(f"a ceiling is from {LOWEST_CEILING} to {HIGHEST_CEILING}")
        return cls(
            cluster=fields.get("cluster", ""),
            broker=fields.get("broker", ""),
            device=fields.get("device", ""),
            ceiling=ceiling,
            only_plan=fields.get("part") == _PLAN,
        )

    def ceiling_for(self, own: float | None) -> int:
        """``own``: the disk's, where it has one."""
        if self.ceiling is not None:
            return self.ceiling
        return DEFAULT_CEILING if own is None else min(max(round(own), LOWEST_CEILING), HIGHEST_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOnDisk:
    """``None`` and empty are not known, or not seen from here. ``why`` it does not shrink."""

    topic: str
    replicas: int
    bytes: int
    growth_bytes_per_hour: float | None = None
    retention: str = ""
    oldest: datetime | None = None
    readers: str = ""
    why: str = ""

    @classmethod
    def of(cls, summary: TopicSummary, place: TopicPlace, growth: float | None) -> "TopicOnDisk":
        behind = f", {human_count(summary.groups[0].records)} behind" if summary.groups else ""
        readers = f"{counted(len(summary.groups), 'group')}{behind}" if summary.groups else "none"
        return cls(
            topic=summary.name,
            replicas=place.replicas,
            bytes=place.bytes,
            growth_bytes_per_hour=growth,
            retention=summary.use.retention(),
            oldest=None if summary.oldest_ms is None else datetime.fromtimestamp(summary.oldest_ms / 1000, UTC),
            readers=readers if summary.groups or summary.is_unread else "-",
            why=summary.why,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSeen:
    """``dry_run`` is a sentence where none can be made. ``config``: the properties file for the command to copy."""

    row: ShownVolume
    ceiling: int
    dry_run: DryRun | str
    chart: UseChart | None = None
    topics: Sequence[TopicOnDisk] = ()
    topics_from: str = ""
    """Where they are from, if there is something to say about it."""
    config: str = "/etc/kafka/server.properties"
    history: Timeline | None = None


def disk_answer(seen: DiskSeen, query: DiskQuery) -> bytes:
    return fragment(_plan(seen)) if query.only_plan else disk_page(seen)


def disk_page(seen: DiskSeen) -> bytes:
    row = seen.row
    title = f"Broker {row.broker}: {', '.join(row.log_dirs) or row.device}"
    where = f"{f'Cluster {row.cluster}, ' if row.cluster else ''}device {row.device}"
    return page(
        f"{title} - Brimline",
        tag(
            "header",
            tag("nav", tag("a", "All disks", href="./"), aria_label="Back"),
            tag("h1", title),
            tag("p", word(row.state.upper(), row.kind), f" {row.why}", class_="lead"),
            tag("p", where, class_="muted"),
        ),
        tag("main", _sections(seen), id="content"),
        tag("footer", "Read-only: this page changes nothing."),
    )


def _sections(seen: DiskSeen) -> Iterator[Html]:
    row = seen.row
    yield Bar(used=row.used_percent, kind=row.kind, ceiling=row.ceiling, fence=row.fence).drawn()
    if row.used_percent is not None:
        sizes = f"{human_bytes(row.usable_bytes)} usable of {human_bytes(row.total_bytes)}"
        yield tag("p", tag("strong", f"{human_percent(row.used_percent)} used"), f", {sizes}")
    yield marks_key([row.is_observed])
    yield tag("h2", "Topics on this disk")
    yield from _topics(seen)
    yield tag("h2", "What another ceiling would delete")
    yield _form(seen)
    yield from live(_plan(seen))
    yield tag("h2", "Use over time")
    if seen.chart is None:
        yield tag("p", "No readings of this disk yet.", class_="muted")
    else:
        yield seen.chart.drawn()
        band = " The band shows the forecast's past errors." if seen.chart.has_band else ""
        yield tag("p", f"{seen.chart.label}.{band}", class_="muted")
    if seen.history is not None:
        yield tag("h2", "What happened on this broker")
        yield timeline(seen.history, _EVENTS)


def _form(seen: DiskSeen) -> Html:
    """The script shows the slider and hides the button; without it the field and the button do."""
    row = seen.row
    known = (("cluster", row.cluster), ("broker", row.broker), ("device", row.device))
    limits = {"min": LOWEST_CEILING, "max": HIGHEST_CEILING, "value": seen.ceiling}
    return tag(
        "form",
        (tag("input", type="hidden", name=name, value=value) for name, value in known if value not in ("", None)),
        tag("label", "Move the ceiling", tag("input", type="range", **limits), hidden=True, class_="slider"),
        tag("label", "Ceiling, % of the disk", tag("input", type="number", name="ceiling", required=True, **limits)),
        tag("button", "Show what would be deleted", type="submit"),
        method="get",
        action="disk",
        data_live=True,
    )


def _plan(seen: DiskSeen) -> Iterator[Html]:
    run, row = seen.dry_run, seen.row
    if isinstance(run, str) or run.percent_after is None:
        why = run if isinstance(run, str) else "disk use unknown: it could not be read"
        yield tag("p", word("UNKNOWN", ODD), f" {why}", class_="lead")
        return
    yield from _verdict(run, row)
    if run.loss.topics:
        yield from _losers(run)
        yield table(
            "Would be deleted, by topic, largest first", _TOPIC_TITLES, map(_topic_loss, run.loss.topics), "stack"
        )
        yield table("Would be deleted, by age of the newest record", _AGE_TITLES, _spans(run), "stack")
    if run.stays and not run.is_held:
        titles = (("Because", "what"), ("Bytes", NUMBER), ("Segments", NUMBER))
        rows = ((each.reason.sentence, human_bytes(each.bytes), human_count(each.segments)) for each in run.stays)
        yield table("Why the rest stays", titles, rows, "stack")
    yield tag(
        "p", "Run on the broker's host. It is a dry run and deletes nothing without ", tag("code", "--apply"), ":"
    )
    yield command_to_copy(f"brimline reclaim --config {quote(seen.config)} --ceiling {run.ceiling} {_which(row)}")


def _which(row: ShownVolume) -> str:
    """As the command takes it: what looked from afar may know the device by another name than the kernel's."""
    if _KERNELS_NAME.fullmatch(row.device) or not row.log_dirs:
        return f"--device {quote(row.device)}"
    return f"--log-dir {quote(row.log_dirs[0])}"


def _verdict(run: DryRun, row: ShownVolume) -> Iterator[Html]:
    taken, going, missing = run.planned.taken_bytes, run.planned.going.total, run.planned.missing_bytes
    kind = BAD if not run.is_held else WARN if taken else GOOD
    title = "TOO LOW" if not run.is_held else "WOULD DELETE" if taken else "NOTHING TO DELETE"
    told = [
        f"{human_bytes(taken)} of {counted(len(run.loss.topics), 'topic')} would be deleted"
        if taken
        else "nothing would be deleted"
    ]
    if going:
        told.append(f"{human_bytes(going)} will be deleted by retention anyway")
    told.append(f"the disk would be {human_percent(run.percent_after)} used")
    if missing:
        told.append(f"{human_bytes(missing)} over the ceiling: nothing more can be deleted")
    yield tag("p", word(title, kind), f" Ceiling {run.ceiling} %: {'; '.join(told)}.", class_="lead")
    yield Bar(used=run.percent_after, kind=kind, ceiling=float(run.ceiling), fence=row.fence).drawn()
    cycles = f" {human_bytes(run.first_cycle_bytes)} of it in the first cycle." if run.first_cycle_bytes < taken else ""
    yield tag("p", "As of ", moment(run.taken_at), f" UTC.{cycles} Deleting shrinks every replica.", class_="muted")


def _losers(run: DryRun) -> Iterator[Html]:
    loss = run.loss
    if not run.knows_groups:
        yield tag(
            "p", word("READERS UNKNOWN", ODD), " Snapshots have no consumer groups: the command below lists them."
        )
        return
    if loss.groups:
        titles = (("Group", "path"), ("State", ""), ("Records at most", NUMBER), ("Topics", "path"))
        caption = f"Who would lose records: {counted(len(loss.groups), 'group')} of {human_count(loss.asked_groups)}"
        yield table(caption, titles, map(_group_loss, loss.groups), "stack")
        yield tag("p", RESET_SENTENCE, class_="muted")
    else:
        yield tag("p", word("NO GROUP LOSES RECORDS", GOOD), f" {_no_group(loss)}")
    for unknown in loss.unknown:
        yield tag("p", word("UNKNOWN", ODD), f" {unknown.what}: {unknown.failure.message}")


def _no_group(loss: BlastRadius) -> str:
    return f"{counted(loss.asked_groups, 'consumer group')} checked; none still has to read these records."


_TOPIC_TITLES = (
    ("Topic", "path"),
    ("Bytes", NUMBER),
    ("Records at most", NUMBER),
    ("Segments", NUMBER),
    ("Partitions", NUMBER),
    ("Oldest (UTC)", NAMED),
    ("Newest (UTC)", NAMED),
)
_AGE_TITLES = (("Age", NAMED), ("Bytes", NUMBER), ("Segments", NUMBER))


def _group_loss(loss: GroupLoss) -> tuple[Child, ...]:
    return loss.group, loss.activity.value, human_count(loss.records), ", ".join(loss.topics)


def _topic_loss(loss: TopicLoss) -> tuple[Child, ...]:
    ages = (
        moment(datetime.fromtimestamp(at / 1000, UTC)) if at >= 0 else "-" for at in (loss.oldest_ms, loss.newest_ms)
    )
    counts = map(human_count, (loss.records, loss.segments, loss.partitions))
    return loss.topic, human_bytes(loss.bytes), *counts, *ages


def _spans(run: DryRun) -> Iterable[tuple[Child, ...]]:
    for span in run.ages:
        age = f"{human_span(span.from_ms / 1000)} to {human_span(span.to_ms / 1000)}"
        yield age, human_bytes(span.bytes), human_count(span.segments)


def _topics(seen: DiskSeen) -> Iterator[Html]:
    if seen.topics_from:
        yield tag("p", seen.topics_from, class_="muted")
    if not seen.topics:
        yield tag("p", "Topics on this disk: unknown.", class_="muted")
        return
    total, shown = seen.row.total_bytes, seen.topics[:_MOST_TOPICS]
    columns: Mapping[tuple[str, str], list[Child]] = {
        ("Topic", "path"): [each.topic for each in shown],
        ("Here", NUMBER): [human_bytes(each.bytes) for each in shown],
        ("Of disk", NUMBER): [human_percent(100 * each.bytes / total) if total else "-" for each in shown],
        ("Growth/h", NUMBER): [_growth(each.growth_bytes_per_hour) for each in shown],
        ("Replicas", NUMBER): [human_count(each.replicas) for each in shown],
        ("Retention", NAMED): [each.retention for each in shown],
        ("Oldest (UTC)", NAMED): [moment(each.oldest) if each.oldest is not None else "" for each in shown],
        ("Readers", NAMED): [each.readers for each in shown],
        ("Why it stays", "what"): [each.why for each in shown],
    }
    told = {title: cells for title, cells in columns.items() if any(cells)}
    older = (
        f"; {counted(len(seen.topics) - len(shown), 'more topic')} not shown" if len(seen.topics) > len(shown) else ""
    )
    yield table(f"Largest first{older}", list(told), zip(*told.values(), strict=True), "stack")


def _growth(growth: float | None) -> str:
    if growth is None:
        return ""
    return f"-{human_bytes(round(-growth))}" if growth < 0 else f"{'+' * (growth > 0)}{human_bytes(round(growth))}"
