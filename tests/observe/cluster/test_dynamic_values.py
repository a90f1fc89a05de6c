"""What was set is told apart from what is in force; refusals that time does not mend are named."""

from datetime import timedelta
from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest

from brimline.model import BrokerId, FailureKind, ObservationFailed
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.dynamic_values import BROKER, TOPIC, Place, alter_values, own_values

RATIO = Place(BROKER, "1", "log.cleaner.min.cleanable.ratio")
OF_TOPIC = Place(TOPIC, "gone", "min.cleanable.dirty.ratio")
DEFAULT, OF_BROKER = 5, 2


class Asked:
    def __init__(self, **answer: Any) -> None:
        self.answer = Answer(**answer)
        self.asked: list[object] = []

    def ask(self, _broker: BrokerId, request: object, _deadline: Deadline) -> Any:
        self.asked.append(request)
        return self.answer


def found(*synonyms: tuple[str, int], in_force: str) -> Any:
    listed = [Answer(name=RATIO.key, value=value, source=source) for value, source in synonyms]
    return Answer(name=RATIO.key, value=in_force, config_source=listed[0].source, synonyms=listed)


def described(*configs: Any) -> Asked:
    return Asked(
        results=[
            Answer(resource_type=4, resource_name="1", error_code=0, configs=configs),
            Answer(resource_type=2, resource_name="gone", error_code=3, configs=[]),
        ]
    )


def own(asked: Asked) -> Any:
    return own_values(cast(Connection, asked), BrokerId(1), [RATIO, OF_TOPIC], Deadline(timedelta(seconds=1)))


def test_a_value_is_told_as_it_was_set_not_as_kafka_spells_it() -> None:
    assert own(described(found(("1", OF_BROKER), ("0.5", DEFAULT), in_force="1.0"))) == {RATIO: "1"}


def test_a_value_that_is_not_yet_in_force_is_set() -> None:
    assert own(described(found(("1", OF_BROKER), ("0.5", DEFAULT), in_force="0.5"))) == {RATIO: "1"}


def test_what_stands_below_is_nothing_of_its_own() -> None:
    assert own(described(found(("0.5", DEFAULT), in_force="0.5"))) == {RATIO: None}


def test_nothing_is_asked_for_nothing() -> None:
    asked = described()

    assert own_values(cast(Connection, asked), BrokerId(1), [], Deadline(timedelta(seconds=1))) == {}
    assert asked.asked == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [(31, FailureKind.NOT_AUTHORIZED), (44, FailureKind.UNSUPPORTED), (40, FailureKind.UNSUPPORTED)],
)
def test_a_refusal_is_known_from_a_broker_that_cannot_now(code: int, kind: FailureKind) -> None:
    refused = Answer(resource_type=4, resource_name="1", error_code=code, error_message="no")

    with pytest.raises(ObservationFailed) as raised:
        alter_values(
            cast(Connection, Asked(responses=[refused])), BrokerId(1), {RATIO: "1"}, Deadline(timedelta(seconds=1))
        )
    assert raised.value.failure.kind is kind
