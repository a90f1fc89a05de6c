"""Where partitions are, followed through everything that a broker does to its folders."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from brimline.gateway.rules.placement import COARSE_TICK_SECONDS, ID_PATIENCE_SECONDS, TICK_SECONDS, PlacementWatch
from tests.observe.scan.log_dir_trees import wait_for_a_tick

ONE = UUID("00000000-0000-0000-0000-000000000001")
OTHER = UUID("ffffffff-ffff-ffff-ffff-fffffffffffe")
IDS = {ONE: "AAAAAAAAAAAAAAAAAAAAAQ", OTHER: "_____________________g"}
UNIQUE = "0123456789abcdef0123456789abcdef"


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Tree:
    """Two log dirs and the watch over them."""

    def __init__(self, root: Path) -> None:
        self.a, self.b = root / "a", root / "b"
        self.a.mkdir()
        self.b.mkdir()
        self.clock = Clock()
        self.watch = PlacementWatch([str(self.a), str(self.b)], self.clock)

    def log_dir_of(self, topic: str, partition: int) -> Path | None:
        path = self.watch.placement.log_dir_of(topic, partition)
        return None if path is None else Path(path)

    def settle(self) -> None:
        """Everything that was done so far has been seen, and seen for the last time."""
        self.watch.refresh()
        self.clock.seconds += COARSE_TICK_SECONDS
        self.watch.refresh()
        wait_for_a_tick()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def make_folder(path: Path, topic_id: UUID | None = ONE) -> Path:
    path.mkdir()
    if topic_id is not None:
        write_id(path, topic_id)
    return path


def write_id(folder: Path, topic_id: UUID) -> None:
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {IDS[topic_id]}")


@contextmanager
def the_same_time_as_before(log_dir: Path) -> Iterator[None]:
    """What is done inside falls into the tick of the change before it."""
    before = log_dir.stat()
    yield
    os.utime(log_dir, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_nothing_is_known_before_the_first_look(tree: Tree) -> None:
    make_folder(tree.a / "orders-0")

    assert tree.log_dir_of("orders", 0) is None
    assert tree.watch.placement.name_of(ONE) is None
    assert tree.watch.placement.partitions_in(str(tree.a)) == 0


def test_partitions_are_found_by_name_and_by_id(tree: Tree) -> None:
    make_folder(tree.a / "orders-0")
    make_folder(tree.b / "orders-1")
    make_folder(tree.b / "dots.and-dashes-7", OTHER)

    assert tree.watch.refresh()

    assert tree.log_dir_of("orders", 0) == tree.a
    assert tree.log_dir_of("orders", 1) == tree.b
    assert tree.log_dir_of("orders", 2) is None
    assert tree.log_dir_of("dots.and-dashes", 7) == tree.b
    assert tree.watch.placement.name_of(ONE) == "orders"
    assert tree.watch.placement.name_of(OTHER) == "dots.and-dashes"


def test_partitions_are_counted(tree: Tree) -> None:
    make_folder(tree.a / "orders-0")
    make_folder(tree.b / "orders-1")
    make_folder(tree.b / "orders-2")
    make_folder(tree.b / "other-0", OTHER)
    make_folder(tree.b / "__remote_log_metadata-0", None)
    tree.watch.refresh()

    placement = tree.watch.placement

    assert placement.partitions_in(str(tree.b)) == 3, "Kafka's own topics are never refused"
    assert placement.topics_in(str(tree.b)) == {"orders": 2, "other": 1, "__remote_log_metadata": 1}
    assert placement.partitions_of("orders") == 3


@pytest.mark.parametrize("suffix", ["future", "delete", "stray"])
def test_a_folder_that_comes_or_goes_takes_no_writes(tree: Tree, suffix: str) -> None:
    make_folder(tree.a / f"orders-0.{UNIQUE}-{suffix}")

    tree.watch.refresh()

    assert tree.log_dir_of("orders", 0) is None
    assert tree.watch.placement.name_of(ONE) is None


def test_only_folders_with_a_replicas_name_count(tree: Tree) -> None:
    (tree.a / "orders-0").write_text("a file")
    make_folder(tree.a / "remote-log-index-cache")
    make_folder(tree.a / "lost+found")
    make_folder(tree.a / "__cluster_metadata-0")

    tree.watch.refresh()

    assert tree.watch.placement.partitions_in(str(tree.a)) == 0


def test_a_linked_folder_belongs_to_the_log_dir_that_has_the_link(tree: Tree, tmp_path: Path) -> None:
    (tree.a / "orders-0").symlink_to(make_folder(tmp_path / "elsewhere"))
    (tree.a / "orders-1").symlink_to(tmp_path / "nowhere")

    tree.watch.refresh()

    assert tree.log_dir_of("orders", 0) == tree.a
    assert tree.watch.placement.name_of(ONE) == "orders"
    assert tree.log_dir_of("orders", 1) is None


def test_a_copy_in_the_making_is_no_place(tree: Tree) -> None:
    make_folder(tree.a / "orders-0")
    make_folder(tree.b / f"orders-1.{UNIQUE}-future")
    make_folder(tree.b / f"orders-0.{UNIQUE}-future")

    tree.watch.refresh()

    assert tree.log_dir_of("orders", 0) == tree.a
    assert tree.log_dir_of("orders", 1) is None
    assert tree.watch.placement.partitions_in(str(tree.b)) == 0


def test_a_look_without_change_replaces_nothing(tree: Tree) -> None:
    make_folder(tree.a / "orders-0")
    tree.settle()
    before = tree.watch.placement

    assert not tree.watch.refresh()
    assert tree.watch.placement is before


def test_what_matters_not_replaces_nothing(tree: Tree) -> None:
    """Checkpoints are renamed into place every few seconds, and segments rolled."""
    folder = make_folder(tree.a / "orders-0")
    tree.settle()
    (tree.a / "recovery-point-offset-checkpoint").write_text("0")
    (folder / "00000000000000000000.log").write_text("x")

    assert not tree.watch.refresh()
    assert tree.watch.placement.name_of(ONE) == "orders"


def test_a_snapshot_stays_what_it_was(tree: Tree) -> None:
    make_folder(tree.a / "orders-0")
    tree.watch.refresh()
    before = tree.watch.placement
    (tree.a / "orders-0").rename(tree.a / f"orders-0.{UNIQUE}-delete")

    tree.settle()

    assert tree.log_dir_of("orders", 0) is None
    assert before.log_dir_of("orders", 0) == str(tree.a)


def test_a_finished_move_is_seen(tree: Tree) -> None:
    current = make_folder(tree.a / "orders-0")
    future = make_folder(tree.b / f"orders-0.{UNIQUE}-future")
    tree.settle()
    future.rename(tree.b / "orders-0")
    current.rename(tree.a / f"orders-0.{UNIQUE}-delete")

    assert tree.watch.refresh()

    assert tree.log_dir_of("orders", 0) == tree.b
    assert tree.watch.placement.partitions_in(str(tree.a)) == 0


@pytest.mark.parametrize(("source", "target"), [("a", "b"), ("b", "a")])
def test_while_a_move_ends_the_folder_that_was_renamed_last_counts(tree: Tree, source: str, target: str) -> None:
    make_folder(getattr(tree, source) / "orders-0")
    future = make_folder(getattr(tree, target) / f"orders-0.{UNIQUE}-future")
    wait_until_later(future)
    future.rename(getattr(tree, target) / "orders-0")

    tree.watch.refresh()

    assert tree.log_dir_of("orders", 0) == getattr(tree, target)
    assert tree.watch.placement.partitions_in(str(getattr(tree, source))) == 0


def wait_until_later(folder: Path) -> None:
    """Until a change of the folder would get another time than what was done before."""
    before = folder.stat().st_ctime_ns
    while folder.stat().st_ctime_ns == before:
        folder.touch()


@pytest.mark.parametrize("tick", [TICK_SECONDS, COARSE_TICK_SECONDS])
def test_a_change_within_the_tick_of_the_one_before_is_found_when_the_tick_is_over(tree: Tree, tick: float) -> None:
    whole_seconds = 1_700_000_000 * 1_000_000_000
    make_folder(tree.a / "orders-0")
    modified_ns = whole_seconds + (1 if tick == TICK_SECONDS else 0)
    os.utime(tree.a, ns=(modified_ns, modified_ns))
    tree.watch.refresh()
    with the_same_time_as_before(tree.a):
        make_folder(tree.a / "orders-1")
    tree.clock.seconds += tick * 0.9
    assert not tree.watch.refresh()

    tree.clock.seconds += tick * 0.2

    assert tree.watch.refresh()
    assert tree.log_dir_of("orders", 1) == tree.a


def test_an_id_that_appears_later_is_found_without_any_change_of_the_log_dir(tree: Tree) -> None:
    folder = make_folder(tree.a / "orders-0", topic_id=None)
    tree.settle()
    assert tree.log_dir_of("orders", 0) == tree.a
    assert tree.watch.placement.name_of(ONE) is None
    write_id(folder, ONE)

    assert tree.watch.refresh()

    assert tree.watch.placement.name_of(ONE) == "orders"


def test_an_id_that_is_found_by_a_listing_counts_though_the_folder_looks_the_same(tree: Tree) -> None:
    """As when the file is written within the tick in which the folder was made."""
    folder = make_folder(tree.a / "orders-0", topic_id=None)
    (folder / "partition.metadata").touch()
    tree.settle()
    write_id(folder, ONE)  # into the file that is there, of which the folder's times know nothing
    (tree.a / "recovery-point-offset-checkpoint").write_text("0")

    assert tree.watch.refresh()

    assert tree.watch.placement.name_of(ONE) == "orders"


def test_an_id_that_appears_very_late_is_found_at_the_next_listing(tree: Tree) -> None:
    """Not at every look: a broker that writes no ids at all has thousands of folders without one."""
    folder = make_folder(tree.a / "orders-0", topic_id=None)
    tree.settle()
    tree.clock.seconds += ID_PATIENCE_SECONDS
    tree.watch.refresh()
    write_id(folder, ONE)
    assert not tree.watch.refresh()
    (tree.a / "recovery-point-offset-checkpoint").write_text("0")

    assert tree.watch.refresh()

    assert tree.watch.placement.name_of(ONE) == "orders"


def test_a_topic_that_was_created_again_has_its_new_id(tree: Tree) -> None:
    folder = make_folder(tree.a / "orders-0", ONE)
    tree.settle()
    folder.rename(tree.a / f"orders-0.{UNIQUE}-delete")
    make_folder(tree.a / "orders-0", OTHER)

    tree.settle()

    assert tree.watch.placement.name_of(OTHER) == "orders"
    assert tree.watch.placement.name_of(ONE) is None


def test_a_new_id_is_seen_even_if_name_and_inode_are_the_old_ones(tree: Tree) -> None:
    """Many file systems give the inode of what was just removed to what is made next."""
    folder = make_folder(tree.a / "orders-0", ONE)
    tree.settle()
    wait_until_later(folder)
    (folder / "partition.metadata").unlink()
    write_id(folder, OTHER)
    (tree.a / "recovery-point-offset-checkpoint").write_text("0")

    tree.settle()

    assert tree.watch.placement.name_of(OTHER) == "orders"
    assert tree.watch.placement.name_of(ONE) is None


def test_a_log_dir_that_is_gone_keeps_what_was_last_known_and_is_named(tree: Tree) -> None:
    make_folder(tree.a / "orders-0")
    make_folder(tree.b / "orders-1")
    tree.settle()
    tree.a.rename(tree.a.with_name("gone"))
    make_folder(tree.b / "orders-2")

    tree.settle()

    assert tree.log_dir_of("orders", 0) == tree.a
    assert tree.log_dir_of("orders", 2) == tree.b
    assert list(tree.watch.problems) == [str(tree.a)]
    assert "No such file or directory" in tree.watch.problems[str(tree.a)]


def test_a_log_dir_that_is_back_is_listed_again(tree: Tree) -> None:
    make_folder(tree.a / "orders-0")
    tree.settle()
    elsewhere = tree.a.rename(tree.a.with_name("gone"))
    tree.watch.refresh()
    (elsewhere / "orders-0").rename(elsewhere / "orders-1")
    elsewhere.rename(tree.a)

    assert tree.watch.refresh()

    assert tree.log_dir_of("orders", 0) is None
    assert tree.log_dir_of("orders", 1) == tree.a
    assert tree.watch.problems == {}


@pytest.mark.parametrize("closed", ["orders-0", "orders-0/partition.metadata"])
def test_ids_that_may_not_be_read_are_named_until_they_may(closed: str) -> None:
    with tempfile.TemporaryDirectory() as root:  # not below a folder that only its owner may enter
        tree = Tree(Path(root))
        make_folder(tree.a / "orders-0")
        (tree.a / closed).chmod(0o000)
        with as_nobody(Path(root)):
            tree.settle()
        problem = tree.watch.problems.get(str(tree.a), "")
        assert tree.log_dir_of("orders", 0) == tree.a
        tree.clock.seconds += ID_PATIENCE_SECONDS
        (tree.a / closed).chmod(0o755)
        (tree.a / "recovery-point-offset-checkpoint").write_text("0")

        with as_nobody(Path(root)):
            assert tree.watch.refresh()

        assert "no permission to read the topic id in 1 folders (such as orders-0)" in problem
        assert tree.watch.problems == {}
        assert tree.watch.placement.name_of(ONE) == "orders"


@contextmanager
def as_nobody(root: Path) -> Iterator[None]:
    """Root may read everything; for a moment, be someone who may not."""
    if os.geteuid():
        yield
        return
    root.chmod(0o755)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_one_log_dir_can_be_looked_at_alone(tree: Tree) -> None:
    """So that one that hangs holds up no other."""
    make_folder(tree.a / "orders-0")
    make_folder(tree.b / "orders-1")

    assert tree.watch.refresh(str(tree.b))

    assert tree.log_dir_of("orders", 0) is None
    assert tree.log_dir_of("orders", 1) == tree.b
