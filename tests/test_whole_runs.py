"""`make bench` and `make test-long` as wholes: they go on after a failure, name it, and leave nothing behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.__main__ import SECTIONS, Section, main
from bench.ratio import AgainstGoal
from scripts.test_long import LONG, LONGEST_FIRST, Job, Result, Runner, document, read_report
from scripts.whole_run import WholeRun, duration, nothing_left_behind
from tests.waiting import PATIENCE_SECONDS, eventually

ROOT = Path(__file__).parent.parent


def figures(*values: float, fails: bool = False) -> Iterator[AgainstGoal]:
    for value in values:
        yield AgainstGoal(what="seen", unit="s", ours=value)
    if fails:
        raise RuntimeError("no such tool")


THREE = (
    Section(title="First", explanation="One row.", rows=lambda: figures(1)),
    Section(title="Broken", explanation="One row, then not.", rows=lambda: figures(2, fails=True)),
    Section(title="Last", explanation="Two rows.", rows=lambda: figures(3), large=lambda: figures(3, 4)),
)


def test_a_section_that_fails_is_named_and_the_others_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "benchmarks.md"

    code = main([], THREE, results)

    text, said = results.read_text(), capsys.readouterr().err
    assert code == 1
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == ["First", "Broken", "Last"]
    assert re.findall(r"^\| seen \| (\d) s", text, re.MULTILINE) == ["1", "2", "3"]
    assert "**It failed** and is not whole: `RuntimeError: no such tool`" in text
    assert "section 2 of 3" in said
    assert "FAILED: Broken" in said


def test_the_head_names_the_commit_the_date_and_the_machine(tmp_path: Path) -> None:
    results = tmp_path / "benchmarks.md"

    assert main(["--large"], (THREE[2],), results) == 0

    text = results.read_text()
    assert re.search(
        r"^One whole run: `python -m bench --large` at commit \w+.*, \d{4}-\d\d-\d\d \d\d:\d\d UTC", text, re.M
    )
    assert re.search(r"^Machine: .+, \d+ cores, \d+ GiB of memory, Linux .+, Python 3\.\d+\.\d+, ", text, re.MULTILINE)
    assert re.findall(r"^\| seen \| (\d) s", text, re.MULTILINE) == ["3", "4"]


def test_some_sections_are_only_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "benchmarks.md"

    assert main(["first"], THREE, results) == 0

    assert not results.exists()
    assert "| seen | 1 s" in capsys.readouterr().out


def test_every_section_can_be_asked_for_by_its_title() -> None:
    titles = [section.title for section in SECTIONS]

    assert len(titles) > 10
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min 0 s"), (3599.6, "1 h 0 min"), (5460, "1 h 31 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_is_temporary_is_gone_and_so_are_the_settings() -> None:
    before = os.environ.get("TMPDIR")
    with nothing_left_behind("brimline-test-") as folder:
        made = Path(tempfile.mkdtemp())
        assert made.parent == folder
        assert os.environ["SPARK_LOCAL_DIRS"] == str(folder)

    assert not folder.exists()
    assert os.environ.get("TMPDIR") == before


MIXED = '''
"""Three tests, | and a sentence."""
import os
import pytest
pytestmark = pytest.mark.long
def test_good(): pass
def test_bad(): assert 1 == 2
@pytest.mark.skip(reason="no such tool")
def test_absent(): pass
'''


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Inside the tree, where pytest finds the project's settings."""
    with tempfile.TemporaryDirectory(prefix="scratch_", dir=ROOT / "tests") as folder:
        yield Path(folder)


def run_of(tmp_path: Path, *files: Path) -> list[Result]:
    jobs = [Job(kind=LONG, file=str(file.relative_to(ROOT))) for file in files]
    return Runner(tmp_path, WholeRun("a test"), workers=2).results(jobs)


