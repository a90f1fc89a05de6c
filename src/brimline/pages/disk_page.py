"""One disk of a fleet: its use over time, its topics, and what another ceiling would delete. A look, and a command."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from brimline.model import counted, human_bytes, human_count, human_percent, used_percent
from brimline.pages.chart import UseChart
from brimline.pages.html import Child, Html, page, tag
from brimline.pages.parts import BAD, GOOD, NAMED, NUMBER, WARN, Bar, marks_key, moment, table, word
from brimline.pages.volumes_page import ShownVolume

LOWEST_CEILING, HIGHEST_CEILING = 1, 99


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOnDisk:
    topic: str
    replicas: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTaken:
    """What a plan takes of one topic: from the oldest record to the newest of them, where that is known."""

    topic: str
    partitions: int
    segments: int
    bytes: int
    oldest: datetime | None
    newest: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a guard would delete under this ceiling, by the facts of a snapshot."""

    ceiling: int
    taken_at: datetime
    outcome: str
    total_bytes: int | None
    used_bytes: int | None
    going_bytes: int
    taken_bytes: int
    missing_bytes: int
    topics: Sequence[TopicTaken]

    @property
    def percent_after(self) -> float | None:
        if self.total_bytes is None or self.used_bytes is None:
            return None
        used = max(self.used_bytes - self.going_bytes - self.taken_bytes, 0)
        return used_percent(self.total_bytes, self.total_bytes - used)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSeen:
    """``dry_run`` is a sentence where none can be made."""

    row: ShownVolume
    chart: UseChart | None
    topics: Sequence[TopicOnDisk]
    dry_run: DryRun | str
    ceiling: int


def disk_page(seen: DiskSeen) -> bytes:
    row = seen.row
    title = f"Broker {row.broker}: {', '.join(row.log_dirs)}"
    back = tag("p", tag("a", "All volumes", href="/"))
    where = f"{f'Cluster {row.cluster}, ' if row.cluster else ''}device {row.device}"
    return page(
        f"{title} - Brimline",
        tag(
            "header",
            back,
            tag("h1", title),
            tag("p", word(row.state.upper(), row.kind), f" {row.why}", class_="lead"),
            tag("p", where, class_="muted"),
        ),
        tag("main", _sections(seen), id="content"),
        tag("footer", "Brimline shows and changes nothing here."),
    )


def _sections(seen: DiskSeen) -> Iterator[Html]:
    row = seen.row
    yield Bar(used=row.used_percent, kind=row.kind, ceiling=row.ceiling, fence=row.fence).drawn()
    sizes = f"{human_bytes(row.usable_bytes)} usable of {human_bytes(row.total_bytes)}"
    yield tag("p", f"{human_percent(row.used_percent)} used, {sizes}")
    yield marks_key()
    yield tag("h2", "Use over time")
    if seen.chart is None:
        yield tag("p", "No reading of this disk is kept.", class_="muted")
    else:
        yield seen.chart.drawn()
        yield tag("p", f"{seen.chart.label}. The band is where the forecast's errors of the past would put it.")
    yield tag("h2", "What another ceiling would delete")
    yield from _what_if(seen)
    yield tag("h2", "Topics on this disk")
    yield _topics(seen.topics)


def _what_if(seen: DiskSeen) -> Iterator[Html]:
    row = seen.row
    hidden = [
        tag("input", type="hidden", name=name, value=value)
        for name, value in (("cluster", row.cluster), ("broker", row.broker), ("device", row.device))
    ]
    number = tag(
        "input",
        type="number",
        name="ceiling",
        min=LOWEST_CEILING,
        max=HIGHEST_CEILING,
        value=seen.ceiling,
        required=True,
    )
    yield tag(
        "form",
        hidden,
        tag("label", "Ceiling, in percent of the disk", number),
        tag("button", "Show what would go", type="submit"),
        method="get",
        action="/disk",
    )
    if isinstance(seen.dry_run, str):
        yield tag("p", word("UNKNOWN", WARN), f" {seen.dry_run}")
        return
    yield from _dry_run(seen.dry_run, row)


def _dry_run(run: DryRun, row: ShownVolume) -> Iterator[Html]:
    held = run.percent_after is not None and run.percent_after <= run.ceiling
    kind = GOOD if not run.taken_bytes and held else WARN if held else BAD
    after = f"the disk would be {human_percent(run.percent_after)} used afterwards"
    short = f"; {human_bytes(run.missing_bytes)} short of the ceiling" if run.missing_bytes else ""
    going = f", and {human_bytes(run.going_bytes)} go anyway" if run.going_bytes else ""
    yield tag(
        "p",
        word(run.outcome.upper(), kind),
        f" {human_bytes(run.taken_bytes)} of {counted(len(run.topics), 'topic')} would go{going}; {after}{short}.",
        class_="lead",
    )
    yield Bar(used=run.percent_after, kind=kind, ceiling=float(run.ceiling), fence=row.fence).drawn()
    yield tag("p", "By the snapshot of ", moment(run.taken_at), " UTC. A trim shrinks every replica.", class_="muted")
    if run.topics:
        titles = (
            ("Topic", "path"),
            ("Bytes", NUMBER),
            ("Segments", NUMBER),
            ("Partitions", NUMBER),
            ("Records from", NAMED),
            ("to (UTC)", NAMED),
        )
        yield table("What would go, the most first", titles, map(_loss, run.topics), "stack")
    yield tag("p", "On the broker's host; it shows who would lose records, and deletes nothing without --apply:")
    command = f"brimline reclaim --config /etc/kafka/server.properties --ceiling {run.ceiling} --device {row.device}"
    yield tag("pre", tag("code", command), tabindex=0, role="region", aria_label="The command")


def _loss(loss: TopicTaken) -> tuple[Child, ...]:
    ages = (moment(at) if at is not None else "-" for at in (loss.oldest, loss.newest))
    counts = human_count(loss.segments), human_count(loss.partitions)
    return loss.topic, human_bytes(loss.bytes), *counts, *ages


def _topics(topics: Sequence[TopicOnDisk]) -> Html:
    if not topics:
        return tag("p", "It is not known which topics are here.", class_="muted")
    titles = (("Topic", "path"), ("Bytes", NUMBER), ("Replicas", NUMBER))
    rows = ((each.topic, human_bytes(each.bytes), human_count(each.replicas)) for each in topics)
    return table("The largest first", titles, rows)
