from pathlib import Path

from brimline.sandbox.formatting import FormattedDir, random_id, with_ids

META = b"#\n#Mon\nnode.id=1\ndirectory.id=x\nversion=1\ncluster.id=y\n"


def test_a_log_dir_gets_its_own_ids(tmp_path: Path) -> None:
    FormattedDir({"meta.properties": META, "bootstrap.checkpoint": b"\0\1"}).write(
        tmp_path / "log-dir", cluster_id="CLUSTER", node_id=7
    )

    written = (tmp_path / "log-dir" / "meta.properties").read_text()
    assert "node.id=7\n" in written
    assert "cluster.id=CLUSTER\n" in written
    assert "directory.id=x\n" not in written
    assert (tmp_path / "log-dir" / "bootstrap.checkpoint").read_bytes() == b"\0\1"


def test_an_old_version_gets_no_directory_id() -> None:
    assert b"directory.id" not in with_ids(b"node.id=1\n", {"directory.id": "x"})


def test_ids_are_uuids_as_kafka_writes_them() -> None:
    made = {random_id() for _ in range(1000)}

    assert len(made) == 1000
    assert {len(text) for text in made} == {22}
    assert not any(text.startswith("-") for text in made)
