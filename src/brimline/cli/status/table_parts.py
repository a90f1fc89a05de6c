"""The gateway for people: what it refuses, why, since when, how much of it there was, and what to do about it.

Full followers and cordoned log dirs for people: only what asks for attention.

The reclaim of a running guard for people: of every device what is done about its ceiling.
"""

from collections.abc import Iterator

from rich.text import Text

from brimline.cli.shared.glyphs import Glyphs, printable
from brimline.cli.status.followers_shown import ShownCordon, ShownFollowers
from brimline.cli.status.gateway_shown import ShownAnswer, ShownFence, ShownGateway, ShownLately
from brimline.cli.status.reclaim_shown import ShownDevice, ShownReclaim
from brimline.model import human_bytes, human_count, human_span

_INDENT = " " * 10
_WHILE_IT_IS_DOWN = (
    "while it is down its clients cannot reach the broker: start brimline gateway again; its log says why it ended"
)


def gateway_lines(gateway: ShownGateway, glyphs: Glyphs) -> Iterator[Text]:
    if gateway.answer is None:
        yield Text.assemble(("Gateway", "bold"), "  ", ("does not answer", "bold red"))
        yield Text(f"  {glyphs.cross} {printable(gateway.failure or 'it has not been asked yet')}", "red")
        yield Text(f"{_INDENT}{_WHILE_IT_IS_DOWN}", "cyan")
        return
    answer = gateway.answer
    yield Text.assemble(("Gateway", "bold"), "  ", _verdict(answer))
    yield Text(f"  {f'  {glyphs.dot}  '.join(_facts(answer))}", "dim")
    yield Text(f"  {_counted(answer.connections, 'connection')} on {printable(', '.join(answer.listeners))}", "dim")
    for fence in answer.fences:
        yield from _fence_lines(fence, is_enforcing=answer.is_enforcing)
    if answer.lately.batches:
        yield _lately_line(answer.lately, is_enforcing=answer.is_enforcing)


def _verdict(answer: ShownAnswer) -> tuple[str, str]:
    if not answer.fences:
        return ("lets everything through", "bold green")
    topics = len({fence.target for fence in answer.fences if fence.is_topic})
    log_dirs = len({fence.target for fence in answer.fences if not fence.is_topic})
    parts = [_counted(log_dirs, "log dir") if log_dirs else "", _counted(topics, "topic") if topics else ""]
    what = " and ".join(part for part in parts if part)
    if answer.is_enforcing:
        return (f"refuses Produce for {what}", "bold red")
    return (f"only observes: it would refuse Produce for {what}", "bold yellow")


def _facts(answer: ShownAnswer) -> Iterator[str]:
    if answer.is_draining:
        yield "ending: it accepts no more connections"
    yield f"refuses with error {answer.reject_error}" if answer.is_enforcing else "observes"
    yield f"up {human_span(answer.up_seconds)}"
    yield f"gateway {answer.version}"


def _fence_lines(fence: ShownFence, *, is_enforcing: bool) -> Iterator[Text]:
    word, style = ("FENCED", "bold red") if is_enforcing else ("FENCE", "bold yellow")
    yield Text.assemble("  ", (f"{word:<8}", style), (printable(fence.target), "bold"))
    span = f"for {human_span(fence.seconds)} (since {fence.since:%Y-%m-%d %H:%M} UTC)"
    yield Text(f"{_INDENT}{_counted(fence.partitions, 'partition')}, {span}", "dim")
    cause = f"by {fence.by or 'hand'}" if fence.is_manual else "full"
    yield Text(f"{_INDENT}{printable(f'{cause}: {fence.reason}')}")
    yield Text(f"{_INDENT}{printable(fence.what_to_do)}", "cyan")


def _lately_line(lately: ShownLately, *, is_enforcing: bool) -> Text:
    word, rest = ("REFUSED", "") if is_enforcing else ("COUNTED", " that would be refused")
    most = ", ".join(f"{row.partition} from {row.client} ({human_count(row.batches)})" for row in lately.most)
    return Text.assemble(
        "  ",
        (f"{word:<8}", "bold yellow"),
        f"{_counted(lately.batches, 'batch', 'batches')} ({human_bytes(lately.size)}){rest} in the last "
        f"{human_span(lately.seconds)}, most of them {printable(most)}",
    )


def _counted(number: int, noun: str, plural: str | None = None) -> str:
    return f"{human_count(number)} {noun if number == 1 else plural or f'{noun}s'}"


def follower_lines(followers: ShownFollowers) -> Iterator[Text]:
    for each in followers.full:
        yield _line("NO ROOM", "bold yellow" if each.is_held_back else "bold red", each.sentence)
        yield Text(f"{_INDENT}{printable(each.what_to_do)}", "cyan")
    if followers.full:
        yield Text(f"{_INDENT}{printable(followers.why)}", "dim")
    if followers.unknown:
        yield _line(
            "PEERS",
            "bold magenta",
            f"nothing is known of the disks of {followers.unknown} of {followers.others} other brokers, and nothing is "
            f"held back for them{f': {followers.failure}' if followers.failure else ''}",
        )


def cordon_lines(cordon: ShownCordon) -> Iterator[Text]:
    for path in cordon.log_dirs:
        yield _line("CORDON", "bold yellow", f"{path} is full: no new replica is put there")
    for path in cordon.by_operator:
        yield _line("CORDON", "bold", f"{path}: closed to new replicas by an operator, and left so")
    for path in cordon.kept_open:
        yield _line("OPEN", "bold yellow", f"{path} is full, and not cordoned: no other broker is known to have room")
    if cordon.failure is not None:
        yield _line("CORDON", "bold red", f"full log dirs cannot be cordoned, or not be opened: {cordon.failure}")


def _line(word: str, style: str, text: str) -> Text:
    return Text.assemble("  ", (f"{word:<8}", style), printable(text))


_CALM = ("under-ceiling", "off")


def reclaim_lines(reclaim: ShownReclaim, glyphs: Glyphs) -> Iterator[Text]:
    does = "deletes the oldest segments" if reclaim.mode == "apply" else "says what it would delete"
    paused = [("  ", ""), ("PAUSED", "bold yellow")] if reclaim.paused_by is not None else []
    yield Text.assemble(("Reclaim", "bold"), f"  ceiling of {reclaim.ceiling_percent} %  {glyphs.dot}  {does}", *paused)
    for device in reclaim.devices:
        yield from _device_lines(device)


def _device_lines(device: ShownDevice) -> Iterator[Text]:
    yield Text.assemble(f"  {printable(', '.join(device.log_dirs))}  ", (device.state, _style(device)))
    yield Text(f"{_INDENT}{printable(device.sentence)}", "" if device.state in _CALM else "yellow")
    if device.floor is not None:
        yield Text(f"{_INDENT}{printable(device.floor)}", "red")
    if device.last_cycle is not None:
        freed = f"{human_bytes(device.freed_bytes)} in {human_count(device.freed_segments)} segments"
        yield Text(
            f"{_INDENT}came back since its start: {freed}; last cycle {printable(device.last_cycle)} (brimline ledger)",
            "dim",
        )


def _style(device: ShownDevice) -> str:
    if device.is_troubled:
        return "bold red"
    return "bold green" if device.state in _CALM else "bold yellow"
