"""A writer of a broker's disk without Brimline and with it: `brimline torture writers`."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cluster import brimline

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.usefixtures("real_volumes")]


def written(rows: Path, *options: str) -> dict[str, Any]:
    done = brimline("torture", "writers", "--only", "produce", "--output", str(rows), *options, timeout=800)
    (row,) = [json.loads(line) for line in rows.read_text().splitlines()]
    assert (done.returncode == 0) == (not row["violations"]), done.stdout + done.stderr
    return dict(row)


def test_an_ordinary_producer_ends_a_broker_alone_and_none_with_brimline(tmp_path: Path) -> None:
    alone = written(tmp_path / "alone", "--unprotected")
    protected = written(tmp_path / "protected")

    assert "the broker ended" in alone["violations"]
    assert (protected["verdict"], protected["broker_alive"]) == ("lived", True)
    assert protected["released_after"] is not None
