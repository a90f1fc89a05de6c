"""What several pages show: a bar with its marks, a table, the timeline. Colour never stands without a word."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from brimline.documents.history import Happening, Timeline
from brimline.model import counted, human_percent
from brimline.model.times import time_text
from brimline.pages.html import Child, Html, page, tag

GOOD, WARN, BAD, ODD = "good", "warn", "bad", "odd"
"""Classes of the style sheet: has room, look at it, full, not known."""
NUMBER, NAMED = "num", "named"
"""Classes of columns that make no sense without their title."""
_LEVELS = {"info": GOOD, "warning": WARN, "error": BAD}


def word(text: str, kind: str) -> Html:
    return tag("span", text, class_=f"word {kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """In percent of the volume. ``ceiling``: where reclaim begins; ``fence``: where writes are refused."""

    used: float | None
    kind: str
    ceiling: float | None = None
    fence: float | None = None
    is_small: bool = False

    @property
    def label(self) -> str:
        marks = [("ceiling", self.ceiling), ("full at", self.fence)]
        told = [f"{name} {human_percent(place)}" for name, place in marks if place is not None]
        return "; ".join([f"{human_percent(self.used)} used" if self.used is not None else "use unknown", *told])

    def drawn(self) -> Html:
        marks = [
            tag("line", class_=f"mark {kind}", x1=f"{place:.2f}", x2=f"{place:.2f}", y1=0, y2=10)
            for kind, place in (("ceiling", self.ceiling), ("fence", self.fence))
            if place is not None
        ]
        full = min(max(self.used or 0.0, 0.0), 100.0)
        return tag(
            "svg",
            tag("rect", class_="track", width=100, height=10),
            tag("rect", class_=f"fill {self.kind}", width=f"{full:.2f}", height=10),
            marks,
            class_="bar small" if self.is_small else "bar",
            viewBox="0 0 100 10",
            preserveAspectRatio="none",
            role="img",
            aria_label=self.label,
        )


def marks_key(observed: Collection[bool] = ()) -> Html:
    """What the marks on the bars mean. ``observed``: of each bar, whether nothing is refused there."""
    full = "would be refused" if observed and all(observed) else "are refused"
    unless = ", unless in observe mode" if len(set(observed)) > 1 else ""

    def mark(kind: str) -> Html:
        line = tag("line", class_=f"mark {kind}", x1=12, x2=12, y1=0, y2=11)
        return tag("svg", line, class_="key", viewBox="0 0 24 11", aria_hidden="true")

    return tag(
        "p",
        tag("span", mark("ceiling"), "ceiling: oldest segments are deleted"),
        tag("span", mark("fence"), f"full: writes {full}{unless}"),
        class_="muted keys",
    )


def moment(at: datetime) -> Html:
    return tag("time", f"{at:%Y-%m-%d %H:%M:%S}", datetime=time_text(at))


def table(caption: str, titles: Sequence[tuple[str, str]], rows: Iterable[Sequence[Child]], kind: str = "") -> Html:
    """``titles``: each with the class of its column. A ``stack`` is a list of blocks where the screen is narrow."""
    head = tag("tr", (tag("th", title, scope="col", class_=column or None) for title, column in titles))
    body = (tag("tr", (_cell(cell, *title) for title, cell in zip(titles, row, strict=True))) for row in rows)
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body), class_=kind or None)
    return tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _cell(cell: Child, title: str, column: str) -> Html:
    return tag("td", cell, class_=column or None, data_title=title if column in (NUMBER, NAMED) else None)


def live(*parts: Child) -> list[Html]:
    """What the script replaces; a screen reader is told its verdict alone."""
    return [tag("div", parts, id="plan"), tag("p", id="said", role="status", class_="unseen")]


def command_to_copy(command: str) -> Html:
    """The script shows the button where browsers let a page copy."""
    copied = tag("button", "Copy", type="button", hidden=True, data_copy="command")
    code = tag("pre", tag("code", command, id="command"), tabindex=0, role="region", aria_label="The command")
    return tag("div", code, copied, class_="command")


def choice(title: str, name: str, values: Sequence[str], chosen: str) -> Html:
    options = [("", "all"), *((value, value) for value in values)]
    found = (tag("option", text, value=value, selected=value == chosen) for value, text in options)
    return tag("label", title, tag("select", found, name=name))


def problem_page(sentence: str) -> bytes:
    back = tag("p", tag("a", "All disks", href="./"))
    return page("Brimline", tag("main", tag("h1", "Brimline"), tag("p", sentence), back, id="content"))


def timeline(history: Timeline, most: int) -> Html:
    """Newest first."""
    shown = history.newest(most)
    older = f", {counted(shown.left_out, 'older event')} not shown" if shown.left_out else ""
    titles = (("Time (UTC)", ""), ("Event", ""), ("By", ""), ("What", "what"))
    rows = (_row(event) for event in reversed(shown.events))
    missing = [tag("p", word("INCOMPLETE", WARN), " ", sentence) for sentence in shown.incomplete]
    if not shown.events:
        return tag("div", missing or tag("p", "Nothing happened in the last seven days.", class_="muted"))
    return tag("div", missing, table(f"Newest first{older}", titles, rows, "stack"))


def _row(event: Happening) -> tuple[Child, ...]:
    return moment(event.at), word(event.word, _LEVELS.get(event.level, ODD)), event.by, event.sentence
