"""The table of clients. Their properties are their library's defaults; only idempotence is chosen where it says so."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brimline.torture.clients import java_clients

_PACKAGE = "brimline.torture.clients"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A producing client; ``str`` of it is its name in test ids."""

    name: str
    is_idempotent: bool
    module: str = ""
    """Of the Python client."""
    java_version: str = ""
    """Of the Java client."""
    properties: Mapping[str, str] = field(default_factory=dict)
    patience: Mapping[str, str] = field(default_factory=dict)
    """Properties with which it goes on trying for as long as a slow machine may take. Not among its own: some want to
    see when it gives up."""

    def __str__(self) -> str:
        return self.name

    def command(self, arguments: Iterable[str], properties: Mapping[str, str]) -> list[str]:
        """``properties`` win over the client's own."""
        given = {**self.properties, **properties}
        options = [word for key, value in given.items() for word in ("--property", f"{key}={value}")]
        if self.java_version:
            return java_clients.command(self.java_version, "produce", [*arguments, *options])
        return [sys.executable, "-m", f"{_PACKAGE}.{self.module}", *arguments, *options]


_LONG_MS = "600000"
_OF_JAVA = dict.fromkeys(("delivery.timeout.ms", "max.block.ms", "transaction.timeout.ms"), _LONG_MS)
_OF_LIBRDKAFKA = {"message.timeout.ms": _LONG_MS}
_OF_KAFKA_PYTHON = dict.fromkeys(("delivery_timeout_ms", "max_block_ms"), _LONG_MS)
_OF_AIOKAFKA = {"request_timeout_ms": _LONG_MS}

JAVA_4 = Client(name="java-4.3.1", is_idempotent=True, java_version="4.3.1", patience=_OF_JAVA)
JAVA_3 = Client(name="java-3.9.2", is_idempotent=True, java_version="3.9.2", patience=_OF_JAVA)
LIBRDKAFKA = Client(name="librdkafka", is_idempotent=False, module="librdkafka_producer", patience=_OF_LIBRDKAFKA)
LIBRDKAFKA_IDEMPOTENT = Client(
    name="librdkafka-idempotent",
    is_idempotent=True,
    module="librdkafka_producer",
    properties={"enable.idempotence": "true"},
    patience=_OF_LIBRDKAFKA,
)
KAFKA_PYTHON = Client(
    name="kafka-python", is_idempotent=True, module="kafka_python_producer", patience=_OF_KAFKA_PYTHON
)
AIOKAFKA = Client(name="aiokafka", is_idempotent=False, module="aiokafka_producer", patience=_OF_AIOKAFKA)
AIOKAFKA_IDEMPOTENT = Client(
    name="aiokafka-idempotent",
    is_idempotent=True,
    module="aiokafka_producer",
    properties={"enable_idempotence": "true"},
    patience=_OF_AIOKAFKA,
)

CLIENTS = (JAVA_4, JAVA_3, LIBRDKAFKA, LIBRDKAFKA_IDEMPOTENT, KAFKA_PYTHON, AIOKAFKA, AIOKAFKA_IDEMPOTENT)
IDEMPOTENT_CLIENTS = tuple(client for client in CLIENTS if client.is_idempotent)
