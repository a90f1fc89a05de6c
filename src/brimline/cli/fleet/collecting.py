"""What ``brimline fleet collect`` does: look at the cluster, put a file down for every broker, say what is missing."""

import sys
import time
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from brimline.cli.log_dirs.describe import DEFAULT_TIMEOUT, Connect, client_config, progress_on
from brimline.cli.shared.exit_codes import ExitCode
from brimline.model import BadInput, BrokerId, BrokerLogDirs, ObservationFailed, human_bytes
from brimline.observe.client.config import ClientConfig
from brimline.observe.cluster.admin import Admin, ClusterLook, look_at_cluster

if TYPE_CHECKING:
    from brimline.landing.place import LandingPlace


def collect(args: Namespace, connect: Connect = Admin, sleep: Callable[[float], None] = time.sleep) -> int:
    """Once, or at an interval: then a round that fails is told, and the next one comes all the same."""
    if args.times is not None and args.interval is None:
        raise BadInput("--times needs --interval")
    config = client_config(args)
    worst, rounds = ExitCode.DONE, 0
    while True:
        begun = time.monotonic()
        worst = max(worst, _round(args, config, connect), key=_BADNESS.index)
        rounds += 1
        if args.interval is None or rounds == args.times:
            return worst
        sleep(max(begun + args.interval - time.monotonic(), 0.0))


_BADNESS = (ExitCode.DONE, ExitCode.PARTIAL, ExitCode.FAILED)


def _round(args: Namespace, config: ClientConfig, connect: Connect) -> ExitCode:
    try:
        look = _look(args, config, connect)
    except ObservationFailed as error:
        if args.interval is None:
            raise
        print(f"brimline: {error}", file=sys.stderr)
        return ExitCode.FAILED
    for note in look.notes:
        print(f"brimline: {note}", file=sys.stderr)
    for failure in look.failures.values():
        print(f"brimline: {failure}", file=sys.stderr)
    written = _write(look, args.landing)
    if not written:
        return ExitCode.FAILED
    print(_sentence(look, written, args.landing), flush=True)
    return ExitCode.DONE if len(written) == len(look.brokers) + len(look.failures) else ExitCode.PARTIAL


def _look(args: Namespace, config: ClientConfig, connect: Connect) -> ClusterLook:
    timeout: timedelta = config.api_timeout or DEFAULT_TIMEOUT
    brokers = None if args.broker_list is None else [BrokerId(broker) for broker in args.broker_list]
    with connect(config) as admin, progress_on(sys.stderr) as progress:
        return look_at_cluster(admin, timeout, brokers, progress)


def _write(look: ClusterLook, uri: str) -> dict[BrokerId, int]:
    """The bytes of every snapshot that was put down."""
    from brimline.landing.header import BadHeader
    from brimline.landing.place import LandingPlace, PlaceFailed

    written: dict[BrokerId, int] = {}
    try:
        place = LandingPlace(uri)
    except PlaceFailed as failed:
        print(f"brimline: {failed}", file=sys.stderr)
        return written
    for broker, answer in look.brokers.items():
        try:
            written[broker] = _put(place, look, broker, answer)
        except (PlaceFailed, BadHeader) as failed:
            print(f"brimline: broker {broker}: {failed}", file=sys.stderr)
    return written


def _put(place: "LandingPlace", look: ClusterLook, broker: BrokerId, answer: BrokerLogDirs) -> int:
    from brimline.landing.collected import collected_sections
    from brimline.landing.header import Header, Source
    from brimline.landing.writer import encode, tables_of

    header = Header(
        snapshot_id=uuid4().hex,
        cluster_id=look.cluster_id,
        broker_id=broker,
        source=Source.COLLECT,
        taken_at_ms=_milliseconds(answer.observed_at),
    )
    data = encode(header, tables_of(collected_sections(answer, look.topics, look.rules[broker])))
    place.put(header.name, data)
    return len(data)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _sentence(look: ClusterLook, written: dict[BrokerId, int], uri: str) -> str:
    from brimline.model.secrets import without_login

    silent = f", {len(look.failures)} did not answer" if look.failures else ""
    return (
        f"{len(written)} of {len(look.brokers) + len(look.failures)} brokers of {look.cluster_id}{silent}: "
        f"{human_bytes(sum(written.values()))} in {without_login(uri)}"
    )
