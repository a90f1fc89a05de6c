"""What the guards of other replicas say of their brakes in ``/v1/state``, compared with this broker's and never obeyed.

A trim is a partition's, on every broker that holds it: what one guard keeps, another one may delete. **Unknown is not
none**: a guard that does not answer is named.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from brimline.decide.reclaim.brakes import Brakes
from brimline.documents.guard_state import GuardState, ReclaimDocument
from brimline.documents.notices import Notice, Weight
from brimline.guard.client import fetch_state
from brimline.guard.followers.words import named_brokers
from brimline.model import BrimlineError, BrokerId
from brimline.settings import keys
from brimline.settings.config import GuardConfig

_PATIENCE = 3.0
_AT_ONCE = 32
_MAKE_ALIKE = "a guard deletes by its own file, and a trim shrinks every replica: make the files alike"
_NAME_IT = f"name their guards in {keys.GUARDS.name}"
Answer: TypeAlias = ReclaimDocument | str | None
"""``None``: no ceiling there, so nothing is deleted; a text: why it is not known."""


def ask_others(
    config: GuardConfig,
    hosts: Mapping[BrokerId, str],
    guards: Sequence[str] = (),
    fetch: Callable[[str, float], tuple[GuardState, str]] = fetch_state,
) -> Mapping[BrokerId, Answer]:
    """Of every broker in ``hosts``. ``guards``: whom to ask; else those of the file, else these hosts."""
    port = config.number(keys.METRICS_PORT)
    by_host = {broker: f"http://{f'[{host}]' if ':' in host else host}:{port}" for broker, host in hosts.items()}
    urls = guards or config.guards or [url for broker, url in by_host.items() if hosts[broker]]

    def asked(url: str) -> tuple[str, GuardState | str]:
        try:
            return url, fetch(url, _PATIENCE)[0]
        except BrimlineError as error:
            return url, str(error)

    with ThreadPoolExecutor(min(len(urls), _AT_ONCE) or 1, thread_name_prefix="other-guards") as pool:
        answers = dict(pool.map(asked, urls))
    found = {each.broker.id: each.reclaim for each in answers.values() if isinstance(each, GuardState)}
    silent = "; ".join(each for each in answers.values() if isinstance(each, str))

    def answer(broker: BrokerId) -> Answer:
        if broker in found:
            reclaim = found[broker]
            return "its guard is of a version before" if reclaim and reclaim.keeps is None else reclaim
        own = answers.get(by_host[broker])
        return own if isinstance(own, str) else silent or "none of the guards that were asked is its guard"

    return {broker: answer(broker) for broker in hosts}


def compare(own: Brakes, *, is_paused: bool, others: Mapping[BrokerId, Answer]) -> Iterator[Notice]:
    unknown = {broker: other for broker, other in others.items() if isinstance(other, str)}
    if unknown:
        why = "; ".join(dict.fromkeys(unknown.values()))
        yield _notice("unknown", Weight.NOTE, f"the brakes of {named_brokers(unknown)} are unknown: {why}", _NAME_IT)
    for broker, other in sorted(others.items()):
        if not isinstance(other, ReclaimDocument) or other.keeps is None:
            continue
        apart = []
        if (other.paused is not None) != is_paused:
            why = "is not paused" if other.paused is None else f"is paused by {other.paused.by}: {other.paused.reason}"
            apart.append(f"it {why}; this one is {'paused' if is_paused else 'not'}")
        if lacks := own.lacks(other.keeps):
            apart.append(f"it keeps by {', '.join(lacks)} what this one deletes")
        if lacks := other.keeps.lacks(own):
            apart.append(f"it deletes what this one keeps by {', '.join(lacks)}")
        if apart:
            text = f"the guard of broker {broker} has other brakes: {'; '.join(apart)}"
            yield _notice(str(broker), Weight.WARNING, text, _MAKE_ALIKE)


def _notice(key: str, weight: Weight, text: str, cure: str) -> Notice:
    return Notice(feature="reclaim", key=f"brakes-{key}", weight=weight, word="BRAKES", text=text, cure=cure)
