"""A guard's own page: its ``/v1/state`` and its timeline, for a browser."""

from collections.abc import Iterator
from urllib.parse import urlencode

from brimline.decide.admission import FenceCause
from brimline.documents.guard_state import (
    AnswerDocument,
    DeviceDocument,
    FenceDocument,
    FollowersDocument,
    GatewayDocument,
    GuardState,
    PercentagesDocument,
    ReclaimDocument,
    VolumeDocument,
)
from brimline.documents.history import Timeline
from brimline.documents.notices import Weight
from brimline.model import FailureKind, counted, human_bytes, human_count, human_percent, human_span
from brimline.pages.html import Child, Html, page, tag
from brimline.pages.parts import BAD, GOOD, NUMBER, ODD, WARN, Bar, marks_key, moment, table, timeline, word
from brimline.pages.volumes_page import ShownVolume

_EVENTS = 100
_DAY = 86_400.0
_SOON = _DAY
_WEIGHTS = {Weight.FINE: GOOD, Weight.NOTE: GOOD, Weight.WARNING: WARN, Weight.PROBLEM: BAD}


def guard_page(state: GuardState, history: Timeline) -> bytes:
    title = f"Broker {state.broker.id}"
    return page(
        f"{title} - Brimline",
        tag(
            "header", tag("h1", title), tag("p", verdict(state), class_="lead"), tag("p", _about(state), class_="muted")
        ),
        tag("main", _sections(state, history), id="content"),
        tag("footer", _links(state)),
    )


def verdict(state: GuardState) -> list[Child]:
    """The worst truth first."""
    if state.broker.failure is not None:
        is_down = state.broker.failure.kind in (FailureKind.UNREACHABLE.value, FailureKind.TIMED_OUT.value)
        return [word("BROKER DOWN" if is_down else "BROKER", BAD), f" {state.broker.failure.message}"]
    urgent = next((each for each in state.notices if each.headline), None)
    if urgent is not None:
        return [word(urgent.word, BAD), f" {urgent.text}"]
    worst = by_urgency(state.volumes)[0] if state.volumes else None
    if worst is None:
        return [word("UNKNOWN", ODD), " no disks watched"]
    return [word(state_word(worst), volume_kind(worst)), f" {', '.join(worst.log_dirs)}: {outlook(worst)}"]


def by_urgency(volumes: tuple[VolumeDocument, ...]) -> list[VolumeDocument]:
    """Offline ones, full ones, unknown ones, and then by the time to their limit."""

    def key(volume: VolumeDocument) -> tuple[int, float, float]:
        rank = {"offline": 0, "full": 1, "unknown": 2}.get(volume.state, 3)
        seconds = volume.seconds_to_limit
        return rank, float("inf") if seconds is None else seconds, -(volume.used_percent or 0.0)

    return sorted(volumes, key=key)


def state_word(volume: VolumeDocument) -> str:
    return "FILLING" if volume.state == "ok" and _is_filling(volume) else volume.state.upper()


def volume_kind(volume: VolumeDocument) -> str:
    if volume.state == "ok":
        return WARN if _is_filling(volume) else GOOD
    return BAD if volume.state in ("full", "offline") else ODD


def outlook(volume: VolumeDocument) -> str:
    if volume.used_percent is None:
        return volume.failure.message if volume.failure is not None else "not known"
    if volume.state == "full":
        return volume.why_full
    if volume.state == "offline":
        return "by the broker's word"
    rate = volume.fill_rate_bytes_per_second
    if rate is not None and volume.seconds_to_limit is not None:
        return f"full in {human_span(volume.seconds_to_limit)} at {human_bytes(int(rate))}/s"
    return "has room, not filling" if rate is not None and rate <= 0 else "has room"


def fence_percent(volume: VolumeDocument, state: GuardState) -> float | None:
    """Where it counts as full: the first of its limits."""
    if not volume.total_bytes:
        return None
    free = max(state.limits.min_free_bytes, volume.reserve_bytes)
    return min(float(state.limits.max_used_percent), 100.0 * (1 - free / volume.total_bytes))


