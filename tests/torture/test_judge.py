"""Every invariant, with a history that keeps it and histories that break it: a check that never fails shows nothing."""

from collections.abc import Sequence

import pytest

from brimline.torture.history import (
    LEADER,
    NOTHING,
    ONCE,
    STORED,
    Acked,
    AnyEvent,
    Begun,
    Client,
    Complaint,
    Created,
    Emptied,
    Ended,
    Fault,
    Fenced,
    Finished,
    LogEnd,
    LogStart,
    Planned,
    Recovered,
    Released,
    Sent,
    Stored,
    Undone,
)
from brimline.torture.judge import INVARIANTS, judge

LOG_DIR = "/data/a"
BEGUN = Begun(at=0, seed=1, version="4.3.1", brokers=1, replicas=1, protected=["kept"], left_out={})
END = Finished(at=999, minutes=1, faults=1)
FENCED = Fenced(at=10, fence=1, broker=1, log_dir=LOG_DIR)
RELEASED = Released(at=20, fence=1, used_percent=50.0, is_still_full=False)


def client(promise: str = ONCE, topic: str = "kept") -> Client:
    return Client(at=0, client="c", topic=topic, promise=promise)


def sent(number: int, at: float = 1.0) -> Sent:
    return Sent(at=at, client="c", number=number)


def acked(number: int, offset: int, at: float = 2.0) -> Acked:
    return Acked(at=at, client="c", number=number, partition=0, offset=offset)


def stored(number: int, offset: int, topic: str = "kept") -> Stored:
    return Stored(at=900, topic=topic, partition=0, offset=offset, client="c", number=number)


def log_end(end: int, at: float, asked_at: float | None = None, epoch: int = 0) -> LogEnd:
    asked = at if asked_at is None else asked_at
    return LogEnd(at=at, fence=1, topic="kept", partition=0, leader_epoch=epoch, end=end, asked_at=asked)


def fault(name: str, *suspends: str, at: float = 10, target: str = "broker-1") -> Fault:
    return Fault(at=at, step=1, fault=name, target=target, suspends=list(suspends))


def broken(*events: AnyEvent, begun: Begun = BEGUN) -> dict[str, int]:
    """Invariant → the line of its first violation."""
    _, verdicts = judge([begun, *events])
    return {each.invariant.name: each.violations[0].line for each in verdicts if not each.holds}


GOOD: Sequence[AnyEvent] = (
    client(),
    sent(0),
    sent(1),
    acked(0, 0),
    FENCED,
    log_end(1, 11),
    log_end(1, 14),
    log_end(1, 19),
    RELEASED,
    acked(1, 1, at=25),
    stored(0, 0),
    stored(1, 1),
    Recovered(at=30, what="gateway-1", works=True),
    END,
)


def test_a_good_history_holds_every_invariant() -> None:
    assert broken(*GOOD) == {}


def test_every_invariant_is_seen_to_fail_here() -> None:
    seen = {name for _, broken_by, _ in VIOLATIONS for name in broken_by}

    assert seen == {each.name for each in INVARIANTS}


