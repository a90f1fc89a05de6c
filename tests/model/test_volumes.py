"""Which log dirs share a volume, and what a cluster adds up to."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.model import LogDirDescription, Reason, totals_of, volumes_of
from tests.cli.log_dirs.clusters import TIMED_OUT, broker, log_dir, row


def paths(*log_dirs: LogDirDescription) -> list[list[str]]:
    return [[member.path for member in volume.log_dirs] for volume in volumes_of(log_dirs)]


def test_log_dirs_that_report_the_same_bytes_and_fit_together_share_a_volume() -> None:
    a = log_dir("/a", [row("t", 0, 30)], total=100, usable=40)
    b = log_dir("/b", [row("t", 1, 30)], total=100, usable=40)

    assert paths(b, a) == [["/a", "/b"]]


def test_mirrored_disks_do_not_fit_into_one() -> None:
    a = log_dir("/a", [row("t", 0, 60)], total=100, usable=40)
    b = log_dir("/b", [row("t", 1, 60)], total=100, usable=40)

    assert paths(a, b) == [["/a"], ["/b"]]


def test_fresh_disks_of_one_size_are_apart() -> None:
    assert paths(log_dir("/a", total=100, usable=99), log_dir("/b", total=100, usable=99)) == [["/a"], ["/b"]]


def test_other_bytes_are_another_volume() -> None:
    a = log_dir("/a", [row("t", 0, 1)], total=100, usable=40)
    b = log_dir("/b", [row("t", 1, 1)], total=100, usable=41)

    assert paths(a, b) == [["/a"], ["/b"]]


MIB = 1 << 20


def busy(path: str, partition: int, *, stored: int, usable: int) -> LogDirDescription:
    return log_dir(path, [row("t", partition, stored)], total=1000 * MIB, usable=usable)


def test_a_busy_volume_is_one_though_its_log_dirs_were_measured_a_moment_apart() -> None:
    a = busy("/a", 0, stored=50 * MIB, usable=600 * MIB)
    b = busy("/b", 1, stored=50 * MIB, usable=600 * MIB - 65_536)

    (volume,) = volumes_of([a, b])

    assert [member.path for member in volume.log_dirs] == ["/a", "/b"]
    assert volume.usable_bytes == 600 * MIB - 65_536


def test_nearly_alike_is_not_enough_when_little_is_stored() -> None:
    a = busy("/a", 0, stored=1000, usable=990 * MIB)
    b = busy("/b", 1, stored=1000, usable=990 * MIB - 4096)

    assert paths(a, b) == [["/a"], ["/b"]]


def test_unknown_stays_unknown_and_alone() -> None:
    volumes = volumes_of([log_dir("/b", error=56), log_dir("/a", [row("t", 0, 1)])])

    assert [volume.log_dirs[0].path for volume in volumes] == ["/a", "/b"]
    assert [(volume.total_bytes, volume.used_bytes, volume.used_percent) for volume in volumes] == [(None,) * 3] * 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=6))
def test_every_log_dir_is_on_exactly_one_volume(shapes: list[tuple[int, int, int]]) -> None:
    log_dirs = [
        log_dir(f"/{number}", [row("t", number, stored)], total=total, usable=min(usable, total))
        for number, (total, usable, stored) in enumerate(shapes)
    ]

    assert sorted(path for members in paths(*log_dirs) for path in members) == [each.path for each in log_dirs]


def test_totals_count_a_shared_volume_and_a_remote_log_once() -> None:
    tiered = row("t", 0, 30, remote=500, only_local=7)
    totals = totals_of(
        [
            broker(
                1,
                log_dir("/a", [tiered], total=100, usable=40),
                log_dir("/b", [row("u", 0, 20)], total=100, usable=40),
                log_dir("/c", error=56),
            ),
            broker(2, log_dir("/a", [row("t", 0, 25, remote=500, only_local=Reason.FOLLOWER)], total=50, usable=10)),
            broker(3, failure=TIMED_OUT),
        ]
    )

    assert (totals.brokers, totals.failed_brokers, totals.volumes, totals.unknown_volumes) == (3, 1, 3, 1)
    assert (totals.total_bytes, totals.usable_bytes, totals.used_bytes) == (150, 50, 100)
    assert (totals.replicas, totals.replica_bytes) == (3, 75)
    assert (totals.remote_bytes, totals.only_local_bytes) == (500, 7)


def test_totals_of_some_topics_still_see_the_whole_volumes() -> None:
    answer = broker(
        1,
        log_dir("/a", [row("t", 0, 30)], total=100, usable=40),
        log_dir("/b", [row("u", 0, 20)], total=100, usable=40),
    )

    totals = totals_of([answer], frozenset({"u"}))

    assert (totals.total_bytes, totals.replicas, totals.replica_bytes) == (100, 1, 20)


def test_a_sum_of_nothing_known_is_unknown() -> None:
    totals = totals_of([broker(1, log_dir("/a", [row("t", 0, 1)]))])

    assert (totals.total_bytes, totals.used_percent, totals.remote_bytes, totals.only_local_bytes) == (None,) * 4


def test_usable_beyond_total_means_that_nothing_is_used() -> None:
    [volume] = volumes_of([log_dir("/a", total=100, usable=150)])
    totals = totals_of([broker(1, log_dir("/a", total=100, usable=150))])

    assert (volume.used_bytes, volume.used_percent) == (0, 0.0)
    assert (totals.used_bytes, totals.used_percent) == (0, 0.0)


def test_the_largest_sizes_add_up_without_wrapping_around() -> None:
    most = 2**63 - 1
    rows = [row("t", number, most, remote=most, only_local=most) for number in range(2)]

    totals = totals_of([broker(1, log_dir("/a", rows))])

    assert (totals.replica_bytes, totals.remote_bytes, totals.only_local_bytes) == (2 * most,) * 3
