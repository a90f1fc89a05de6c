import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.model.scan import FileKind, FolderKind
from brimline.observe.scan.names import (
    NO_OFFSET,
    NOT_A_SEGMENT_FILE,
    FolderName,
    file_kind,
    read_folder_name,
    read_segment_names,
)

TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=249).filter(lambda topic: topic not in (".", ".."))
PARTITIONS = st.integers(0, 2**31 - 1)
SUFFIXES = {"-future": FolderKind.FUTURE, "-delete": FolderKind.DELETE, "-stray": FolderKind.STRAY}


def renamed(topic: str, partition: int, suffix: str) -> str:
    """Kafka's own LocalLog.logDirNameWithSuffix, which cuts all but future names."""
    end = f"-{partition}.{uuid.uuid4().hex}{suffix}"
    return (topic if suffix == "-future" else topic[: 255 - len(end)]) + end


@given(TOPICS, PARTITIONS)
def test_a_current_folder(topic: str, partition: int) -> None:
    expected = FolderName(kind=FolderKind.CURRENT, topic=topic, partition=partition)

    assert read_folder_name(f"{topic}-{partition}") == expected


@given(TOPICS, PARTITIONS, st.sampled_from(list(SUFFIXES)))
def test_a_renamed_folder(topic: str, partition: int, suffix: str) -> None:
    name = renamed(topic, partition, suffix)

    read = read_folder_name(name)

    assert (read.kind, read.partition) == (SUFFIXES[suffix], partition)
    if read.topic_may_be_cut:
        assert read.topic is not None
        assert topic.startswith(read.topic)
    else:
        assert read.topic == topic


@pytest.mark.parametrize(
    ("name", "kind", "topic", "partition"),
    [
        ("orders-0", FolderKind.CURRENT, "orders", 0),
        ("a.b-1.x-delete-0", FolderKind.CURRENT, "a.b-1.x-delete", 0),
        ("a.b-1.x-delete-0.0123456789abcdef0123456789abcdef-delete", FolderKind.DELETE, "a.b-1.x-delete", 0),
        ("a.b-1.x-delete", FolderKind.DELETE, "a.b", 1),
        ("-delete-3", FolderKind.CURRENT, "-delete", 3),
        ("remote-log-index-cache", FolderKind.REMOTE_INDEX_CACHE, None, -1),
        ("__cluster_metadata-0", FolderKind.METADATA_LOG, "__cluster_metadata", 0),
        ("__cluster_metadata-1", FolderKind.CURRENT, "__cluster_metadata", 1),
        ("lost+found", FolderKind.FOREIGN, None, -1),
        ("orders-delete", FolderKind.FOREIGN, None, -1),
        ("orders-", FolderKind.FOREIGN, None, -1),
        ("-1", FolderKind.FOREIGN, None, -1),
        ("orders-2147483648", FolderKind.FOREIGN, None, -1),
        ("orders-٣", FolderKind.FOREIGN, None, -1),
        ("backup 2024", FolderKind.FOREIGN, None, -1),
    ],
)
def test_folders(name: str, kind: FolderKind, topic: str | None, partition: int) -> None:
    read = read_folder_name(name)

    assert (read.kind, read.topic, read.partition) == (kind, topic, partition)


