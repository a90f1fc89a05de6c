from brimline.documents.orders import HeldFollower, HeldTopic
from brimline.gateway.rules.follower_orders import FencedFollower, fenced_followers


def test_an_order_is_read_into_partitions_by_name() -> None:
    topics = (HeldTopic(topic="orders", partitions=(0, 2)), HeldTopic(topic="clicks", partitions=(1,)))

    assert fenced_followers({3: HeldFollower(reason="no room", topics=topics)}) == [
        FencedFollower(broker=3, reason="no room", partitions=(("orders", 0), ("orders", 2), ("clicks", 1)))
    ]
    assert fenced_followers({}) == []
