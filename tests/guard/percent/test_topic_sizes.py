"""Which topics fill the log dirs, how fast each grows, and that there are never too many of them."""

from brimline.guard.percent.feature import largest_topics, percentage_families
from brimline.guard.percent.percentages import PlainFigures, empty_column
from brimline.guard.percent.task import PercentReport
from brimline.guard.percent.topic_sizes import MOST_TOPICS, OTHERS, TopicHistory, TopicSize
from tests.guard.brokers import Row, log_dir

HOUR = 3600.0


def rows(**sizes: int) -> list[Row]:
    return [(name, 0, size, False) for name, size in sizes.items()]


def looked(history: TopicHistory, seconds: float, **sizes: int) -> dict[str, tuple[int, float | None]]:
    found = history.look([log_dir("/a", rows(**sizes))], seconds)
    return {each.topic: (each.bytes, each.growth) for each in found}


def test_a_topic_is_the_sum_of_its_replicas_there_the_largest_first() -> None:
    here = log_dir("/a", [("b", 0, 30, False), ("a", 0, 10, False), ("b", 1, 5, True), ("none", 0, 0, False)])

    found = TopicHistory().look([here, log_dir("/b", rows(a=7))], 0.0)

    assert [(each.log_dir, each.topic, each.bytes) for each in found] == [
        ("/a", "b", 35),
        ("/a", "a", 10),
        ("/b", "a", 7),
    ]


def test_growth_is_net_by_the_hour_and_not_known_at_first() -> None:
    history = TopicHistory()

    assert looked(history, 0.0, a=100, b=50) == {"a": (100, None), "b": (50, None)}
    assert looked(history, HOUR / 2, a=150, b=20, new=10) == {"a": (150, 100.0), "b": (20, -60.0), "new": (10, 20.0)}


def test_growth_is_that_of_the_last_hour_alone() -> None:
    history = TopicHistory()
    looked(history, 0.0, a=1000)
    looked(history, HOUR, a=2000)

    assert looked(history, 2 * HOUR, a=2100)["a"] == (2100, 100.0)


def test_what_is_beyond_the_largest_is_counted_as_one_and_grows_as_one() -> None:
    history = TopicHistory()
    many = {f"t{number:02}": 1000 - number for number in range(MOST_TOPICS)}

    first = looked(history, 0.0, **many, small=3, tiny=2)
    then = looked(history, HOUR, **many, small=4, tiny=2)

    assert len(first) == MOST_TOPICS + 1
    assert (first[OTHERS], then[OTHERS]) == ((5, None), (6, 1.0))


def test_the_figures_are_published_and_withdrawn_with_those_of_the_look() -> None:
    sizes = TopicHistory().look([log_dir("/a", rows(orders=10))], 0.0)
    plain = PlainFigures(seconds=0.0, current=empty_column(), future=empty_column(), unknown={}, topics=sizes)

    families, gone = percentage_families(PercentReport(plain=plain), "none")
    _, gone_then = percentage_families(PercentReport(), "none")

    by_name = {family.name: family for family in families}
    assert (by_name["topic_bytes"].label_values, list(by_name["topic_bytes"].values)) == ((("/a", "orders"),), [10])
    assert len(by_name["topic_growth_bytes_per_hour"]) == 0
    assert not {"topic_bytes", "topic_growth_bytes_per_hour"} & set(gone)
    assert {"topic_bytes", "topic_growth_bytes_per_hour"} <= set(gone_then)


def test_the_state_has_the_five_largest_of_each_log_dir_and_never_the_rest() -> None:
    sizes = TopicHistory().look([log_dir("/a", rows(**{f"t{n}": 9 - n for n in range(7)}))], 0.0)
    others = TopicSize(log_dir="/b", topic=OTHERS, bytes=sizes[0].bytes, growth=None)
    figures = PlainFigures(
        seconds=0.0, current=empty_column(), future=empty_column(), unknown={}, topics=(*sizes, others)
    )

    shown = largest_topics(PercentReport(plain=figures))

    assert [each.topic for each in shown] == ["t0", "t1", "t2", "t3", "t4"]
