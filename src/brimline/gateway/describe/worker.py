"""The describe worker: a child process of the gateway that turns brokers' DescribeLogDirs answers into what was asked.

    python -m brimline.gateway.describe.worker

A broker with a million partitions answers with 22 MB, a dead network mount may hold a ``statvfs`` for ever, and remote
sizes take several questions to the cluster: none of it may stall a frame. So it happens here, one job after the other,
and if it takes too long the gateway ends this process and goes on without it. It ends by itself when its standard input
does. What the messages are: ``gateway.describe.job``.

Added is only what the broker does not tell: the volumes' bytes (KIP-827) if it is older than 3.3, remote sizes
(KIP-1187) if they are asked for. An answer that is an error, or has no log dir, gets nothing added.
"""

import logging
import os
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import BinaryIO

from brimline.gateway.describe.job import (
    LENGTH,
    BrokerAccess,
    DescribeJob,
    NumberedJob,
    Outcome,
    decode_job,
    decode_setup,
    encode_outcome,
)
from brimline.gateway.describe.remote import RemoteAnswer, RemoteSizes
from brimline.model import BadInput, LogDirDescription, ObservationFailed
from brimline.observe.volumes import look_at
from brimline.wire.describe_log_dirs import Answer, AnsweredLogDir, description_of
from brimline.wire.describe_log_dirs_answer import read_payload, with_remote_sizes, with_volume, write_payload
from brimline.wire.describe_log_dirs_explained import (
    Explanation,
    LogDirExplanation,
    encode_explanation,
    encode_log_dir_explanation,
    with_tag,
)
from brimline.wire.describe_log_dirs_request import Layout
from brimline.wire.primitives import WireError

_MARGIN_SECONDS = 1.0
"""What writing the answer of a large broker, and handing it over, may take on a busy machine."""


class Describer:
    """Does jobs, one after the other."""

    def __init__(self, broker: BrokerAccess | None) -> None:
        """Without access to a broker, or with properties that no client can use, remote sizes stay unknown."""
        self._remote: RemoteSizes | None = None
        self._last_complaint = ""
        if broker is not None:
            try:
                self._remote = RemoteSizes(broker)
            except BadInput as error:
                self._complain(f"remote sizes will be unknown: {error}")

    def outcome(self, numbered: NumberedJob) -> Outcome:
        try:
            return Outcome(number=numbered.number, payload=self.answer(numbered.job, numbered.answer_by))
        except WireError as error:
            complaint = f"the broker's answer of version {numbered.job.version} cannot be read: {error}"
            self._complain(complaint)
            return Outcome(number=numbered.number, complaint=complaint)

    def answer(self, job: DescribeJob, answer_by: float) -> bytes:
        layout, asked = Layout(job.version), job.asked.layout
        header, answer = read_payload(job.payload, layout)
        if answer.error_code == 0 and answer.log_dirs:
            if asked.has_volume_bytes and not layout.has_volume_bytes:
                answer = replace(answer, log_dirs=tuple(_with_volume(log_dir) for log_dir in answer.log_dirs))
            if job.asked.include_remote_info:
                answer = self._with_remote_sizes(answer, job, answer_by - _MARGIN_SECONDS)
        return write_payload(header, answer, asked)

    def _with_remote_sizes(self, answer: Answer, job: DescribeJob, answer_by: float) -> Answer:
        if self._remote is None:
            return answer
        described = [description_of(log_dir) for log_dir in answer.log_dirs]
        try:
            found = self._remote.of(described, job.asked.remote_topics, answer_by)
        except ObservationFailed as error:
            self._complain(f"remote sizes are unknown: {error}")
            return answer
        pairs = list(zip(answer.log_dirs, found.log_dirs, strict=True))
        if not job.asked.explain:
            return replace(answer, log_dirs=tuple(_filled(log_dir, figures) for log_dir, figures in pairs))
        return replace(
            answer,
            log_dirs=tuple(_explained(_filled(log_dir, figures), figures) for log_dir, figures in pairs),
            tags=with_tag(answer.tags, encode_explanation(_explanation(found))),
        )

    def _complain(self, sentence: str) -> None:
        """Once, not with every job."""
        if sentence != self._last_complaint:
            self._last_complaint = sentence
            print(f"describe worker: {sentence}", file=sys.stderr, flush=True)


def _with_volume(log_dir: AnsweredLogDir) -> AnsweredLogDir:
    if log_dir.error_code:
        return log_dir
    volume = look_at(log_dir.path, None, datetime.now(UTC), time.monotonic())
    if volume.total_bytes is None or volume.usable_bytes is None:
        return log_dir
    return with_volume(log_dir, volume.total_bytes, volume.usable_bytes)


def _filled(log_dir: AnsweredLogDir, figures: LogDirDescription) -> AnsweredLogDir:
    replicas = figures.replicas
    return with_remote_sizes(log_dir, replicas.size, replicas.remote_size, replicas.only_local_size)


def _explained(log_dir: AnsweredLogDir, figures: LogDirDescription) -> AnsweredLogDir:
    explanation = LogDirExplanation(
        is_cordoned=log_dir.is_cordoned,
        remote_size_reason=figures.replicas.remote_size_reason,
        only_local_size_reason=figures.replicas.only_local_size_reason,
    )
    return replace(log_dir, tags=with_tag(log_dir.tags, encode_log_dir_explanation(explanation)))


def _explanation(found: RemoteAnswer) -> Explanation:
    return Explanation(skipped_records=found.skipped_records, notes=found.notes)


def main() -> int:
    jobs, output = sys.stdin.buffer, _standard_output_for_us_alone()
    # Whatever kafka-python has to say is said in the reasons.
    logging.getLogger().addHandler(logging.NullHandler())
    setup = _next_message(jobs)
    if setup is None:
        return 0
    describer = Describer(decode_setup(setup))
    while (message := _next_message(jobs)) is not None:
        try:
            _send(output, encode_outcome(describer.outcome(decode_job(message))))
        except BrokenPipeError:  # the gateway has ended
            break
    return 0


def _standard_output_for_us_alone() -> int:
    """Anything else that prints, prints to standard error from now on."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return ours


def _send(output: int, message: bytes) -> None:
    rest = memoryview(message)
    while rest:
        rest = rest[os.write(output, rest) :]


def _next_message(stream: BinaryIO) -> bytes | None:
    """``None`` when the gateway has ended, be it in the middle of a message."""
    length = stream.read(LENGTH.size)
    if len(length) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(length)
    message = stream.read(size)
    return message if len(message) == size else None


if __name__ == "__main__":
    sys.exit(main())
