"""The promise every test under load ends with: what was acknowledged is stored once, in order, where it was said."""

from collections import Counter
from itertools import pairwise

from brimline.sandbox import Sandbox
from tests.integration.gateway_clients.load import Load
from tests.integration.gateway_clients.read_back import Stored, read_back


def verify_read_back(sandbox: Sandbox, load: Load, *, exactly_once: bool | None = None) -> dict[int, list[int]]:
    """Fails with what is missing, doubled, out of order or elsewhere; returns partition → stored numbers, in order.

    ``exactly_once``: by default asked of idempotent clients. The others may store a record twice and out of order
    when a connection breaks or an error is retried; none of theirs may be lost.
    """
    strict = load.client.is_idempotent if exactly_once is None else exactly_once
    stored = {partition: stored_by(sandbox, load, partition) for partition in set(load.partitions)}
    for partition, records in stored.items():
        numbers = [number for number, _ in records]
        missing = sorted(load.acked(partition) - set(numbers))
        assert not missing, f"{load.name}, partition {partition}: {len(missing)} acknowledged but lost: {missing[:10]}"
        if strict:
            _verify_once_in_order(load, partition, numbers)
        _verify_offsets(load, partition, {stored.offset: number for number, stored in records})
    return {partition: [number for number, _ in records] for partition, records in stored.items()}


def verify_transactions(sandbox: Sandbox, load: Load) -> None:
    """Readers of committed records see every committed transaction whole, once and in order, and no aborted one.

    The outcome of a ``fatal`` one is not known to the application: it may be there, but only as a whole.
    """
    for partition in load.partitions:
        seen = [number for number, _ in stored_by(sandbox, load, partition, committed=True)]
        _verify_once_in_order(load, partition, seen)
        for transaction in load.transactions:
            members = {each for each in transaction.numbers if load.partition_of(each) == partition}
            found = members & set(seen)
            possible: dict[str, list[set[int]]] = {
                "committed": [members],
                "aborted": [set()],
                "fatal": [set(), members],
            }
            assert found in possible[transaction.outcome], (
                f"{load.name}, partition {partition}: {transaction}, but {sorted(found)} are read"
            )


def stored_by(sandbox: Sandbox, load: Load, partition: int, *, committed: bool = False) -> list[tuple[int, Stored]]:
    """The records of this load in one partition with their numbers; those of others are left out."""
    prefix = f"{load.name}-{partition}-"
    return [
        (int(stored.value.removeprefix(prefix)), stored)
        for stored in read_back(sandbox, load.topic, partition, committed=committed)
        if stored.value.startswith(prefix)
    ]


def _verify_once_in_order(load: Load, partition: int, numbers: list[int]) -> None:
    doubled = [number for number, times in Counter(numbers).items() if times > 1]
    assert not doubled, f"{load.name}, partition {partition}: {len(doubled)} stored more than once: {doubled[:10]}"
    for before, after in pairwise(numbers):
        assert before < after, f"{load.name}, partition {partition}: {after} is stored behind {before}"


def _verify_offsets(load: Load, partition: int, number_at: dict[int, int]) -> None:
    for each in load.acknowledged:
        if each.partition == partition and each.offset >= 0:
            found = number_at.get(each.offset)
            assert found == each.number, (
                f"{load.name}, partition {partition}: {each.number} was acknowledged at offset {each.offset}, "
                f"where {found} is stored"
            )
