import pytest

from brimline.gateway.rules.follower_orders import FencedFollower, read_full_followers
from brimline.model import BadInput


def test_a_document_is_read_into_partitions_by_name() -> None:
    topics = [{"topic": "orders", "topicId": None, "partitions": [0, 2]}, {"topic": "clicks", "partitions": [1]}]

    assert read_full_followers({"3": {"reason": "no room", "topics": topics}}) == [
        FencedFollower(broker=3, reason="no room", partitions=(("orders", 0), ("orders", 2), ("clicks", 1)))
    ]
    assert read_full_followers({}) == []


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
)
def test_anything_else_is_refused(document: object) -> None:
    with pytest.raises(BadInput):
        read_full_followers(document)
