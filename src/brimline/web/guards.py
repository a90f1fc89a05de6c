"""A cluster, asked of the guards of its brokers: all at once, and none waits for another."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from brimline.documents.guard_state import GuardState
from brimline.documents.history import Happening, Timeline
from brimline.guard.client import fetch_history, fetch_state
from brimline.model import BrimlineError
from brimline.pages.guard_page import shown_volume
from brimline.pages.volumes_page import ShownVolume

PATIENCE = 3.0
_AT_ONCE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardAnswer:
    """``state`` is ``None`` where no guard answered; then ``problem`` says why."""

    url: str
    state: GuardState | None = None
    history: Timeline | None = None
    problem: str = ""


Ask = Callable[[str], GuardAnswer]


def ask_guard(url: str) -> GuardAnswer:
    try:
        state, _ = fetch_state(url, PATIENCE)
        return GuardAnswer(url=url, state=state, history=_history(url))
    except BrimlineError as error:
        return GuardAnswer(url=url, problem=str(error))


def _history(url: str) -> Timeline | None:
    """A guard of before has none."""
    try:
        return fetch_history(url, PATIENCE)
    except BrimlineError:
        return None


def ask_guards(urls: Sequence[str], ask: Ask = ask_guard) -> list[GuardAnswer]:
    with ThreadPoolExecutor(min(len(urls), _AT_ONCE) or 1, thread_name_prefix="ask") as pool:
        return list(pool.map(ask, urls))


def rows_of(answers: Sequence[GuardAnswer], cluster: str) -> list[ShownVolume]:
    return [
        shown_volume(volume, answer.state, cluster, f"{answer.url.rstrip('/')}/")
        for answer in answers
        if answer.state is not None
        for volume in answer.state.volumes
    ]


def observing(answers: Sequence[GuardAnswer]) -> str:
    """Which brokers' guards refuse nothing; empty if all enforce."""
    states = [answer.state for answer in answers if answer.state is not None]
    brokers = [str(state.broker.id) for state in states if not state.guard.is_enforcing]
    return f"Observe mode, refuses nothing: broker {', '.join(brokers)}. " if brokers else ""


def history_of(answers: Sequence[GuardAnswer]) -> Timeline:
    """What happened on all brokers, each event with its broker in front."""
    known = [answer.history for answer in answers if answer.history is not None]
    events = (_with_broker(event, each.broker) for each in known for event in each.events)
    return Timeline(
        broker=-1,
        events=tuple(sorted(events, key=lambda event: event.at)),
        left_out=sum(each.left_out for each in known),
        incomplete=tuple(f"broker {each.broker}: {sentence}" for each in known for sentence in each.incomplete),
    )


def _with_broker(event: Happening, broker: int) -> Happening:
    return replace(event, by=f"broker {broker}, {event.by}")
