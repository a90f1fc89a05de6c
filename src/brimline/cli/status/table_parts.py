"""Parts of ``brimline status`` for people.

Of the gateway: what it refuses, why, since when, how much, and what to do about it. Of full followers and cordoned log
dirs: only what asks for attention. Of reclaim: for every device what is done about its ceiling.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.text import Text

from brimline.cli.shared.glyphs import Glyphs, printable
from brimline.decide.admission import FenceCause
from brimline.documents.guard_state import (
    AnswerDocument,
    CordonDocument,
    DeviceDocument,
    FenceDocument,
    FollowersDocument,
    GatewayDocument,
    InterceptionDocument,
    LatelyDocument,
    ReclaimDocument,
)
from brimline.documents.notices import Notice, Weight
from brimline.model import counted, human_bytes, human_count, human_span

_INDENT = " " * 10
_WHILE_IT_IS_DOWN = "clients cannot reach the broker: start brimline gateway; its log says why it ended"
_WHILE_NOBODY_NEEDS_IT = "nothing is refused: start brimline gateway; its log says why it ended"
_WEIGHTS = {Weight.FINE: "dim", Weight.NOTE: "bold", Weight.WARNING: "bold yellow", Weight.PROBLEM: "bold red"}
_PHASES = {
    "idle": ("DIRECT", "bold green"),
    "arming": ("ASIDE", "bold yellow"),
    "armed": ("ASIDE", "bold yellow"),
    "draining": ("DIRECT", "bold yellow"),
}


def gateway_lines(
    gateway: GatewayDocument, now: datetime, glyphs: Glyphs, *, is_in_path: bool = True, is_broker_down: bool = False
) -> Iterator[Text]:
    if gateway.state is None:
        why = gateway.failure.message if gateway.failure else "not asked yet"
        yield Text.assemble(("Gateway", "bold"), "  ", ("does not answer", "bold red"))
        yield Text(f"  {glyphs.cross} {printable(why)}", "red")
        yield Text(f"{_INDENT}{_WHILE_IT_IS_DOWN if is_in_path else _WHILE_NOBODY_NEEDS_IT}", "cyan")
        return
    answer, fences = gateway.state, gateway.state.fences_for_people
    verdict = ("running, but its broker is down", "bold red") if is_broker_down else _verdict(answer, fences)
    yield Text.assemble(("Gateway", "bold"), "  ", verdict)
    yield Text(f"  {f'  {glyphs.dot}  '.join(_facts(answer, now))}", "dim")
    listeners = [f"{each.name}://{each.address}" for each in answer.listeners]
    yield Text(f"  {counted(answer.connections, 'connection')} on {printable(', '.join(listeners))}", "dim")
    for fence in fences:
        yield from _fence_lines(fence, now, is_enforcing=answer.is_enforcing)
    if answer.lately.batches:
        yield _lately_line(answer.lately, is_enforcing=answer.is_enforcing)


def _verdict(answer: AnswerDocument, fences: Sequence[FenceDocument]) -> tuple[str, str]:
    if not fences:
        return ("OK, nothing refused", "bold green")
    topics = len({fence.target for fence in fences if fence.topic is not None})
    log_dirs = len({fence.target for fence in fences if fence.topic is None})
    parts = [counted(log_dirs, "log dir") if log_dirs else "", counted(topics, "topic") if topics else ""]
    what = " and ".join(part for part in parts if part)
    if answer.is_enforcing:
        return (f"refuses Produce for {what}", "bold red")
    return (f"observe mode: would refuse Produce for {what}", "bold yellow")


def _facts(answer: AnswerDocument, now: datetime) -> Iterator[str]:
    if answer.draining:
        yield "shutting down: accepts no new connections"
    if answer.fences_for_people and answer.is_enforcing:
        yield f"error {answer.reject_error}"
    yield f"up {human_span(_seconds(answer.started_at, now))}"
    yield f"gateway {answer.version}"


def _fence_lines(fence: FenceDocument, now: datetime, *, is_enforcing: bool) -> Iterator[Text]:
    word, style = ("FENCED", "bold red") if is_enforcing else ("FENCE", "bold yellow")
    yield Text.assemble("  ", (f"{word:<8}", style), (printable(fence.target), "bold"))
    span = f"for {human_span(_seconds(fence.since, now))} (since {fence.since:%Y-%m-%d %H:%M} UTC)"
    yield Text(f"{_INDENT}{counted(fence.partitions, 'partition')}, {span}", "dim")
    cause = f"by {fence.by or 'hand'}" if fence.cause is FenceCause.MANUAL else "full"
    yield Text(f"{_INDENT}{printable(f'{cause}: {fence.reason}')}")
    yield Text(f"{_INDENT}{printable(fence.what_to_do)}", "cyan")


def _lately_line(lately: LatelyDocument, *, is_enforcing: bool) -> Text:
    word, rest = ("REFUSED", "") if is_enforcing else ("COUNTED", " that would be refused")
    rows = ((row.topic if row.partition is None else f"{row.topic}-{row.partition}", row) for row in lately.most)
    most = ", ".join(f"{name} from {row.client} ({human_count(row.batches)})" for name, row in rows)
    return Text.assemble(
        "  ",
        (f"{word:<8}", "bold yellow"),
        f"{counted(lately.batches, 'batch', 'batches')} ({human_bytes(lately.bytes)}){rest} in the last "
        f"{human_span(lately.seconds)}, mostly {printable(most)}",
    )


def _seconds(since: datetime, now: datetime) -> float:
    return max((now - since).total_seconds(), 0.0)


def follower_lines(followers: FollowersDocument) -> Iterator[Text]:
    for each in followers.full:
        yield _line("NO ROOM", "bold yellow" if each.held_back else "bold red", each.does)
        yield Text(f"{_INDENT}{printable(each.what_to_do)}", "cyan")
    if followers.full:
        yield Text(f"{_INDENT}{printable(followers.why)}", "dim")
    if followers.throttle is not None:
        is_done = followers.throttle.failure is None and followers.throttle.foreign is None
        yield _line("LAGGING", "bold yellow" if is_done else "bold red", followers.throttle.does)
    if followers.shed is not None:
        yield _line("SHED", "bold yellow" if followers.shed.failure is None else "bold red", followers.shed.does)
        if followers.shed.what_to_do is not None:
            yield Text(f"{_INDENT}{printable(followers.shed.what_to_do)}", "cyan")
    others = sum(followers.peers.values())
    unknown = others - followers.peers.get("fresh", 0) - followers.peers.get("stale", 0)
    if unknown:
        yield _line(
            "PEERS",
            "bold magenta",
            f"disks of {unknown} of {others} other brokers unknown; nothing is held back for "
            f"them{f': {followers.failure.message}' if followers.failure else ''}",
        )


def interception_lines(interception: InterceptionDocument) -> Iterator[Text]:
    word, style = _PHASES.get(interception.phase, (interception.phase.upper(), "bold"))
    yield _line(*(("DIRECT", "bold red") if interception.failure is not None else (word, style)), interception.does)


def notice_lines(notice: Notice) -> Iterator[Text]:
    yield _line(notice.word, _WEIGHTS[notice.weight], notice.text)
    if notice.cure:
        yield Text(f"{_INDENT}{printable(notice.cure)}", "cyan")


def cordon_lines(cordon: CordonDocument) -> Iterator[Text]:
    for path in cordon.log_dirs:
        yield _line("CORDON", "bold yellow", f"{path}: no new replicas")
    for path in cordon.by_operator:
        yield _line("CORDON", "bold", f"{path}: cordoned by an operator")
    for path in cordon.kept_open:
        yield _line("OPEN", "bold yellow", f"{path} is full but not cordoned: no other broker is known to have room")
    if cordon.failure is not None:
        yield _line("CORDON", "bold red", f"full log dirs cannot be cordoned or reopened: {cordon.failure.message}")


def _line(word: str, style: str, text: str) -> Text:
    return Text.assemble("  ", (f"{word:<8}", style), printable(text))


_CALM = ("under-ceiling", "off")


def reclaim_lines(reclaim: ReclaimDocument, glyphs: Glyphs) -> Iterator[Text]:
    does = "deletes the oldest segments" if reclaim.mode == "apply" else "plans only, deletes nothing"
    paused = [("  ", ""), ("PAUSED", "bold yellow")] if reclaim.paused is not None else []
    yield Text.assemble(("Reclaim", "bold"), f"  ceiling {reclaim.ceiling_percent} %  {glyphs.dot}  {does}", *paused)
    for sentence in reclaim.brakes:
        yield Text(f"  {printable(sentence)}", "yellow")
    for device in reclaim.devices:
        yield from _device_lines(device)


def _device_lines(device: DeviceDocument) -> Iterator[Text]:
    path = ", ".join(device.log_dirs)
    does = printable(device.does.removeprefix(f"{path}: "))
    is_calm = device.state in _CALM
    yield Text.assemble(f"  {printable(path)}  ", (does if is_calm else device.state.replace("-", " "), _style(device)))
    if not is_calm:
        yield Text(f"{_INDENT}{does}", "yellow")
    if device.floor is not None and device.floor.impossible and device.floor.sentence not in device.does:
        yield Text(f"{_INDENT}{printable(device.floor.sentence.replace(f' of the volume of {path}', ''))}", "red")
    if device.last_cycle is not None:
        total, last = device.since_start, printable(device.last_cycle.cycle)
        freed = f"{human_bytes(total.freed_bytes)} in {counted(total.freed_segments, 'segment')}"
        yield Text(
            f"{_INDENT}freed since start: {freed}; last cycle {last} (brimline ledger)",
            "dim",
        )


def _style(device: DeviceDocument) -> str:
    if device.troubled:
        return "bold red"
    return "bold green" if device.state in _CALM else "bold yellow"