VIOLATIONS: list[tuple[str, dict[str, int], list[AnyEvent]]] = [
    ("acknowledged and not there", {"acknowledged-stored": 4}, [client(), sent(0), acked(0, 0), END]),
    (
        "at another offset than was told",
        {"acknowledged-stored": 4},
        [client(), sent(0), acked(0, 5), stored(0, 0), END],
    ),
    ("not there, acks=all", {"acknowledged-stored": 3}, [client(STORED), acked(0, 0), END]),
    ("not there, acks=1 with one replica", {"acknowledged-stored": 3}, [client(LEADER), acked(0, 0), END]),
    (
        "acknowledged after its log was taken away",
        {"acknowledged-stored": 4},
        [client(), Emptied(at=1, topic="kept", partition=0), acked(0, 0, at=2), END],
    ),
    ("twice", {"once-in-order": 4}, [client(), stored(0, 0), stored(0, 1), END]),
    ("twice, with another between", {"once-in-order": 5}, [client(), stored(0, 0), stored(1, 1), stored(0, 2), END]),
    ("out of order", {"once-in-order": 4}, [client(), stored(1, 0), stored(0, 1), END]),
    (
        "sent and stored behind the fence",
        {"nothing-behind-the-fence": 7},
        [client(NOTHING), FENCED, log_end(1, 11), sent(7, at=12), sent(8), log_end(2, 13), RELEASED, stored(7, 1), END],
    ),
    (
        "retried and stored behind the fence",
        {"nothing-behind-the-fence": 6},
        [client(), FENCED, log_end(1, 11), log_end(1, 14), log_end(2, 15), RELEASED, END],
    ),
    (
        "stored behind a fence that is still up at the end",
        {"nothing-behind-the-fence": 6},
        [client(), FENCED, log_end(1, 11), log_end(1, 14), log_end(2, 500), END],
    ),
    (
        "no longer fenced, and full",
        {"full-stays-fenced": 3},
        [FENCED, Released(at=20, fence=1, used_percent=90.0, is_still_full=True), END],
    ),
    (
        "a log start that nobody planned",
        {"only-planned-deleted": 3},
        [
            Planned(at=1, broker=1, topic="plain", partition=0, target=5),
            LogStart(at=2, topic="plain", partition=0, start=6),
            END,
        ],
    ),
    (
        "a protected topic's log start, on record",
        {"only-planned-deleted": 3},
        [
            Planned(at=1, broker=1, topic="kept", partition=0, target=5),
            LogStart(at=2, topic="kept", partition=0, start=5),
            END,
        ],
    ),
    (
        "no space",
        {"no-enospc": 2},
        [Complaint(at=5, process="broker-1", what="no-space", line="No space left on device"), END],
    ),
    (
        "no space after the fault that excuses it",
        {"no-enospc": 4},
        [
            fault("disk-last-byte", "no-enospc"),
            Undone(at=20, step=1, fault="disk-last-byte"),
            Complaint(at=21, process="broker-1", what="no-space", line="No space left on device"),
            END,
        ],
    ),
    (
        "no space at another broker",
        {"no-enospc": 3},
        [
            fault("disk-last-byte", "no-enospc"),
            Complaint(at=15, process="broker-2", what="no-space", line="No space left on device"),
            END,
        ],
    ),
    ("a broker ended", {"brokers-alive": 2}, [Ended(at=5, process="broker-1", exit_code=1, said=""), END]),
    ("a controller ended", {"brokers-alive": 2}, [Ended(at=5, process="controller", exit_code=1, said=""), END]),
    ("a gateway ended", {"brimline-alive": 2}, [Ended(at=5, process="gateway-1", exit_code=1, said=""), END]),
    ("a bug", {"brimline-alive": 2}, [Complaint(at=5, process="guard-1", what="bug", line="Traceback"), END]),
    (
        "no acknowledgement at the end",
        {"recovers": 2},
        [Recovered(at=5, what="client c", works=False, why="silent"), END],
    ),
    ("a run that did not end, and read nothing back", {"recovers": 3}, [client(), acked(0, 0)]),
]


@pytest.mark.parametrize(
    ("broken_by", "events"), [each[1:] for each in VIOLATIONS], ids=[each[0] for each in VIOLATIONS]
)
def test_a_violation_is_found_where_it_is(broken_by: dict[str, int], events: list[AnyEvent]) -> None:
    assert broken(*events) == broken_by


EXCUSED: list[tuple[str, list[AnyEvent]]] = [
    ("acks=0", [client(NOTHING), acked(0, 0), END]),
    (
        "trimmed by a plan on record",
        [
            client(topic="plain"),
            acked(0, 0),
            Planned(at=1, broker=1, topic="plain", partition=0, target=5),
            LogStart(at=2, topic="plain", partition=0, start=5),
            END,
        ],
    ),
    ("the only copy was taken away", [client(), acked(0, 0), Emptied(at=5, topic="kept", partition=0), END]),
    ("the topic was deleted", [client(), acked(0, 0), stored(1, 0), stored(0, 1), Created(at=5, topic="kept"), END]),
    (
        "on its way when the fence came up",
        [client(), sent(0, at=9), FENCED, log_end(0, 11), log_end(1, 12), log_end(1, 19), RELEASED, stored(0, 0), END],
    ),
    (
        "stored when the fence was gone",
        [client(), FENCED, log_end(0, 11), log_end(0, 19), RELEASED, sent(0, at=12), log_end(1, 21), stored(0, 0), END],
    ),
    (
        "stored under another leader",
        [client(), FENCED, log_end(0, 11), log_end(0, 14), log_end(3, 15, epoch=1), sent(0, at=12), stored(0, 0), END],
    ),
    (
        "a fault that fills the last byte",
        [
            fault("disk-last-byte", "no-enospc", "brokers-alive"),
            Complaint(at=15, process="broker-1", what="no-space", line="No space left on device"),
            Ended(at=15, process="broker-1", exit_code=1, said=""),
            Undone(at=20, step=1, fault="disk-last-byte"),
            END,
        ],
    ),
]


@pytest.mark.parametrize("events", [each[1] for each in EXCUSED], ids=[each[0] for each in EXCUSED])
def test_what_nobody_promised_is_no_violation(events: list[AnyEvent]) -> None:
    assert broken(*events) == {}


def test_acks_1_promises_nothing_where_leaders_change() -> None:
    several = Begun(at=0, seed=1, version="4.3.1", brokers=3, replicas=3, protected=[], left_out={})

    assert broken(client(LEADER), acked(0, 0), END, begun=several) == {}
