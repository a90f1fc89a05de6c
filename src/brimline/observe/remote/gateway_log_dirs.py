"""Remote information from the gateways that stand before brokers: they work it out themselves, once for all clients.

A gateway names itself in its ApiVersions answer. It is asked in KIP-1187's layout, and for the reasons too (see
``wire.describe_log_dirs_explained``), so that its answer says as much as one worked out here. A gateway that cannot
work it out leaves the explanation away. Then, and for brokers without a gateway, the caller does it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from kafka.protocol.metadata import ApiVersionsRequest

from brimline.model import BrokerId, BrokerLogDirs, Failure, LogDirDescription, Reason
from brimline.model.log_dirs import UNKNOWN
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.client.requests import WireRequest
from brimline.observe.cluster.log_dirs import Clock, answered_log_dirs
from brimline.wire.api_versions import GATEWAY_API_KEY, GATEWAY_API_VERSIONS
from brimline.wire.describe_log_dirs import DescribeLogDirsResponse, decode_layout
from brimline.wire.describe_log_dirs_request import API_KEY, FIRST_FLEXIBLE_VERSION, KIP_1187, encode_explained_request


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAnswers:
    """The brokers whose gateways worked it out, with their remote columns filled.

    Gateways read the same metadata records, each those of its own broker's topics: ``skipped_records`` is what the one
    that met the most of them could not decode.
    """

    brokers: Mapping[BrokerId, BrokerLogDirs]
    skipped_records: int = 0
    notes: tuple[str, ...] = ()


def ask_gateways(
    connection: Connection,
    brokers: Iterable[BrokerId],
    topics: frozenset[str] | None,
    deadline: Deadline,
    now: Clock,
) -> GatewayAnswers:
    """``topics`` limits whose remote information is wanted. A broker that does not answer is simply not there."""
    fronted = _fronted(connection, brokers, deadline)
    answers = connection.ask_each({broker: (broker, _request(topics)) for broker in fronted}, deadline.renewed())
    observed_at, known = now(), connection.brokers
    explained = {broker: answer for broker, answer in answers.items() if _is_explained(answer)}
    explanations = [answer.explanation for answer in explained.values()]
    return GatewayAnswers(
        brokers={
            broker: _limited(answered_log_dirs(broker, known.get(broker), answer, observed_at), topics)
            for broker, answer in explained.items()
        },
        skipped_records=max((explanation.skipped_records for explanation in explanations), default=0),
        notes=tuple(dict.fromkeys(note for explanation in explanations for note in explanation.notes)),
    )


def _fronted(connection: Connection, brokers: Iterable[BrokerId], deadline: Deadline) -> list[BrokerId]:
    """Which of them stand behind a gateway."""
    request = {
        broker: (broker, ApiVersionsRequest(client_software_name="brimline", client_software_version="0"))
        for broker in brokers
    }
    return [
        broker
        for broker, answer in connection.ask_each(request, deadline).items()
        if not isinstance(answer, Failure) and any(_is_mark(api) for api in answer.api_keys)
    ]


def _is_mark(api: Any) -> bool:
    """Of a gateway whose explanations we understand."""
    return bool(api.api_key == GATEWAY_API_KEY and api.min_version <= GATEWAY_API_VERSIONS[1] <= api.max_version)


def _request(topics: Collection[str] | None) -> WireRequest:
    return WireRequest(
        name="DescribeLogDirs",
        API_KEY=API_KEY,
        min_version=KIP_1187.version,
        max_version=KIP_1187.version,
        first_flexible_version=FIRST_FLEXIBLE_VERSION,
        encode_body=lambda _version: encode_explained_request(None if topics is None else sorted(topics)),
        decode_body=lambda body, _version: decode_layout(body, KIP_1187),
    )


def _is_explained(answer: DescribeLogDirsResponse | Failure) -> bool:
    return not isinstance(answer, Failure) and answer.explanation is not None


def _limited(answer: BrokerLogDirs, topics: frozenset[str] | None) -> BrokerLogDirs:
    """A gateway may tell more than was asked for (its question has room for a few hundred names only)."""
    if topics is None:
        return answer
    return replace(
        answer, log_dirs={path: _without_others(log_dir, topics) for path, log_dir in answer.log_dirs.items()}
    )


def _without_others(log_dir: LogDirDescription, topics: frozenset[str]) -> LogDirDescription:
    replicas = log_dir.replicas
    is_other = np.array([name not in topics for name in replicas.topic_names], dtype=np.bool_)[replicas.topic]
    return replace(
        log_dir,
        replicas=replace(
            replicas,
            remote_size=np.where(is_other, UNKNOWN, replicas.remote_size),
            remote_size_reason=np.where(is_other, Reason.NOT_ASKED, replicas.remote_size_reason).astype(np.uint8),
            only_local_size=np.where(is_other, UNKNOWN, replicas.only_local_size),
            only_local_size_reason=np.where(is_other, Reason.NOT_ASKED, replicas.only_local_size_reason).astype(
                np.uint8
            ),
        ),
    )
