"""DescribeLogDirs from many brokers at once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from brimline.model import BrokerId, BrokerLogDirs, Failure, FailureKind
from brimline.model.kafka_errors import CLUSTER_AUTHORIZATION_FAILED
from brimline.observe.connection import Broker, Connection, Deadline
from brimline.observe.requests import WireRequest
from brimline.wire.describe_log_dirs import DescribeLogDirsResponse, decode_response
from brimline.wire.describe_log_dirs_layout import API_KEY, FIRST_FLEXIBLE_VERSION, MAX_VERSION, MIN_VERSION
from brimline.wire.describe_log_dirs_request import encode_request

Clock = Callable[[], datetime]


def describe_log_dirs(
    connection: Connection,
    brokers: Iterable[BrokerId],
    deadline: Deadline,
    now: Clock,
    topics: Mapping[str, Sequence[int]] | None = None,
) -> dict[BrokerId, BrokerLogDirs]:
    """What every broker says about its log dirs; a broker that did not answer carries its failure.

    ``topics`` limits the partitions; an empty mapping asks for the volumes alone, a hundred bytes per broker.
    """
    asked = list(brokers)
    answers = connection.ask_each({broker: (broker, _request(topics)) for broker in asked}, deadline)
    observed_at = now()
    known = connection.brokers
    return {broker: answered_log_dirs(broker, known.get(broker), answers[broker], observed_at) for broker in asked}


def _request(topics: Mapping[str, Sequence[int]] | None) -> WireRequest:
    return WireRequest(
        name="DescribeLogDirs",
        API_KEY=API_KEY,
        min_version=MIN_VERSION,
        max_version=MAX_VERSION,
        first_flexible_version=FIRST_FLEXIBLE_VERSION,
        encode_body=lambda version: encode_request(version, topics),
        decode_body=decode_response,
    )


def answered_log_dirs(
    broker: BrokerId, known: Broker | None, answer: DescribeLogDirsResponse | Failure, observed_at: datetime
) -> BrokerLogDirs:
    """``known`` is the broker as the cluster lists it, if it does."""
    address = "" if known is None else known.address
    failure = answer if isinstance(answer, Failure) else _refusal(broker, answer)
    log_dirs = {} if isinstance(answer, Failure) else {log_dir.path: log_dir for log_dir in answer.log_dirs}
    return BrokerLogDirs(broker=broker, address=address, observed_at=observed_at, log_dirs=log_dirs, failure=failure)


def _refusal(broker: BrokerId, answer: DescribeLogDirsResponse) -> Failure | None:
    """Before version 3 a refusal is an answer without log dirs: every broker has at least one."""
    refused = answer.error is not None and answer.error.code == CLUSTER_AUTHORIZATION_FAILED
    if refused or (answer.error is None and not answer.log_dirs):
        return Failure(
            kind=FailureKind.NOT_AUTHORIZED,
            message=f"broker {broker} refused to describe its log dirs: this principal needs DESCRIBE on the cluster",
        )
    if answer.error is not None:
        return Failure(kind=FailureKind.KAFKA_ERROR, message=f"broker {broker} answered with {answer.error}")
    return None
