"""What a refused client is told of a full log dir, with the topics that fill it; what lifts a fence."""

from brimline.disks.sentences import OFFLINE_CURE
from brimline.guard.gateway_link.feature import commit_notices, gateway_document, reasons_for_clients
from brimline.guard.gateway_link.task import GatewayReport
from brimline.guard.percent.percentages import PlainFigures, empty_column
from brimline.guard.percent.topic_sizes import TopicSize
from brimline.model import Bytes
from tests.guard.files import config
from tests.guard.gateway_link.test_findings import full_volume
from tests.guard.gateways import fence, state

GIB = 1 << 30
WHY = (
    "log dir /data/a is 99.9 % used with 1.00 MiB usable, "
    "limits disk.max.used.percent=99 and disk.min.free.bytes=1073741824"
)


def figures(**sizes: int) -> PlainFigures:
    topics = tuple(
        TopicSize(log_dir="/data/a", topic=topic, bytes=Bytes(size), growth=None) for topic, size in sizes.items()
    )
    return PlainFigures(seconds=0.0, current=empty_column(), future=empty_column(), unknown={}, topics=topics)


def told(figures: PlainFigures | None, added: str = "") -> str:
    settings = config(added)
    (reason,) = reasons_for_clients(full_volume(settings), figures, settings).values()
    return reason


def test_the_largest_three_are_named_with_their_sizes() -> None:
    assert told(figures(orders=60 * GIB, clicks=30 * GIB, audit=4 * GIB, small=1)) == (
        f"{WHY}, largest topics orders 60.0 GiB, clicks 30.0 GiB, audit 4.00 GiB"
    )


def test_before_the_broker_has_told_none_is_named() -> None:
    assert told(None) == told(figures()) == WHY


def test_where_acls_decide_who_sees_a_topic_none_is_named() -> None:
    assert told(figures(orders=60 * GIB), "authorizer.class.name=org.example.Authorizer\n") == WHY


def test_the_largest_committers_are_named_while_commits_are_refused() -> None:
    groups = [{"group": name, "requests": 9, "bytes": size} for name, size in (("a", 5 * GIB), ("b", 7), ("c", 6))]
    refusing = state(commits={"requests": 30, "bytes": 6 * GIB, "largest": groups})
    (notice,) = commit_notices(refusing)

    assert (notice.key, notice.facts["largest"]) == ("commits", groups)
    assert "a (5.00 GiB)" in notice.text
    assert [*commit_notices(state(commits={"requests": 30, "bytes": 6 * GIB, "largest": []}))] == []
    assert [*commit_notices(state())] == [], "a gateway of before does not tell"


def test_long_names_are_cut() -> None:
    assert told(figures(**{"x" * 249: GIB})) == f"{WHY}, largest topics {'x' * 59}… 1.00 GiB"


def test_room_alone_lifts_no_fence_of_a_log_dir_that_is_offline() -> None:
    report = GatewayReport(is_wanted=True, state=state(fences=[fence(), fence(logDir="/data/b")]))

    document = gateway_document(report, "server.properties", offline=frozenset({"/data/b"}))

    assert document is not None
    assert document.state is not None
    assert [each.what_to_do == OFFLINE_CURE for each in document.state.fences] == [False, True]
