"""Orders to a gateway: what is written is read, and what is no order is refused with a sentence."""

from uuid import UUID

import pytest

from brimline.documents.codec import from_json
from brimline.documents.orders import (
    NO_LIMIT,
    AddressLimitsOrder,
    FenceOrder,
    FollowerFencesOrder,
    GatewayOrder,
    Lease,
    SkipsOrder,
    UnfenceOrder,
    WithheldFollower,
    WithheldTopic,
)

TOPIC_ID = UUID(int=7)
ORDERS = WithheldTopic(topic="orders", topic_id=TOPIC_ID, partitions=(0, 1))
OLD = WithheldTopic(topic="old", partitions=())


@pytest.mark.parametrize(
    "order",
    [
        Lease(seconds=5.0, full={"/data/a": "why"}),
        FenceOrder(log_dir="/data/a", reason="r", by="me"),
        UnfenceOrder(topic="t", by="me"),
        SkipsOrder(epoch=7, seconds=20.0),
        SkipsOrder(epoch=7, seconds=20.0, followers={2: (ORDERS, OLD), 3: ()}),
        FollowerFencesOrder(epoch=7, seconds=20.0, followers={3: WithheldFollower(reason="no room", topics=(ORDERS,))}),
        AddressLimitsOrder(connections=NO_LIMIT, connections_of={"10.0.0.5": 1000}),
        AddressLimitsOrder(per_second=0.5, per_second_of={}),
    ],
    ids=lambda order: order.OP,
)
def test_what_is_written_is_read(order: GatewayOrder) -> None:
    assert from_json(type(order), order.to_json()) == order


def test_it_is_written_as_every_gateway_reads_it() -> None:
    skips = SkipsOrder(epoch=7, seconds=20.0, followers={2: (ORDERS,)})
    limits = AddressLimitsOrder(connections=NO_LIMIT, connections_of={"10.0.0.5": 1000})

    assert skips.to_json() == {
        "v": 1,
        "op": "skips",
        "epoch": 7,
        "seconds": 20.0,
        "followers": {"2": [{"topic": "orders", "topicId": str(TOPIC_ID), "partitions": [0, 1]}]},
    }
    assert limits.to_json() == {
        "v": 1,
        "op": "address-limits",
        "connections": None,
        "connectionsOf": {"10.0.0.5": 1000},
    }


def test_a_topic_may_be_called_by_one_of_its_names() -> None:
    document = {
        "epoch": 1,
        "seconds": 1,
        "followers": {"3": [{"topicId": str(TOPIC_ID), "partitions": [7]}, {"topic": "old", "partitions": []}]},
    }

    assert from_json(SkipsOrder, document).followers == {3: (WithheldTopic(topic_id=TOPIC_ID, partitions=(7,)), OLD)}


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"x": []},
        {"-1": []},
        {"2": {}},
        {"2": ["orders"]},
        {"2": [{"partitions": [0]}]},
        {"2": [{"topic": 5, "partitions": [0]}]},
        {"2": [{"topic": "orders"}]},
        {"2": [{"topic": "orders", "partitions": [-1]}]},
        {"2": [{"topic": "orders", "partitions": ["0"]}]},
        {"2": [{"topic": "orders", "partitions": [2**31]}]},
        {"2": [{"topicId": "orders", "partitions": [0]}]},
    ],
    ids=str,
)
def test_what_is_no_set_of_skipped_followers_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match=r"^followers: "):
        from_json(SkipsOrder, {"epoch": 1, "seconds": 1, "followers": document})


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"3": []},
        {"3": {"reason": "no topics"}},
        {"x": {"topics": []}},
        {"3": {"topics": [{"topic": "orders", "partitions": [-1]}]}},
        {"3": {"topics": [{"partitions": [1]}]}},
    ],
    ids=str,
)
def test_what_is_no_set_of_fenced_followers_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match=r"^followers: "):
        from_json(FollowerFencesOrder, {"epoch": 1, "seconds": 1, "followers": document})


@pytest.mark.parametrize(
    "document",
    [
        {"connections": -1, "connectionsOf": {}},
        {"connections": "many", "connectionsOf": {}},
        {"connections": 1},
        {"connections": 1, "connectionsOf": None},
        {"connections": 1, "connectionsOf": {"10.0.0.5": None}},
        {"perSecond": None, "perSecondOf": {"10.0.0.5": -0.5}},
    ],
    ids=str,
)
def test_what_is_no_limit_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match=r"limit|connectionsOf"):
        from_json(AddressLimitsOrder, document)


@pytest.mark.parametrize("document", [{}, {"logDir": "/data/a", "topic": "t"}])
def test_a_fence_is_of_a_log_dir_or_of_a_topic(document: object) -> None:
    with pytest.raises(ValueError, match=r"^give either a log dir or a topic$"):
        from_json(FenceOrder, document)
