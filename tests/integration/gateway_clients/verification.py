"""The promise every test under load ends with: what was acknowledged is stored once, in order, where it was said."""

from collections.abc import Mapping, Sequence

from brimline.sandbox import Sandbox
from brimline.torture.history import ONCE, STORED, Acked, Client, Finished
from brimline.torture.history import Stored as StoredEvent
from brimline.torture.judge import Facts, acknowledged_stored, once_in_order
from brimline.torture.read_back import Stored, read_back
from tests.integration.gateway_clients.load import Load

Numbered = Sequence[tuple[int, Stored]]
"""Records with their numbers, in the order of the log."""


def verify_read_back(sandbox: Sandbox, load: Load, *, exactly_once: bool | None = None) -> dict[int, list[int]]:
    """Fails with what is missing, doubled, out of order or elsewhere; returns partition → stored numbers, in order.

    ``exactly_once``: by default asked of idempotent clients. The others may store a record twice and out of order
    when a connection breaks or an error is retried; none of theirs may be lost.
    """
    strict = load.client.is_idempotent if exactly_once is None else exactly_once
    stored = {partition: stored_by(sandbox, load, partition) for partition in set(load.partitions)}
    facts = _facts(load, stored, ONCE if strict else STORED)
    for each in load.acknowledged:
        facts.add(0, Acked(client=load.name, number=each.number, partition=each.partition, offset=each.offset))
    violations = [each.sentence for each in (*acknowledged_stored(facts), *once_in_order(facts))]
    assert not violations, f"{len(violations)} violations: {violations[:10]}"
    return {partition: [number for number, _ in records] for partition, records in stored.items()}


def verify_transactions(sandbox: Sandbox, load: Load) -> None:
    """Readers of committed records see every committed transaction whole, once and in order, and no aborted one.

    The outcome of a ``fatal`` one is not known to the application: it may be there, but only as a whole.
    """
    for partition in load.partitions:
        stored = stored_by(sandbox, load, partition, committed=True)
        assert [each.sentence for each in once_in_order(_facts(load, {partition: stored}, ONCE))][:10] == []
        seen = {number for number, _ in stored}
        for transaction in load.transactions:
            members = {each for each in transaction.numbers if load.partition_of(each) == partition}
            found = members & seen
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


def _facts(load: Load, stored: Mapping[int, Numbered], promise: str) -> Facts:
    facts = Facts(finished=Finished(minutes=0, faults=0))
    facts.add(0, Client(client=load.name, topic=load.topic, promise=promise))
    for partition, records in stored.items():
        for number, record in records:
            facts.add(
                0,
                StoredEvent(
                    topic=load.topic, partition=partition, offset=record.offset, client=load.name, number=number
                ),
            )
    return facts
