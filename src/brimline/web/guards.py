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
    return [row for answer in answers for row in _rows(answer, cluster)]


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


def _rows(answer: GuardAnswer, cluster: str) -> list[ShownVolume]:
    state = answer.state
    if state is None:
        return [
            ShownVolume(
                cluster=cluster, broker=None, device=answer.url, log_dirs=(), state="unknown", why=answer.problem
            )
        ]
    base = f"{answer.url.rstrip('/')}/"
    return [shown_volume(volume, state, cluster, base) for volume in state.volumes]
