"""What the worker adds to a broker's answer, and what it leaves as it is."""

import time
from pathlib import Path

import pytest

from brimline.gateway.describe.job import (
    BrokerAccess,
    DescribeJob,
    NumberedJob,
    Outcome,
    decode_job,
    decode_outcome,
    decode_setup,
    encode_job,
    encode_outcome,
    encode_setup,
)
from brimline.gateway.describe.worker import Describer
from brimline.model import KafkaError
from brimline.wire.describe_log_dirs import DescribeLogDirsResponse
from brimline.wire.describe_log_dirs_answer import without_additions
from brimline.wire.describe_log_dirs_request import KIP_1187, AskedLogDirs, Layout
from tests.gateway.describe.describing import decoded, job, log_dir
from tests.waiting import PATIENCE_SECONDS

NOBODY = BrokerAccess(node_id=1, bootstrap_servers="127.0.0.1:1")


def in_time() -> float:
    return time.monotonic() + PATIENCE_SECONDS


def described(a_job: DescribeJob, broker: BrokerAccess | None = None) -> DescribeLogDirsResponse:
    return decoded(Describer(broker).answer(a_job, in_time()), a_job.asked.layout)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("asked", [Layout(4), Layout(5), KIP_1187])
def test_every_log_dir_that_works_gets_its_volumes_bytes(version: int, asked: Layout, tmp_path: Path) -> None:
    answer = described(job([log_dir(tmp_path), log_dir(tmp_path, error=56, partitions=0)], version, asked))

    healthy, offline = answer.log_dirs
    assert healthy.total_bytes is not None
    assert healthy.total_bytes > 0
    assert healthy.is_cordoned is (False if asked == Layout(5) else None)
    assert offline.error == KafkaError(56)
    assert (offline.total_bytes, offline.usable_bytes, len(offline.replicas)) == (None, None, 0)


def test_a_log_dir_that_cannot_be_looked_at_stays_unknown() -> None:
    (answered,) = described(job([log_dir("/nowhere/at/all")], 3, Layout(4))).log_dirs

    assert (answered.total_bytes, answered.usable_bytes) == (None, None)


def test_what_the_broker_tells_itself_is_not_looked_at_again(tmp_path: Path) -> None:
    (answered,) = described(job([log_dir(tmp_path, total=1000, usable=400)], 4, Layout(5))).log_dirs

    assert (answered.total_bytes, answered.usable_bytes) == (1000, 400)


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("asked", [Layout(4), Layout(5), KIP_1187])
def test_an_answer_that_is_an_error_gets_nothing_added(asked: Layout, remote: bool) -> None:  # noqa: FBT001
    a_job = job([], 3, asked, error=31, remote=remote)

    answer = Describer(NOBODY).answer(a_job, in_time())

    assert answer == without_additions(a_job.payload, 3, asked)
    assert decoded(answer, asked).error == KafkaError(31)


def test_an_answer_without_log_dirs_gets_nothing_added() -> None:
    """Before version 3 that is a refusal."""
    a_job = job([], 2, KIP_1187, remote=True)

    assert Describer(NOBODY).answer(a_job, in_time()) == without_additions(a_job.payload, 2, KIP_1187)


def test_remote_sizes_that_nobody_asked_for_are_unknown() -> None:
    a_job = job([log_dir("/d", total=9, usable=3)], 4, KIP_1187, remote=False)

    assert Describer(NOBODY).answer(a_job, in_time()) == without_additions(a_job.payload, 4, KIP_1187)


@pytest.mark.parametrize(
    ("broker", "complaint"),
    [
        (None, ""),
        (NOBODY, "remote sizes are unknown: 127.0.0.1:1 refused the connection"),
        (
            BrokerAccess(node_id=1, bootstrap_servers="b:1", client_properties={"security.protocol": "NONE"}),
            "remote sizes will be unknown: the gateway's own client: security.protocol",
        ),
    ],
)
def test_without_a_broker_to_ask_remote_sizes_are_unknown_and_unexplained(
    broker: BrokerAccess | None, complaint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    a_job = job([log_dir("/d", total=9, usable=3)], 4, KIP_1187, remote=True)
    describer = Describer(broker)

    answers = [describer.answer(a_job, in_time()) for _ in range(2)]

    assert answers == [without_additions(a_job.payload, 4, KIP_1187)] * 2
    said = capfd.readouterr().err
    assert complaint in said
    assert said.count("\n") == (1 if complaint else 0), "it complains once, not with every job"


def test_a_job_that_waited_too_long_is_answered_without_asking_anybody(capfd: pytest.CaptureFixture[str]) -> None:
    a_job = job([log_dir("/d", total=9, usable=3)], 4, KIP_1187, remote=True)

    answer = Describer(NOBODY).answer(a_job, time.monotonic())

    assert answer == without_additions(a_job.payload, 4, KIP_1187)
    assert "it takes longer than the client waits" in capfd.readouterr().err


def test_messages_arrive_as_they_were_sent() -> None:
    access = BrokerAccess(node_id=3, bootstrap_servers="b:1", client_properties={"sasl.jaas.config": "é\n\ud800"})
    asked = AskedLogDirs(layout=KIP_1187, include_remote_info=True, explain=True, remote_topics=("a", "b"))
    numbered = NumberedJob(number=7, answer_by=1.5, job=DescribeJob(payload=b"\n{}\0", version=4, asked=asked))

    assert decode_setup(encode_setup(access)[4:]) == access
    assert decode_setup(encode_setup(None)[4:]) is None
    assert decode_job(encode_job(numbered)[4:]) == numbered
    for outcome in (Outcome(number=2**32 - 1, payload=b""), Outcome(number=1, complaint="why")):
        assert decode_outcome(encode_outcome(outcome)[4:]) == outcome