def shown_volume(volume: VolumeDocument, state: GuardState, cluster: str = "", url: str = "") -> ShownVolume:
    """``url``: where the guard serves; empty on its own pages."""
    seconds = volume.seconds_to_limit
    down = "" if state.broker.failure is None else f"; its broker does not answer: {state.broker.failure.message}"
    return ShownVolume(
        cluster=cluster,
        broker=state.broker.id,
        device=volume.device,
        log_dirs=volume.log_dirs,
        state=state_word(volume).lower(),
        why=f"{outlook(volume)}{down}",
        used_percent=volume.used_percent,
        total_bytes=volume.total_bytes,
        usable_bytes=volume.usable_bytes,
        days_to_full=None if seconds is None else seconds / _DAY,
        ceiling=None if state.reclaim is None else float(state.reclaim.ceiling_percent),
        fence=fence_percent(volume, state),
        href=f"{url}disk?{urlencode({'device': volume.device})}",
        is_observed=not state.guard.is_enforcing,
    )


def _is_filling(volume: VolumeDocument) -> bool:
    return volume.seconds_to_limit is not None and volume.seconds_to_limit < _SOON


def _about(state: GuardState) -> list[Child]:
    connected = "" if state.broker.connected or state.broker.failure else "The broker has not answered yet. "
    about = f"{state.limits}, {state.guard.mode}. "
    return [about[:1].upper() + about[1:], connected, "Seen ", moment(state.observed_at), " UTC."]


def _sections(state: GuardState, history: Timeline) -> Iterator[Html]:
    yield tag("h2", "Disks")
    yield tag("ul", (_disk(volume, state) for volume in by_urgency(state.volumes)), class_="disks")
    yield marks_key([not state.guard.is_enforcing])
    if remarks := list(_remarks(state)):
        yield tag("h2", "In force now")
        yield tag("ul", (tag("li", remark) for remark in remarks))
    if state.gateway is not None:
        yield tag("h2", "Gateway")
        yield from _gateway(state.gateway, is_broker_down=state.broker.is_down)
    if state.reclaim is not None:
        yield tag("h2", "Reclaim")
        yield from _reclaim(state.reclaim)
    yield from _retention(state)
    yield tag("h2", "What happened")
    yield timeline(history, _EVENTS)


def _disk(volume: VolumeDocument, state: GuardState) -> Html:
    sizes = f"{human_bytes(volume.usable_bytes)} usable of {human_bytes(volume.total_bytes)}"
    figures = f"{human_percent(volume.used_percent)} used, {sizes}" if volume.used_percent is not None else ""
    where = f" on {volume.mount_point}" if volume.mount_point else ""
    row = shown_volume(volume, state)
    return tag(
        "li",
        tag(
            "div",
            tag("h3", tag("a", ", ".join(volume.log_dirs), class_="path", href=row.href)),
            tag("span", word(state_word(volume), volume_kind(volume)), f" {outlook(volume)}"),
            class_="top",
        ),
        Bar(used=row.used_percent, kind=row.kind, ceiling=row.ceiling, fence=row.fence).drawn(),
        tag("p", figures, tag("span", f" device {volume.device}{where}", class_="muted")),
        (tag("p", sentence) for sentence in volume.would_do),
        class_="disk",
    )


def _remarks(state: GuardState) -> Iterator[list[Child]]:
    for notice in state.notices:
        yield [word(notice.word, _WEIGHTS[notice.weight]), f" {notice.sentence}"]
    aside = state.interception
    if aside is not None and (aside.phase != "idle" or aside.failure is not None):
        yield [word("ASIDE", WARN) if aside.failure is None else word("DIRECT", BAD), f" {aside.does}"]
    for ballast in state.ballast.volumes if state.ballast is not None else ():
        yield [word("BALLAST", GOOD if ballast.in_place else WARN), f" {ballast.does}"]
    if state.moves is not None:
        yield [word("PAUSED" if state.moves.paused else "MOVING", WARN), f" {state.moves.does}"]
    if state.cordon is not None:
        for path in state.cordon.log_dirs:
            yield [word("CORDON", WARN), f" {path}: closed to new replicas"]
        for path in state.cordon.by_operator:
            yield [word("CORDON", GOOD), f" {path}: closed to new replicas by an operator"]
        for path in state.cordon.kept_open:
            yield [word("OPEN", WARN), f" {path} is full but not cordoned: no other broker is known to have room"]
    if state.followers is not None:
        yield from _followers(state.followers)


def _followers(followers: FollowersDocument) -> Iterator[list[Child]]:
    for each in followers.full:
        yield [word("NO ROOM", WARN if each.held_back else BAD), f" {each.does} {each.what_to_do}"]
    if followers.throttle is not None:
        yield [word("LAGGING", WARN if followers.throttle.failure is None else BAD), f" {followers.throttle.does}"]
    if followers.shed is not None:
        yield [word("SHED", WARN), f" {followers.shed.does} {followers.shed.what_to_do or ''}"]