def test_a_file_that_fails_or_kills_its_process_is_named_and_the_others_run(scratch: Path, tmp_path: Path) -> None:
    texts = {
        "test_mixed.py": MIXED,
        "test_dead.py": MIXED.replace("assert 1 == 2", "os._exit(7)"),
        "test_last.py": MIXED,
    }
    for name, text in texts.items():
        (scratch / name).write_text(text)

    mixed, dead, last = run_of(tmp_path, *(scratch / name for name in texts))

    assert mixed.counts == last.counts == {"passed": 1, "failed": 1, "skipped": 1}
    assert len(mixed.failures) == 1
    assert mixed.failures[0].endswith("test_mixed.py::test_bad: assert 1 == 2")
    assert mixed.skips[0].endswith("test_mixed.py::test_absent: no such tool")
    assert dead.failures[0].endswith("test_dead.py: its process ended with 7 and without a report")
    text = document(WholeRun("a test"), [mixed, dead, last])
    assert "2 passed, 3 failed, 2 skipped." in text
    assert "| Three tests, \\| and a sentence. | 1 failed, 1 passed, 1 skipped |" in text


def test_a_file_in_which_nothing_runs_has_failed(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text("<testsuites><testsuite/></testsuites>")

    assert read_report(report, Job(kind=LONG, file="tests/a.py"), 1.0).failures == ("tests/a.py: nothing ran",)


def test_what_takes_longest_is_there() -> None:
    assert [file for file in LONGEST_FIRST if not (ROOT / file).is_file()] == []


WAITING = """
import os, pathlib, time
import pytest
pytestmark = pytest.mark.long
def test_waits(tmp_path):
    (tmp_path / "made").write_text("")
    pathlib.Path({here!r}).write_text(f"{{os.getpid()}} {{tmp_path}}")
    try:
        time.sleep(3600)
    finally:
        pathlib.Path({there!r}).write_text("cleaned up")
"""
DRIVER = """
import sys
from pathlib import Path
from scripts.test_long import LONG, Job, Runner
from scripts.whole_run import WholeRun, nothing_left_behind
with nothing_left_behind("brimline-test-") as folder:
    Runner(folder, WholeRun("a test")).results([Job(kind=LONG, file=sys.argv[1])])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_lets_the_tests_clean_up_and_leaves_nothing(scratch: Path, tmp_path: Path, number: int) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (scratch / "test_waits.py").write_text(WAITING.format(here=str(here), there=str(there)))
    command = [sys.executable, "-c", DRIVER, str((scratch / "test_waits.py").relative_to(ROOT))]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        eventually(lambda: here.exists() and " " in here.read_text())
        pid, _, made = here.read_text().partition(" ")
        process.send_signal(number)
        process.wait(PATIENCE_SECONDS)

    assert process.returncode != 0
    assert there.read_text() == "cleaned up"
    assert not Path(made).exists()
    assert not Path(f"/proc/{pid}").exists()


BROKER = """
import os, pathlib, time
import pytest
from brimline.sandbox import Sandbox, SandboxSpec
pytestmark = pytest.mark.integration
def test_waits():
    with Sandbox(SandboxSpec()) as sandbox:
        pathlib.Path({here!r}).write_text(f"{{os.getpid()}} {{sandbox.broker(1).pid}} {{os.environ['TMPDIR']}}\\n")
        while True:
            time.sleep(0.1)
"""


@pytest.mark.integration
@pytest.mark.usefixtures("real_volumes")
@pytest.mark.parametrize(
    ("number", "send"),
    [
        (signal.SIGTERM, os.kill),
        pytest.param(signal.SIGTERM, os.killpg, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, os.killpg, marks=pytest.mark.long),
    ],
)
def test_the_tests_of_make_leave_no_broker_and_no_file(
    scratch: Path, tmp_path: Path, number: int, send: Callable[[int, int], None]
) -> None:
    """Told to end alone, as by a service manager; with its group, as by timeout and by ctrl-C."""
    here = tmp_path / "here"
    (scratch / "test_waits.py").write_text(BROKER.format(here=str(here)))
    rule = f"scratch: ; @$(TESTS) -n 1 {(scratch / 'test_waits.py').relative_to(ROOT)}"
    with (tmp_path / "log").open("w") as log:
        command = ["make", "--eval", rule, "scratch"]
        make = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    try:
        eventually(lambda: make.poll() is not None or (here.exists() and here.read_text().endswith("\n")))
        worker, broker, folder = here.read_text().split()
        send(make.pid, number)
        make.wait(PATIENCE_SECONDS)
    finally:
        make.kill()

    assert make.returncode != 0
    assert not Path(folder).exists()
    eventually(lambda: not any(Path("/proc", pid).exists() for pid in (worker, broker)))
