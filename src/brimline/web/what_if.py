"""What if the limits of a fleet were others? A form, and the answer of ``brimline fleet simulate`` as a page.

**Bounded.** One simulation at a time; a large one in a process of its own at low priority: the other pages do not wait
for it, and its page says how far it is. Another question ends the one that is under way. What was asked
lately is kept for as long as the fleet's snapshots are the same. Nothing of the form is an expression, and so nothing
of it takes longer than its length.
"""

import multiprocessing
import os
import re
import shlex
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import groupby

from pyarrow import RecordBatch

from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.simulate.simulate import Simulation, TopicOutcome, rows_of, simulation, together
from brimline.fleet.simulate.what_if import WhatIf, retention_rule
from brimline.fleet.simulate.words import age_at, age_then, asked_for, day_name, trouble, troubled, unmatched
from brimline.model import counted, human_bytes, human_count
from brimline.pages.html import Html, fragment, page, tag
from brimline.pages.parts import BAD, GOOD, NAMED, NUMBER, WARN, choice, command_to_copy, live, table, word

_PATIENCE = 0.3
"""Seconds that a page waits for its answer; then it says how far it is."""
_KEPT = 8
_AT_ONCE = 4
"""Brokers between two looks at whether somebody still wants to know."""
_MOST_DAYS = 365
_TOPICS, _DEVICES = 50, 50
_NICE = 10
_SMALL = 800_000
"""So many segments, each for a day, are simulated before a process would have started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The form, as it was filled in. Empty is: as every broker has it."""

    cluster: str = ""
    broker: str = ""
    ceiling: str = ""
    max_used: str = ""
    topic: str = ""
    retention: str = ""
    days: str = "7"

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Asked":
        return cls(**{name: query[name].strip() for name in cls.__slots__ if query.get(name, "").strip()})

    @property
    def what_if(self) -> WhatIf:
        """Raises ``ValueError`` with a sentence."""
        if bool(self.topic) != bool(self.retention):
            raise ValueError("a topic needs a retention, and a retention a topic")
        rules = (retention_rule(re.compile(self.pattern), self.retention),) if self.topic else ()
        return WhatIf(
            ceiling_percent=_number("a ceiling", self.ceiling, 100),
            max_used_percent=_number("a limit of used percent", self.max_used, 100),
            retention=rules,
            days=_number("a number of days", self.days, _MOST_DAYS) or 0,
        )

    @property
    def pattern(self) -> str:
        """Of a topic's name, in which ``*`` is anything: an expression of a stranger could take for ever to match. What
        lies between two stars is looked for once, and where it was found is never thought over."""
        first, *others = map(re.escape, re.split(r"\*+", self.topic))
        if not others:
            return first
        return "".join((first, *(f"(?>.*?{part})" for part in others[:-1]), ".*", others[-1]))

    @property
    def command(self) -> str:
        given = (
            ("ceiling", self.ceiling),
            ("max-used", self.max_used),
            ("retention", f"{self.pattern}={self.retention}" if self.topic else ""),
            ("days", self.days),
            ("cluster", self.cluster),
            ("broker", self.broker),
        )
        return " ".join(f"--{name} {shlex.quote(value)}" for name, value in given if value)

    def is_meant(self, file: SnapshotFile) -> bool:
        return self.cluster in ("", file.cluster_id) and self.broker in ("", str(file.broker_id))


class _GivenUp(Exception):
    pass


