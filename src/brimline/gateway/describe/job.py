"""What the gateway and its describe worker say to each other, over the worker's standard input and output.

Every message is its length in four bytes and as many bytes. The first to the worker is the setup, the others are jobs;
each is a JSON object on one line and, in a job, the broker's answer behind it. The worker answers every job in turn:
the job's number, whether it could be done, and then the new answer, or the sentence why not.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct

from brimline.documents.codec import from_json, read_json, to_json
from brimline.wire.describe_log_dirs_request import AskedLogDirs

LENGTH = Struct(">I")
_OUTCOME = Struct(">I?")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAccess:
    """How the worker reaches the broker that its gateway stands before: past the gateway, as a client of its own.

    ``client_properties`` have the names of Kafka's Java clients.
    """

    node_id: int
    bootstrap_servers: str
    client_properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeJob:
    """A broker's answer to DescribeLogDirs, of a version as Kafka ships it, and the form that the client wants."""

    payload: bytes
    version: int
    asked: AskedLogDirs


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedJob:
    """``answer_by`` is on the monotonic clock, which is one for all processes of a machine."""

    number: int
    answer_by: float
    job: DescribeJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``payload`` is ``None`` if the job could not be done, and ``complaint`` says why."""

    number: int
    payload: bytes | None = None
    complaint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """A job as it is written, but for the broker's answer."""

    number: int
    answer_by: float
    version: int
    asked: AskedLogDirs


def encode_setup(broker: BrokerAccess | None) -> bytes:
    return _framed(json.dumps(to_json(broker)).encode())


def decode_setup(message: bytes) -> BrokerAccess | None:
    known = read_json(object, message)
    return None if known is None else from_json(BrokerAccess, known)


def encode_job(numbered: NumberedJob) -> bytes:
    job = numbered.job
    head = _Head(number=numbered.number, answer_by=numbered.answer_by, version=job.version, asked=job.asked)
    return _framed(json.dumps(to_json(head)).encode() + b"\n" + job.payload)


def decode_job(message: bytes) -> NumberedJob:
    line, _, payload = message.partition(b"\n")
    head = read_json(_Head, line)
    job = DescribeJob(payload=payload, version=head.version, asked=head.asked)
    return NumberedJob(number=head.number, answer_by=head.answer_by, job=job)


def encode_outcome(outcome: Outcome) -> bytes:
    done = outcome.payload is not None
    return _framed(_OUTCOME.pack(outcome.number, done) + (outcome.payload or outcome.complaint.encode()))


def decode_outcome(message: bytes) -> Outcome:
    number, done = _OUTCOME.unpack_from(message)
    rest = message[_OUTCOME.size :]
    return Outcome(number=number, payload=rest) if done else Outcome(number=number, complaint=rest.decode())


def _framed(message: bytes) -> bytes:
    return LENGTH.pack(len(message)) + message