@pytest.mark.parametrize(
    ("folder", "name", "kind"),
    [
        (FolderKind.CURRENT, "00000000000000000000.log.deleted", FileKind.DELETED),
        (FolderKind.CURRENT, "00000000000000000000.snapshot.deleted", FileKind.DELETED),
        (FolderKind.CURRENT, "00000000000000000000.timeindex.cleaned", FileKind.CLEANED),
        (FolderKind.CURRENT, "00000000000000000000.log.swap", FileKind.SWAP),
        (FolderKind.CURRENT, "leader-epoch-checkpoint", FileKind.LEADER_EPOCH_CHECKPOINT),
        (FolderKind.CURRENT, "leader-epoch-checkpoint.tmp", FileKind.TEMPORARY),
        (FolderKind.FUTURE, "partition.metadata", FileKind.PARTITION_METADATA),
        (FolderKind.CURRENT, "quorum-state", FileKind.FOREIGN),
        (FolderKind.CURRENT, "core.4711", FileKind.FOREIGN),
        (FolderKind.LOG_DIR, ".brimline-ballast", FileKind.BALLAST),
        (FolderKind.CURRENT, ".brimline-ballast", FileKind.FOREIGN),
        (FolderKind.METADATA_LOG, "quorum-state", FileKind.QUORUM_STATE),
        (FolderKind.METADATA_LOG, "00000000000000000012-0000000001.checkpoint", FileKind.METADATA_SNAPSHOT),
        (FolderKind.METADATA_LOG, "00000000000000000012-0000000001-7.checkpoint.part", FileKind.TEMPORARY),
        (FolderKind.METADATA_LOG, "00000000000000000012-0000000001.checkpoint.deleted", FileKind.DELETED),
        (FolderKind.REMOTE_INDEX_CACHE, "0_6RlVuFSQQ7mV1P0fBRNaVA.timeindex", FileKind.REMOTE_INDEX),
        (FolderKind.REMOTE_INDEX_CACHE, "0_6RlVuFSQQ7mV1P0fBRNaVA.index.deleted", FileKind.DELETED),
        (FolderKind.REMOTE_INDEX_CACHE, "notes.txt", FileKind.FOREIGN),
        (FolderKind.LOG_DIR, "meta.properties", FileKind.META_PROPERTIES),
        (FolderKind.LOG_DIR, ".lock", FileKind.LOCK),
        (FolderKind.LOG_DIR, ".kafka_cleanshutdown", FileKind.CLEAN_SHUTDOWN),
        (FolderKind.LOG_DIR, "replication-offset-checkpoint", FileKind.OFFSET_CHECKPOINT),
        (FolderKind.LOG_DIR, "replication-offset-checkpoint.tmp", FileKind.TEMPORARY),
        (FolderKind.LOG_DIR, "bootstrap.checkpoint", FileKind.BOOTSTRAP_CHECKPOINT),
        (FolderKind.LOG_DIR, "ballast.tmp", FileKind.FOREIGN),
        (FolderKind.FOREIGN, "00000000000000000000.log.deleted", FileKind.FOREIGN),
    ],
)
def test_files(folder: FolderKind, name: str, kind: FileKind) -> None:
    assert file_kind(folder, name) is kind


SEGMENT_KINDS = {
    ".log": FileKind.LOG,
    ".index": FileKind.OFFSET_INDEX,
    ".timeindex": FileKind.TIME_INDEX,
    ".txnindex": FileKind.TXN_INDEX,
    ".snapshot": FileKind.PRODUCER_SNAPSHOT,
}


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.sampled_from(list(SEGMENT_KINDS))), min_size=1))
def test_segment_files(files: list[tuple[int, str]]) -> None:
    kinds, offsets = read_segment_names([f"{offset:020d}{suffix}".encode() for offset, suffix in files])

    assert list(zip(offsets.tolist(), kinds.tolist(), strict=True)) == [
        (offset, SEGMENT_KINDS[suffix]) for offset, suffix in files
    ]


ALMOST = st.one_of(
    st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name and b"/" not in name),
    st.text("0123456789:/a", min_size=18, max_size=21).map(lambda digits: digits.replace("/", "-").encode() + b".log"),
    st.sampled_from([b"00000000000000000000.logx", b"99999999999999999999.log", b"09223372036854775808.log"]),
)


@given(st.lists(ALMOST, min_size=1))
def test_names_that_are_almost_segment_files(names: list[bytes]) -> None:
    kinds, offsets = read_segment_names(names)

    for name, kind, offset in zip(names, kinds.tolist(), offsets.tolist(), strict=True):
        digits, suffix = name[:20], name[20:].decode(errors="replace")
        is_offset = len(digits) == 20 and digits.isdigit() and int(digits) < 2**63
        if is_offset and suffix in SEGMENT_KINDS:
            assert (kind, offset) == (SEGMENT_KINDS[suffix], int(digits))
        else:
            assert (kind, offset) == (NOT_A_SEGMENT_FILE, NO_OFFSET)