class _Job:
    """``over`` when there is a result: a simulation, or a sentence why there is none."""

    def __init__(self, what_if: WhatIf, files: Sequence[SnapshotFile]) -> None:
        self.total, self.done = len(files), 0
        self.result: Simulation | str = "the simulation failed: see what the server wrote to its terminal"
        self.over = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, args=(what_if, files), name="what-if", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended = True

    def _run(self, what_if: WhatIf, files: Sequence[SnapshotFile]) -> None:
        try:
            ordered = sorted(files, key=lambda file: file.cluster_id)
            batches = zip(ordered, self._counted(_rows(what_if, ordered)), strict=False)
            # Cluster by cluster: all replicas of a large fleet at once would be a gigabyte
            clusters = groupby(batches, key=lambda pair: pair[0].cluster_id)
            found = [simulation(what_if, [batch for _, batch in pairs]) for _, pairs in clusters]
            self.result = together(found)
        except _GivenUp:
            self.result = "stopped: another what-if was started"
        except (BrokenProcessPool, OSError) as error:
            self.result = f"the simulation failed: {error}"
        finally:
            self.over.set()

    def _counted(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        for batch in batches:
            if self._ended:
                raise _GivenUp
            self.done += 1
            yield batch


def _rows(what_if: WhatIf, files: Sequence[SnapshotFile]) -> Iterator[RecordBatch]:
    of_file = rows_of(what_if).of_file
    if sum(file.segments for file in files) * (what_if.days + 1) <= _SMALL:
        yield from map(of_file, files)
        return
    # A fork would copy this process's threads in whatever state they are
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=context, initializer=os.nice, initargs=(_NICE,))
    try:
        yield from pool.map(of_file, files, chunksize=_AT_ONCE)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class WhatIfs:
    """May be asked from several threads. ``files``: the newest snapshots with segments."""

    def __init__(self, warehouse: str, files: Callable[[], Sequence[SnapshotFile]]) -> None:
        self._warehouse = warehouse
        self._files = files
        self._lock = threading.Lock()
        self._jobs: OrderedDict[object, _Job] = OrderedDict()

    def close(self) -> None:
        """Or the process would not end before the simulation."""
        with self._lock:
            for job in self._jobs.values():
                job.end()

    def answer(self, query: Mapping[str, str]) -> bytes:
        """Raises ``ValueError`` for a form that makes no sense."""
        asked, files = Asked.of(query), self._files()
        job = self._job(asked, files) if "days" in query else None
        parts = list(self._result(asked, job)) if job is not None else []
        if query.get("part") == "plan":
            return fragment(parts)
        clusters = sorted({file.cluster_id for file in files})
        return page(
            "What if - Brimline",
            tag(
                "header",
                tag("nav", tag("a", "All volumes", href="./"), aria_label="Back"),
                tag("h1", "What if the limits were different?"),
                tag("p", _ABOUT, class_="muted"),
            ),
            tag("main", _form(asked, clusters), live(parts), id="content"),
            tag("footer", "Read-only: this page changes nothing."),
        )

    def _job(self, asked: Asked, files: Sequence[SnapshotFile]) -> _Job:
        what_if, meant = asked.what_if, [file for file in files if asked.is_meant(file)]
        if not meant:
            raise ValueError("no broker with segments matches")
        key = asked, hash(tuple(file.snapshot_id for file in meant))
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                for other in [each for each, known in self._jobs.items() if not known.over.is_set()]:
                    self._jobs.pop(other).end()
                job = self._jobs[key] = _Job(what_if, meant)
            self._jobs.move_to_end(key)
            while len(self._jobs) > _KEPT:
                self._jobs.popitem(last=False)[1].end()
        job.over.wait(_PATIENCE)
        return job

    def _result(self, asked: Asked, job: _Job) -> Iterator[Html]:
        if not job.over.is_set():
            told = f" {human_count(job.done)} of {counted(job.total, 'broker')} simulated."
            yield tag(
                "p", word("UNDER WAY", WARN), told, " Submit again for the result.", data_again=True, class_="lead"
            )
        elif isinstance(job.result, str):
            yield tag("p", word("FAILED", BAD), f" {job.result}", class_="lead")
        else:
            if unmatched(job.result):
                yield tag("p", word("NO SUCH TOPIC", WARN), f" no topic matches {asked.topic}")
            yield from _answer(job.result)
        pattern = " The topic is a regular expression there." if asked.topic else ""
        yield tag("p", f"The same in a terminal, with all topics.{pattern}")
        command = f"brimline fleet simulate --warehouse {shlex.quote(self._warehouse)} {asked.command} --all"
        yield command_to_copy(command)


_ABOUT = (
    "An estimate from every broker's newest segments and the growth of its logs: what retention and a ceiling would "
    "delete, and which writes would be refused. An empty field keeps each broker's own value."
)