def _gateway(gateway: GatewayDocument, *, is_broker_down: bool) -> Iterator[Html]:
    answer = gateway.state
    if answer is None:
        why = gateway.failure.message if gateway.failure is not None else "it has not answered yet"
        yield tag("p", word("NO ANSWER", BAD), f" {why}")
        return
    if is_broker_down:
        yield tag("p", word("BROKER DOWN", BAD), " the gateway is running, but its broker is down")
    elif not answer.fences:
        yield tag("p", word("OK", GOOD), f" nothing refused; {counted(answer.connections, 'connection')}")
    if answer.fences:
        doing = "refuses" if answer.is_enforcing else "would refuse"
        columns = (
            ("Fenced", "path"),
            ("Partitions", NUMBER),
            ("Since (UTC)", ""),
            ("Why", "what"),
            ("To lift", "what"),
        )
        rows = (
            (fence.target, fence.partitions, moment(fence.since), _why(fence), fence.what_to_do)
            for fence in answer.fences_for_people
        )
        yield table(f"The gateway {doing} Produce for these", columns, rows, "stack")
    if answer.lately.most:
        yield _refused(answer)


def _refused(answer: AnswerDocument) -> Html:
    lately = answer.lately
    title = "Refused" if answer.is_enforcing else "Would have been refused"
    return table(
        f"{title} in the last {human_span(lately.seconds)}: {counted(lately.batches, 'batch', 'batches')}",
        (("Client", "what"), ("Topic", "path"), ("Batches", NUMBER), ("Bytes", NUMBER)),
        (
            (row.client, _partition(row.topic, row.partition), human_count(row.batches), human_bytes(row.bytes))
            for row in lately.most
        ),
        "stack",
    )


def _why(fence: FenceDocument) -> str:
    return f"by hand, {fence.by or 'an operator'}: {fence.reason}" if fence.cause is FenceCause.MANUAL else fence.reason


def _partition(topic: str, partition: int | None) -> str:
    return topic if partition is None else f"{topic}-{partition}"


def _reclaim(reclaim: ReclaimDocument) -> Iterator[Html]:
    does = "deletes the oldest segments above it" if reclaim.mode == "apply" else "reports what it would delete"
    yield tag("p", f"Ceiling of {reclaim.ceiling_percent} %; {does}.")
    if reclaim.paused is not None:
        yield tag("p", word("PAUSED", WARN), f" by {reclaim.paused.by}: {reclaim.paused.reason}")
    yield from (tag("p", sentence) for sentence in reclaim.brakes)
    yield from (_device(device) for device in reclaim.devices)


def _device(device: DeviceDocument) -> Html:
    calm = device.state in ("under-ceiling", "off")
    kind = BAD if device.troubled else GOOD if calm else WARN
    floor = device.floor
    shares = [(part.kind, share) for part in floor.parts for share in part.topics] if floor is not None else []
    return tag(
        "div",
        tag(
            "p",
            tag("span", ", ".join(device.log_dirs), class_="path"),
            " ",
            word(device.state.replace("-", " "), kind),
            f" {device.does}",
        ),
        tag("p", floor.sentence, class_="muted")
        if floor is not None and floor.impossible and floor.sentence not in device.does
        else None,
        table(
            "Topics that hold space which reclaim cannot free",
            (("Topic", "path"), ("Bytes", NUMBER), ("Why", "what")),
            ((share.topic, human_bytes(share.bytes), kind) for kind, share in shares),
            "stack",
        )
        if shares
        else None,
    )


def _retention(state: GuardState) -> Iterator[Html]:
    parts = (("local logs", state.retention.plain), ("tiered, led here", state.retention.tiered))
    for title, figures in parts:
        if figures is not None and figures.highest:
            yield tag("h2", f"Topics by retention used ({title})")
            yield _percentages(figures)


def _percentages(figures: PercentagesDocument) -> Html:
    caption = f"{counted(figures.partitions, 'partition')}, {human_count(figures.over_100)} over 100 %; the highest"
    rows = ((f"{row.topic}-{row.partition}", f"{row.percent} %") for row in figures.highest)
    return table(caption, (("Partition", "path"), ("Of its retention", NUMBER)), rows, "stack")


def _links(state: GuardState) -> list[Child]:
    pages = (("metrics", "metrics"), ("v1/state", "state as JSON"), ("v1/history", "history as JSON"))
    links = [[tag("a", text, href=path), " · "] for path, text in pages]
    return [links, f"Brimline {state.guard.version}, {state.guard.config}"]
