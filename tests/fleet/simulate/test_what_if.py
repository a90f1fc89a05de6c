from dataclasses import replace

import pytest

from brimline.fleet.simulate.what_if import RetentionRule, WhatIf, parse_retention
from brimline.model.reclaim import CleanupRules, TopicFacts
from tests.fleet.snapshots import broker_of_one_log

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "size", "milliseconds"),
    [
        ("orders.*=50GB", 50 * 10**9, None),
        ("orders.*=1GiB", 2**30, None),
        ("orders.*=7d", None, 7 * DAY_MS),
        ("orders.*=500ms", None, 500),
        ("orders.*=50GB|7d", 50 * 10**9, 7 * DAY_MS),
        ("orders.*=1000|2000", 1000, 2000),
        ("orders.*=-1|", -1, None),
        ("orders.*=|-1", None, -1),
        ("orders.*=99999999999999999999EB", 2**63 - 1, None),
    ],
)
def test_limits_as_people_write_them(text: str, size: int | None, milliseconds: int | None) -> None:
    rule = parse_retention(text)

    assert (rule.pattern.pattern, rule.retention_bytes, rule.retention_ms) == ("orders.*", size, milliseconds)


def test_the_last_equals_sign_ends_the_pattern() -> None:
    assert parse_retention("a=b=1h").pattern.pattern == "a=b"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("orders", "not a pattern with a limit"),
        ("=7d", "not a pattern with a limit"),
        ("orders=", "not a size"),
        ("orders=7 days", "not a size"),
        ("orders=1000", "1000 of what?"),
        ("orders(=7d", "not a pattern for names"),
        ("orders=1GB|soon", "not a length of time"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_retention(text)

    assert says in str(refused.value)


def test_the_last_rule_that_matches_the_whole_name_counts() -> None:
    tables = broker_of_one_log(600, [0, 10], rules=CleanupRules(retention_ms=5, retention_bytes=6))
    rules = [parse_retention(each) for each in ("orders=1h", "ord.*=1GB|", "order=9h", "x.*=9h")]

    (topic,) = WhatIf(retention=tuple(rules)).applied(tables).topics

    assert topic.rules is not None
    assert (topic.rules.retention_ms, topic.rules.retention_bytes) == (5, 10**9)


def test_nothing_is_changed_that_was_not_asked_for() -> None:
    tables = broker_of_one_log(600, [0, 10])

    applied = WhatIf().applied(tables)

    assert (applied.topics, applied.devices) == (tables.topics, tables.devices)
    assert WhatIf(ceiling_percent=30).applied(tables).devices[0].policy.ceiling_percent == 30


def test_of_a_topic_that_is_not_known_nothing_is_changed() -> None:
    unknown = TopicFacts(name="orders", rules=None)
    rule = RetentionRule(pattern=parse_retention("orders=1h").pattern, retention_ms=1)

    applied = WhatIf(retention=(rule,)).applied(replace(broker_of_one_log(600, [0, 10]), topics=(unknown,)))

    assert tuple(applied.topics) == (unknown,)