def _form(asked: Asked, clusters: Sequence[str]) -> Html:
    def field(title: str, name: str, **others: str | int) -> Html:
        given = tag("input", name=name, value=getattr(asked, name), size=10, **others)
        return tag("label", title, given)

    percent: dict[str, str | int] = {"type": "number", "min": 0, "max": 100}
    return tag(
        "form",
        choice("Cluster", "cluster", clusters, asked.cluster),
        field("Broker", "broker", placeholder="all", inputmode="numeric"),
        field("Ceiling, %", "ceiling", **percent),
        field("Refuse above, % used", "max_used", **percent),
        field("Topic (* is any text)", "topic", placeholder="clicks-*"),
        field("Its retention", "retention", placeholder="7d or 50GB"),
        field("Days ahead", "days", type="number", min=0, max=_MOST_DAYS, required=True),
        tag("button", "Show what would happen", type="submit"),
        method="get",
        action="what-if",
        aria_label="What if",
    )


def _answer(found: Simulation) -> Iterator[Html]:
    devices = troubled(found)
    full = [each for each in devices if each.full_on_day is not None]
    refused = sum(device.refused_bytes for device in found.devices)
    if full:
        verdict = word(f"{human_count(len(full))} FULL", BAD), f" {human_bytes(refused)} of writes would be refused"
    elif devices:
        verdict = (
            word(f"{human_count(len(devices))} NOT HELD", WARN),
            " no writes refused, but these ceilings cannot be held",
        )
    else:
        verdict = word("HOLDS", GOOD), " no writes refused, every ceiling held"
    brokers = f" ({counted(found.brokers, 'broker')}, {counted(len(found.devices), 'volume')})."
    yield tag("p", verdict, brokers, class_="lead")
    by_retention = sum(device.by_retention_bytes for device in found.devices)
    by_ceiling = sum(device.by_ceiling_bytes for device in found.devices)
    deleted = f"Retention deletes {human_bytes(by_retention)}, ceilings {human_bytes(by_ceiling)}."
    yield tag("p", f"{asked_for(found.what_if).capitalize()}. {deleted}")
    if found.unusable:
        yield tag("p", word("UNKNOWN", WARN), f" {counted(len(found.unusable), 'broker')}: {found.unusable[0].why}")
    if devices:
        titles = (("Volumes that would not hold, soonest first", "what"),)
        more = f"; {human_count(len(devices) - _DEVICES)} more" if len(devices) > _DEVICES else ""
        yield table(
            f"{counted(len(devices), 'volume')}{more}", titles, ((trouble(each),) for each in devices[:_DEVICES])
        )
    touched = [each for each in found.topics if each.by_ceiling_bytes or each.refused_bytes or each.by_retention_bytes]
    if touched:
        more = f"; {counted(len(touched) - _TOPICS, 'more topic')}" if len(touched) > _TOPICS else ""
        yield _topics(found, touched[:_TOPICS], f"Topics, largest loss first{more}")


def _topics(found: Simulation, topics: Sequence[TopicOutcome], caption: str) -> Html:
    """A column in which nothing happens to any topic is left out: the last ones are to fit a screen."""

    def sizes(of: Callable[[TopicOutcome], int]) -> list[str]:
        return [human_bytes(of(topic)) for topic in topics]

    told = {
        ("Cluster", NAMED): [topic.cluster_id for topic in topics],
        ("Topic", "path"): [topic.topic for topic in topics],
        ("Now", NUMBER): sizes(lambda topic: topic.bytes),
        ("A day", NUMBER): sizes(lambda topic: topic.bytes_a_day),
        ("By retention", NUMBER): sizes(lambda topic: topic.by_retention_bytes),
        ("By ceiling", NUMBER): sizes(lambda topic: topic.by_ceiling_bytes),
        ("From", NAMED): [day_name(topic.ceiling_on_day) for topic in topics],
        ("Refused", NUMBER): sizes(lambda topic: topic.refused_bytes),
        ("Refused from", NAMED): [day_name(topic.refused_on_day) for topic in topics],
        ("Oldest now (est.)", NAMED): [age_at(found.now_ms, topic.oldest_ms) for topic in topics],
        ("Then (est.)", NAMED): [age_then(found, topic) for topic in topics],
    }
    told = {title: cells for title, cells in told.items() if not {*cells} <= {human_bytes(0), day_name(None)}}
    return table(caption, list(told), zip(*told.values(), strict=True), "stack")


def _number(what: str, text: str, most: int) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 5 and int(text) <= most):
        raise ValueError(f"{text!r} is not {what} from 0 to {most}")
    return int(text)
