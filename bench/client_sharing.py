"""What a refused partition does to a healthy one of the same Java producer: they share one buffer.

The producer sends as much to the one as to the other. What is refused with a code that it retries stays in the buffer;
when that is full, ``send`` blocks the application, for whichever partition it is.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bench.client_matrix_site import SMALL_SEGMENTS, Site, shortened
from brimline.decide.admission import RejectError
from brimline.torture.clients.table import JAVA_4
from tests.integration.gateway_clients.load import Load, producing

RATE = 2000.0
"""Records per second, half of them to the partition that is refused."""
VALUE_BYTES = 2000
STEPS = 8
SETTLING_SECONDS = 5
LONGEST_PAUSE_SECONDS = 200
"""A batch that has expired makes the producer wait for those behind it to expire too: its delivery timeout, 120 s."""
DEFAULT_BUFFER, SMALL_BUFFER = 32 << 20, 1 << 20
HEADER = (
    f"| error | buffer.memory | before | while the other one is refused, in {STEPS} equal steps "
    "| the refused one resumes after | then | failed |\n|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    error: RejectError
    buffer_bytes: int
    refused_seconds: int = 40
    properties: Mapping[str, str] = field(default_factory=dict)


SHARINGS = (
    Sharing(error=RejectError.KAFKA_STORAGE_ERROR, buffer_bytes=DEFAULT_BUFFER),
    Sharing(error=RejectError.KAFKA_STORAGE_ERROR, buffer_bytes=SMALL_BUFFER),
    # Beyond max.block.ms (60 s by default) and delivery.timeout.ms (120 s)
    Sharing(error=RejectError.KAFKA_STORAGE_ERROR, buffer_bytes=SMALL_BUFFER, refused_seconds=160),
    Sharing(error=RejectError.KAFKA_STORAGE_ERROR, buffer_bytes=SMALL_BUFFER, properties={"max.block.ms": "1000"}),
    Sharing(error=RejectError.POLICY_VIOLATION, buffer_bytes=DEFAULT_BUFFER),
    Sharing(error=RejectError.POLICY_VIOLATION, buffer_bytes=SMALL_BUFFER),
)


def rows(site: Site) -> Iterator[str]:
    """Rates of the healthy partition, in records per second."""
    for number, sharing in enumerate(SHARINGS):
        yield _row(site, f"shared-{number}", sharing)


def _row(site: Site, topic: str, sharing: Sharing) -> str:
    site.answer_with(sharing.error)
    refused, healthy = site.new_topic(topic, SMALL_SEGMENTS)
    with producing(
        JAVA_4,
        site.sandbox.bootstrap_servers,
        topic,
        partitions=(refused, healthy),
        rate=RATE,
        value_bytes=VALUE_BYTES,
        properties={"buffer.memory": str(sharing.buffer_bytes), **sharing.properties},
    ) as load:
        load.wait_for_acks(int(3 * RATE))
        began = time.monotonic()
        time.sleep(SETTLING_SECONDS)
        fenced = time.monotonic()
        with site.fence():
            time.sleep(sharing.refused_seconds)
        released = time.monotonic()
        resumed = _next_ack(load, refused)
        time.sleep(2 * SETTLING_SECONDS)
        step = sharing.refused_seconds / STEPS
        during = [load.rate_between(fenced + n * step, fenced + (n + 1) * step, healthy) for n in range(STEPS)]
        before = load.rate_between(began, fenced, healthy)
        after = load.rate_between(resumed + SETTLING_SECONDS, resumed + 2 * SETTLING_SECONDS, healthy)
        load.stop(LONGEST_PAUSE_SECONDS)
    failed = Counter(failure.error for failure in load.failures)
    samples = {failure.error: shortened(failure.text) for failure in load.failures}
    names = "; ".join(f"{count} {name} (`{samples[name]}`)" for name, count in failed.items()) or "none"
    words = "".join(f", {key}={value}" for key, value in sharing.properties.items())
    words += f", refused for {sharing.refused_seconds} s"
    rates = ", ".join(f"{rate:.0f}" for rate in during)
    buffer = f"{sharing.buffer_bytes >> 20} MB{words}"
    pause = f"{resumed - released:.0f} s"
    return f"| {int(sharing.error)} | {buffer} | {before:.0f} | {rates} | {pause} | {after:.0f} | {names} |"


def _next_ack(load: Load, partition: int) -> float:
    """When something of this partition is acknowledged again."""
    known, give_up_at = len(load.acked(partition)), time.monotonic() + LONGEST_PAUSE_SECONDS
    while len(load.acked(partition)) == known:
        if time.monotonic() > give_up_at:
            raise RuntimeError(f"nothing was acknowledged for {LONGEST_PAUSE_SECONDS} s after the release")
        time.sleep(0.1)
    return time.monotonic()
