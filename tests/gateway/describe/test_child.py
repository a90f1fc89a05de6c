"""The gateway's side of the worker, with real child processes: good ones, dead ones, silent ones and mad ones."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.gateway.describe import child as describe
from brimline.gateway.describe.child import MOST_DYING, MOST_JOBS, WORKER, DescribeWorker
from brimline.gateway.describe.job import DescribeJob, encode_setup
from brimline.wire.describe_log_dirs_request import KIP_1187, AskedLogDirs, Layout
from tests.gateway.describe.describing import decoded, drive, job, log_dir
from tests.waiting import PATIENCE_SECONDS

SILENT = (sys.executable, "-S", "-c", "import sys; sys.stdin.buffer.read()")
DEAF = (sys.executable, "-S", "-c", "import os, time; os.close(0); time.sleep(600)")
MAD = (sys.executable, "-S", "-c", "import os, time; os.write(1, b'\\xff' * 100); time.sleep(600)")
GARBAGE = DescribeJob(payload=b"\0\0\0\7\0garbage", version=4, asked=AskedLogDirs(layout=KIP_1187))

Answers = list[bytes | None]


@pytest.fixture(scope="module")
def worker() -> Iterator[DescribeWorker]:
    running = DescribeWorker(None, deadline_seconds=PATIENCE_SECONDS)
    yield running
    running.close()


def a_job(partitions: int = 1) -> DescribeJob:
    return job([log_dir("/nowhere", partitions=partitions)], 4, KIP_1187)


@pytest.mark.parametrize("asked", [Layout(4), Layout(5), KIP_1187])
def test_a_broker_without_volume_bytes_gets_them_added(worker: DescribeWorker, tmp_path: Path, asked: Layout) -> None:
    answers: Answers = []

    worker.submit(job([log_dir(tmp_path)], 3, asked), answers.append)
    drive(worker, lambda: bool(answers))

    (described,) = decoded(answers[0], asked).log_dirs
    facts = os.statvfs(tmp_path)
    assert described.total_bytes == facts.f_blocks * facts.f_frsize
    assert described.usable_bytes is not None
    assert 0 <= described.usable_bytes <= described.total_bytes


def test_many_large_jobs_are_answered_each_with_its_own(worker: DescribeWorker) -> None:
    counts = [30_000 + number for number in range(8)]
    answers: list[tuple[int, bytes | None]] = []

    for count in counts:
        worker.submit(a_job(count), lambda answer, count=count: answers.append((count, answer)))  # type: ignore[misc]
    drive(worker, lambda: len(answers) == len(counts))

    assert [count for count, _ in answers] == counts
    for count, answer in answers:
        (described,) = decoded(answer, KIP_1187).log_dirs
        assert len(described.replicas) == count


def test_an_answer_that_cannot_be_read_costs_this_job_only(worker: DescribeWorker) -> None:
    answers: Answers = []
    failures, starts = worker.failures, worker.starts

    worker.submit(GARBAGE, answers.append)
    worker.submit(a_job(), answers.append)
    drive(worker, lambda: len(answers) == 2)

    assert answers[0] is None
    assert answers[1] is not None
    assert worker.failures == failures + 1
    assert worker.starts <= starts + 1


def test_it_is_not_started_before_it_is_needed() -> None:
    worker = DescribeWorker(None)

    assert (worker.pid, worker.starts, worker.next_deadline) == (None, 0, None)
    worker.close()


def test_a_worker_killed_in_the_middle_of_a_job_is_replaced_by_the_next() -> None:
    worker = DescribeWorker(None, argv=SILENT)
    answers: Answers = []
    worker.submit(a_job(), answers.append)
    worker.submit(a_job(), answers.append)
    first = worker.pid
    assert first is not None

    os.kill(first, signal.SIGKILL)
    drive(worker, lambda: len(answers) == 2)
    worker.submit(a_job(), answers.append)

    assert answers == [None, None]
    assert worker.pid not in (None, first)
    assert (worker.restarts, worker.failures) == (1, 2)
    worker.close()
    assert answers == [None, None, None]


@pytest.mark.parametrize("argv", [SILENT, DEAF, MAD])
def test_a_worker_that_does_not_answer_in_time_is_ended(argv: tuple[str, ...]) -> None:
    worker = DescribeWorker(None, argv=argv, deadline_seconds=0.2)
    answers: Answers = []

    worker.submit(a_job(50_000), answers.append)
    pid = worker.pid
    worker.submit(a_job(), answers.append)
    drive(worker, lambda: len(answers) == 2)

    assert answers == [None, None]
    assert worker.pid is None
    worker.close()
    assert pid is not None
    assert not Path(f"/proc/{pid}").exists()


def test_whoever_is_told_none_may_ask_again_at_once() -> None:
    worker = DescribeWorker(None, argv=SILENT, deadline_seconds=0.1)
    answers: Answers = []

    def ask_again(answer: bytes | None) -> None:
        answers.append(answer)
        if len(answers) < 3:
            worker.submit(a_job(), ask_again)

    worker.submit(a_job(), ask_again)
    drive(worker, lambda: len(answers) == 3)

    assert answers == [None, None, None]
    assert worker.starts == 3
    worker.close()


def test_so_many_may_wait_and_the_next_is_refused_at_once() -> None:
    worker = DescribeWorker(None, argv=SILENT)
    answers: Answers = []
    refused: Answers = []
    for _ in range(MOST_JOBS):
        worker.submit(a_job(), answers.append)

    worker.submit(a_job(), refused.append)

    assert (answers, refused) == ([], [None])
    worker.close()
    assert answers == [None] * MOST_JOBS


def test_so_many_bytes_may_wait_but_one_job_always_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe, "MOST_BYTES", 1000)
    worker = DescribeWorker(None, argv=SILENT)
    answers: Answers = []
    refused: Answers = []

    worker.submit(a_job(1000), answers.append)
    worker.submit(a_job(), refused.append)

    assert (answers, refused) == ([], [None])
    worker.close()


def test_a_worker_that_cannot_be_started_costs_nothing_but_the_answer() -> None:
    worker = DescribeWorker(None, argv=["/nowhere/python"])
    answers: Answers = []

    worker.submit(a_job(), answers.append)

    assert answers == [None]
    assert (worker.starts, worker.failures) == (0, 1)
    worker.close()


class Unkillable(subprocess.Popen[bytes]):
    """As a process is that hangs in a dead mount."""

    def poll(self) -> int | None:
        return None


def test_no_more_are_started_while_several_cannot_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", Unkillable)
    monkeypatch.setattr(describe, "_END_SECONDS", PATIENCE_SECONDS)
    worker = DescribeWorker(None, argv=SILENT, deadline_seconds=0)
    answers: Answers = []

    for _ in range(MOST_DYING + 2):
        worker.submit(a_job(), answers.append)
        worker.on_time()

    assert answers == [None] * (MOST_DYING + 2)
    assert worker.starts == MOST_DYING
    worker.close()


def test_the_real_worker_ends_with_its_input() -> None:
    ended = subprocess.run(WORKER, input=encode_setup(None), capture_output=True, timeout=PATIENCE_SECONDS, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
