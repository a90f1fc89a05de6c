"""What applications see when Produce is refused: every client with every error code.

``python -m bench.client_matrix`` prints tables in Markdown; it takes a quarter of an hour. One partition of a producer
is refused for a while and another one is not, then the fence is released, and everything is read back. Behind them:
what happens when the refusal lasts longer than the client is willing to wait, and what the partitions of a Java
producer do to each other (``client_sharing``).
"""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench import client_sharing
from bench.client_matrix_site import Site, running_site, shortened
from brimline.decide.admission import RejectError
from brimline.torture.clients.table import CLIENTS, IDEMPOTENT_CLIENTS, Client
from tests.integration.gateway_clients.load import Load, producing
from tests.integration.gateway_clients.verification import verify_read_back

RATE = 50.0
"""Records per second, half of them to the partition that is refused."""
REFUSED_SECONDS = 10.0
AFTER_SECONDS = 8.0
MARGIN_SECONDS = 2.0
"""A record that is sent so long after the release has nothing to do with the refusal any more."""
GIVE_UP_SOON = {
    "java-4.3.1": {"delivery.timeout.ms": "5000", "request.timeout.ms": "3000"},
    "java-3.9.2": {"delivery.timeout.ms": "5000", "request.timeout.ms": "3000"},
    "librdkafka-idempotent": {"message.timeout.ms": "5000"},
    "kafka-python": {"delivery_timeout_ms": "5000", "request_timeout_ms": "3000"},
    "aiokafka-idempotent": {"request_timeout_ms": "5000"},
}
"""Each client's own words for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """By one client. ``refused`` and ``healthy`` are how its two partitions fared well after the release.

    ``wrong`` is what is amiss in the log, read back from the broker; empty: what was acknowledged is there, and what
    failed is not.
    """

    client: Client
    refused_batches: int
    errors: Mapping[tuple[str, str], int]
    healthy_rate: float
    refused: "Later"
    healthy: "Later"
    has_ended: bool
    wrong: str

    def sentence(self) -> str:
        parts = [self._outcome()]
        if not self.has_ended:
            parts.append("**its flush does not end**")
        if self.wrong:
            parts.append(f"**{self.wrong}**")
        parts.append(f"{self.refused_batches / REFUSED_SECONDS:.1f} refused batches/s")
        parts.append(f"the other partition at {self.healthy_rate / (RATE / 2):.0%}")
        return "; ".join(parts)

    def _outcome(self) -> str:
        later = f"after the release: {self.refused} there, {self.healthy} in the other partition"
        if not self.errors:
            return f"waits; {later}"
        (error, text), _ = Counter(self.errors).most_common(1)[0]
        return f"{sum(self.errors.values())} fail (`{error}: {shortened(text)}`); {later}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    acked: int
    failed: int

    def __str__(self) -> str:
        if not self.failed:
            return "all arrive" if self.acked else "**nothing happens**"
        return "**all fail**" if not self.acked else f"{self.failed} of {self.acked + self.failed} fail"


class Watch:
    """Starts every client, tells all of them when the fence is there and when it is gone, and asks what they saw."""

    def __init__(self, site: Site, name: str, clients: Sequence[Client]) -> None:
        self._site = site
        self._name = name
        self._clients = clients
        self._are_ready = threading.Barrier(len(clients) + 1)
        self._is_released = threading.Event()
        self._is_over = threading.Event()

    def seen(self, error: RejectError, properties: Mapping[str, Mapping[str, str]]) -> list[Seen]:
        """``properties`` go by the clients' names."""
        self._site.answer_with(error)
        with ThreadPoolExecutor(len(self._clients)) as pool:
            watched = [pool.submit(self._one, client, properties.get(client.name, {})) for client in self._clients]
            self._are_ready.wait()
            with self._site.fence():
                time.sleep(REFUSED_SECONDS)
            self._is_released.set()
            time.sleep(AFTER_SECONDS)
            self._is_over.set()
            return [each.result() for each in watched]

    def _one(self, client: Client, properties: Mapping[str, str]) -> Seen:
        topic, has_ended = f"{client}.{self._name}", True
        refused, healthy = self._site.new_topic(topic)
        try:
            with producing(
                client,
                self._site.sandbox.bootstrap_servers,
                topic,
                partitions=(refused, healthy),
                rate=RATE,
                properties=properties,
            ) as load:
                load.wait_for_acks(int(2 * RATE))
                self._are_ready.wait()
                began = time.monotonic()
                self._is_released.wait()
                healthy_rate = load.rate_between(began, time.monotonic(), healthy)
                boundary = _newest_number(load) + MARGIN_SECONDS * RATE
                self._is_over.wait()
        except AssertionError:  # it did not end by itself, and was ended
            has_ended = False
        return Seen(
            client=client,
            refused_batches=self._site.refused_batches(topic),
            errors=Counter((failure.error, failure.text) for failure in load.failures),
            healthy_rate=healthy_rate,
            refused=_later(load, refused, boundary),
            healthy=_later(load, healthy, boundary),
            has_ended=has_ended,
            wrong=_what_is_wrong(self._site, load),
        )


def _later(load: Load, partition: int, boundary: float) -> Later:
    failed = {failure.number for failure in load.failures if load.partition_of(failure.number) == partition}
    return Later(
        acked=sum(number > boundary for number in load.acked(partition)),
        failed=sum(number > boundary for number in failed),
    )


def _what_is_wrong(site: Site, load: Load) -> str:
    try:
        stored = verify_read_back(site.sandbox, load)
    except AssertionError as complaint:
        return str(complaint)
    failed = {failure.number for failure in load.failures}
    found = sum(number in failed for numbers in stored.values() for number in numbers)
    return f"{found} are reported failed but stored" if found else ""


def _newest_number(load: Load) -> int:
    return max(*load.acked(), *(failure.number for failure in load.failures), 0)


def print_matrix(site: Site) -> None:
    print("| client | " + " | ".join(f"{int(error)} {error.name}" for error in RejectError) + " |")
    print("|---|" + "---|" * len(RejectError))
    columns = [Watch(site, str(int(error)), CLIENTS).seen(error, {}) for error in RejectError]
    for seen in zip(*columns, strict=True):
        print(f"| {seen[0].client} | " + " | ".join(each.sentence() for each in seen) + " |")


def print_too_long(site: Site) -> None:
    print(f"| client | 56, refused for {REFUSED_SECONDS:.0f} s, willing to wait for 5 s |\n|---|---|")
    for seen in Watch(site, "too-long", IDEMPOTENT_CLIENTS).seen(RejectError.KAFKA_STORAGE_ERROR, GIVE_UP_SOON):
        print(f"| {seen.client} | {seen.sentence()} |")


def print_sharing(site: Site) -> None:
    print(client_sharing.HEADER)
    for row in client_sharing.rows(site):
        print(row, flush=True)


def main() -> None:
    with running_site() as site:
        for show in (print_matrix, print_too_long, print_sharing):
            show(site)
            print(flush=True)


if __name__ == "__main__":
    main()
