"""Who is refused is said when it begins, and the sum when it is over."""

import pytest

from brimline.gateway.counters import RefusalCount, RefusedPartition
from brimline.gateway.refusal_news import APART, RefusalNews
from brimline.service import log_lines


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(log_lines, "listeners", [lambda _level, event, sentence: found.append((event, sentence))])
    return found


def refuse(count: RefusalCount, client: str, topic: str, batches: int = 1, partition: int = 0) -> None:
    for _ in range(batches):
        count.add(RefusedPartition(topic, partition, client), 100)


def test_a_spell_of_refusals(said: list[tuple[str, str]]) -> None:
    count, news = RefusalCount(), RefusalNews(enforces=True)
    news.look(count, 0.0)
    refuse(count, "kcat", "orders", 3)
    news.look(count, 1.0)
    refuse(count, "kcat", "orders", 2, partition=7)
    news.look(count, 31.0)
    assert said == [("clients-refused", "Produce is refused: kcat for topic orders")]

    news.look(count, 31.0 + APART)

    assert said[1:] == [
        ("refusals-over", "refusals ended: 5 batches (500 B) were refused within 30 s, of kcat for topic orders")
    ]


def test_clients_that_come_later_are_named_at_once_and_many_of_them_once_a_minute(said: list[tuple[str, str]]) -> None:
    count, news = RefusalCount(), RefusalNews(enforces=True)
    for second in range(120):
        refuse(count, f"client {second}", "orders", partition=second)
        news.look(count, float(second))

    assert [event for event, _ in said] == ["clients-refused"] * 11
    assert said[1][1] == "Produce is refused: client 1 for topic orders"
    assert said[10][1].endswith("client 12 for topic orders and 57 more")


def test_the_next_spell_counts_from_its_own_start(said: list[tuple[str, str]]) -> None:
    count, news = RefusalCount(), RefusalNews(enforces=False)
    refuse(count, "kcat", "orders", 10)
    news.look(count, 0.0)
    news.look(count, APART)

    refuse(count, "kcat", "orders", 1)
    news.look(count, 500.0)
    news.look(count, 500.0 + APART)

    assert said[2] == ("clients-refused", "Produce would be refused: kcat for topic orders")
    assert said[3][1].startswith("refusals ended: 1 batch (100 B) would have been refused")
