from brimline.gateway.counters import OTHER, RefusalCount, RefusedPartition


def test_invented_names_push_no_partition_out() -> None:
    count = RefusalCount()
    for number in range(5_000):
        count.add(RefusedPartition("orders", 0, f"invented {number}"), 1)
    count.add(RefusedPartition("clicks", 3, "honest 1"), 10)
    count.add(RefusedPartition("clicks", 3, "honest 1"), 10)

    assert count.rows[RefusedPartition("clicks", 3, "honest 1")] == (2, 20)
    assert count.rows[RefusedPartition("orders", 0, OTHER)] == (4_992, 4_992)
    assert len(count.rows) == 10


def test_partitions_beyond_the_bound_are_counted_together() -> None:
    count = RefusalCount()
    for number in range(1_200):
        count.add(RefusedPartition("orders", number, "client 1"), 1)

    assert count.rows[RefusedPartition(OTHER, -1, OTHER)] == (200, 200)
    assert sum(batches for batches, _ in count.rows.values()) == 1_200
