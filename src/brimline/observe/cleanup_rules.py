"""The rules of clean-up of many brokers' topics, each as the broker that holds them computes it."""

from collections.abc import Mapping, Sequence

from brimline.model import BrokerId, Failure, FailureKind
from brimline.model.reclaim import CleanupRules
from brimline.observe.configs import describe_topic_configs_of_each
from brimline.observe.connection import Connection, Deadline
from brimline.observe.replica_facts import CLEANUP_KEYS, cleanup_rules

_TOPICS_AT_ONCE = 500
"""Of each broker: a busy one need not hold a large answer for everybody at once."""

Rules = Mapping[str, CleanupRules | Failure]


def look_at_cleanup_rules(
    connection: Connection, held: Mapping[BrokerId, Sequence[str]], deadline: Deadline
) -> Mapping[BrokerId, Rules]:
    """``held`` are the topics to ask each broker about. Whether a topic is internal is not asked here."""
    rules: dict[BrokerId, dict[str, CleanupRules | Failure]] = {broker: {} for broker in held}
    for start in range(0, max(map(len, held.values()), default=0), _TOPICS_AT_ONCE):
        some = {broker: names[start : start + _TOPICS_AT_ONCE] for broker, names in held.items()}
        answers = describe_topic_configs_of_each(connection, some, CLEANUP_KEYS, deadline.renewed())
        for broker, names in some.items():
            answer = answers[broker]
            rules[broker].update({name: _rules(name, answer) for name in names})
    return rules


def _rules(name: str, answer: "Mapping[str, Mapping[str, str | None] | Failure] | Failure") -> CleanupRules | Failure:
    if isinstance(answer, Failure):
        return answer
    silence = Failure(kind=FailureKind.KAFKA_ERROR, message="the broker left it out of its answer")
    return cleanup_rules(name, answer.get(name, silence), is_internal=False)
