"""The gateway for people: what it refuses, why, since when, how much of it there was, and what to do about it."""

from collections.abc import Iterator

from rich.text import Text

from brimline.cli.gateway_shown import ShownAnswer, ShownFence, ShownGateway, ShownLately
from brimline.cli.glyphs import Glyphs, printable
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
