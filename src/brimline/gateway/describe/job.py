"""What the gateway and its describe worker say to each other, over the worker's standard input and output.

Every message is its length in four bytes and as many bytes. The first to the worker is the setup, the others are jobs;
each is a JSON object on one line and, in a job, the broker's answer behind it. The worker answers every job in turn:
the job's number, whether it could be done, and then the new answer, or the sentence why not.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct

from brimline.wire.describe_log_dirs_request import AskedLogDirs, Layout

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


def encode_setup(broker: BrokerAccess | None) -> bytes:
    known = None if broker is None else [broker.node_id, broker.bootstrap_servers, dict(broker.client_properties)]
    return _framed(json.dumps(known).encode())


def decode_setup(message: bytes) -> BrokerAccess | None:
    known = json.loads(message)
    if known is None:
        return None
    node_id, servers, properties = known
    return BrokerAccess(node_id=node_id, bootstrap_servers=servers, client_properties=properties)


def encode_job(numbered: NumberedJob) -> bytes:
    asked = numbered.job.asked
    head = {
        "number": numbered.number,
        "answerBy": numbered.answer_by,
        "version": numbered.job.version,
        "askedVersion": asked.layout.version,
        "remoteSizes": asked.layout.has_remote_sizes,
        "includeRemoteInfo": asked.include_remote_info,
        "explain": asked.explain,
        "remoteTopics": asked.remote_topics,
    }
    return _framed(json.dumps(head).encode() + b"\n" + numbered.job.payload)


def decode_job(message: bytes) -> NumberedJob:
    line, _, payload = message.partition(b"\n")
    head = json.loads(line)
    topics = head["remoteTopics"]
    asked = AskedLogDirs(
        layout=Layout(head["askedVersion"], has_remote_sizes=head["remoteSizes"]),
        include_remote_info=head["includeRemoteInfo"],
        explain=head["explain"],
        remote_topics=None if topics is None else tuple(topics),
    )
    job = DescribeJob(payload=payload, version=head["version"], asked=asked)
    return NumberedJob(number=head["number"], answer_by=head["answerBy"], job=job)


def encode_outcome(outcome: Outcome) -> bytes:
    done = outcome.payload is not None
    return _framed(_OUTCOME.pack(outcome.number, done) + (outcome.payload or outcome.complaint.encode()))


def decode_outcome(message: bytes) -> Outcome:
    number, done = _OUTCOME.unpack_from(message)
    rest = message[_OUTCOME.size :]
    return Outcome(number=number, payload=rest) if done else Outcome(number=number, complaint=rest.decode())


def _framed(message: bytes) -> bytes:
    return LENGTH.pack(len(message)) + message
