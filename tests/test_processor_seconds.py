"""A run of tests says what it took of the processors, by file, whoever ran the file."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORKS = r"""
import subprocess, sys
def test_of_a_child():
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
"""


@pytest.fixture
def files() -> Iterator[list[str]]:
    """Inside the tree, where pytest finds the project's settings."""
    with tempfile.TemporaryDirectory(prefix="scratch_", dir=ROOT / "tests") as folder:
        paths = [Path(folder) / f"test_{name}.py" for name in ("one", "other")]
        for path in paths:
            path.write_text(WORKS)
        yield [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.long), "2"])
def test_every_file_has_its_processor_seconds_and_the_sum_is_of_all(files: list[str], workers: str) -> None:
    command = [sys.executable, "-m", "pytest", "-n", workers, "--durations=0", "-p", "no:cacheprovider", *files]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout

    (total,) = re.findall(r"(\d+) processor seconds", said)
    found = {name: float(value) for value, name in re.findall(r"^ +([\d.]+) (\S+\.py|between tests)$", said, re.M)}
    assert found.keys() == {*files, "between tests"}, said
    assert min(found.values()) > 0.1  # what each child takes, however fast the machine is
    assert abs(sum(found.values()) - float(total)) < 1
