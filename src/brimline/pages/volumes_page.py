"""Many volumes on one page: of the guards of a cluster, or of a whole fleet. To be filtered, most urgent first."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from urllib.parse import urlencode

from brimline.documents.history import Timeline
from brimline.model import counted, human_bytes, human_count, human_percent, human_span
from brimline.pages.html import Child, Html, page, tag
from brimline.pages.parts import BAD, GOOD, NAMED, NUMBER, ODD, WARN, Bar, choice, marks_key, table, timeline, word

ROWS_ON_A_PAGE = 200
_EVENTS = 100
_DAY = 86_400.0
_TITLES = (
    ("State", ""),
    ("Broker", NAMED),
    ("Log dirs", "path"),
    ("Use", "use"),
    ("Used", NUMBER),
    ("Usable", NUMBER),
    ("Full in", NUMBER),
    ("Why", "what"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVolume:
    """A volume of a broker, as whoever was asked knows it."""

    cluster: str
    broker: int
    device: str
    log_dirs: tuple[str, ...]
    state: str
    """ok, filling, full, offline or unknown."""
    why: str = ""
    used_percent: float | None = None
    total_bytes: int | None = None
    usable_bytes: int | None = None
    days_to_full: float | None = None
    ceiling: float | None = None
    fence: float | None = None
    href: str | None = None
    """Its own page."""
    is_observed: bool = False
    """Its guard refuses nothing."""

    @property
    def kind(self) -> str:
        return {"ok": GOOD, "filling": WARN, "full": BAD, "offline": BAD}.get(self.state, ODD)

    @property
    def urgency(self) -> tuple[int, float, float]:
        rank = {"offline": 0, "full": 1, "unknown": 2}.get(self.state, 3)
        return rank, inf if self.days_to_full is None else self.days_to_full, -(self.used_percent or 0.0)

    @property
    def full_in(self) -> str:
        if self.state == "full":
            return "now"
        return "-" if self.days_to_full is None else human_span(self.days_to_full * _DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeFilter:
    """As the form has it: empty is everything."""

    cluster: str = ""
    broker: str = ""
    topic: str = ""
    days: str = ""
    page: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "VolumeFilter":
        return cls(**{name: query.get(name, "").strip() for name in ("cluster", "broker", "topic", "days", "page")})

    def chosen(
        self, rows: Sequence[ShownVolume], places: Collection[tuple[str, int, str]] | None = None
    ) -> list[ShownVolume]:
        """In their order. ``places``: cluster, broker and log dir of each replica of the topic, where one is named."""
        most = _number(self.days)
        return [
            row
            for row in rows
            if self.cluster in ("", row.cluster)
            and self.broker in ("", str(row.broker))
            and (most is None or row.kind == BAD or (row.days_to_full is not None and row.days_to_full <= most))
            and (places is None or any((row.cluster, row.broker, log_dir) in places for log_dir in row.log_dirs))
        ]

    @property
    def page_number(self) -> int:
        return int(self.page) if self.page.isdecimal() and len(self.page) < 7 and int(self.page) else 1

    def link(self, number: int) -> str:
        given = {name: getattr(self, name) for name in ("cluster", "broker", "topic", "days") if getattr(self, name)}
        return "?" + urlencode({**given, "page": str(number)})


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumesSeen:
    """``rows``: most urgent first. ``is_fleet``: it is known which topic is where, and there is a what-if.
    ``silent``: of each guard that does not answer, why."""

    title: str
    about: str
    rows: Sequence[ShownVolume]
    silent: Sequence[str] = ()
    is_fleet: bool = False
    history: Timeline | None = None


def volumes_page(
    seen: VolumesSeen, wanted: VolumeFilter, places: Collection[tuple[str, int, str]] | None = None
) -> bytes:
    chosen = wanted.chosen(seen.rows, places)
    return page(
        f"{seen.title} - Brimline",
        tag(
            "header",
            tag("h1", seen.title),
            tag("p", _verdict(seen.rows, len(seen.silent)), class_="lead"),
            tag("p", seen.about, class_="muted"),
            (tag("p", word("NO ANSWER", ODD), f" {why}") for why in seen.silent),
            tag("nav", tag("a", "What if the limits were different?", href="what-if"), aria_label="More")
            if seen.is_fleet
            else None,
        ),
        tag("main", _form(seen, wanted), _volumes(chosen, len(seen.rows), wanted), _events(seen), id="content"),
        tag("footer", "Read-only: this page changes nothing."),
    )


def _verdict(rows: Sequence[ShownVolume], silent: int) -> Child:
    without = f"; {counted(silent, 'guard')} {'does' if silent == 1 else 'do'} not answer" if silent else ""
    if not rows:
        return [word("UNKNOWN", ODD), f" no volumes found{without}"]
    parts: list[Child] = []
    for state, kind in (("offline", BAD), ("full", BAD), ("unknown", ODD), ("filling", WARN)):
        if count := sum(row.state == state for row in rows):
            parts += [word(f"{human_count(count)} {state.upper()}", kind), " "]
    brokers = counted(len({(row.cluster, row.broker) for row in rows}), "broker")
    every = "" if parts or silent else "every volume has room: "
    return [*parts, f"{every}{counted(len(rows), 'volume')} of {brokers}{without}"]


def _form(seen: VolumesSeen, wanted: VolumeFilter) -> Html:
    clusters = sorted({row.cluster for row in seen.rows})
    fields: list[Child] = [choice("Cluster", "cluster", clusters, wanted.cluster)] if len(clusters) > 1 else []
    fields.append(tag("label", "Broker", tag("input", name="broker", value=wanted.broker, inputmode="numeric", size=8)))
    if seen.is_fleet:
        fields.append(tag("label", "Topic", tag("input", name="topic", value=wanted.topic, size=24)))
    days = tag("input", name="days", value=wanted.days, type="number", min=0, step="any")
    fields.append(tag("label", "Full within days", days))
    return tag(
        "form",
        fields,
        tag("button", "Show", type="submit"),
        method="get",
        action="./",
        role="search",
        aria_label="Filter",
    )


def _volumes(chosen: Sequence[ShownVolume], total: int, wanted: VolumeFilter) -> Iterator[Html]:
    pages = max(-(-len(chosen) // ROWS_ON_A_PAGE), 1)
    number = min(wanted.page_number, pages)
    shown = chosen[(number - 1) * ROWS_ON_A_PAGE : number * ROWS_ON_A_PAGE]
    yield tag("h2", "Volumes")
    if not shown:
        yield tag("p", f"None of {counted(total, 'volume')} match.")
        return
    has_clusters = len({row.cluster for row in shown}) > 1
    titles = (("Cluster", "path"), *_TITLES) if has_clusters else _TITLES
    rows = ((row.cluster, *_cells(row)) if has_clusters else _cells(row) for row in shown)
    part = f", page {number} of {pages}" if pages > 1 else ""
    caption = f"{human_count(len(chosen))} of {counted(total, 'volume')}, most urgent first{part}"
    yield table(caption, titles, rows, "stack")
    yield marks_key([row.is_observed for row in shown])
    around = [("Earlier", number - 1), ("Later", number + 1)]
    links = [[tag("a", text, href=wanted.link(each)), " "] for text, each in around if 1 <= each <= pages]
    if links:
        yield tag("nav", links, aria_label="Pages")


def _cells(row: ShownVolume) -> tuple[Child, ...]:
    names = ", ".join(row.log_dirs) or row.device
    bar = Bar(used=row.used_percent, kind=row.kind, ceiling=row.ceiling, fence=row.fence, is_small=True)
    return (
        word(row.state.upper(), row.kind),
        row.broker,
        tag("a", names, href=row.href) if row.href else names,
        bar.drawn(),
        human_percent(row.used_percent),
        human_bytes(row.usable_bytes),
        row.full_in,
        row.why,
    )


def _events(seen: VolumesSeen) -> Iterator[Html]:
    if seen.history is not None:
        yield tag("h2", "What happened")
        yield timeline(seen.history, _EVENTS)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number >= 0 else None
