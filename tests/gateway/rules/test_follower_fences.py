from brimline.documents.orders import WithheldFollower, WithheldTopic
from brimline.gateway.rules.follower_orders import FencedFollower, fenced_followers


def test_an_order_is_read_into_partitions_by_name() -> None:
    topics = (WithheldTopic(topic="orders", partitions=(0, 2)), WithheldTopic(topic="clicks", partitions=(1,)))

    assert fenced_followers({3: WithheldFollower(reason="no room", topics=topics)}) == [
        FencedFollower(broker=3, reason="no room", partitions=(("orders", 0), ("orders", 2), ("clicks", 1)))
    ]
    assert fenced_followers({}) == []
