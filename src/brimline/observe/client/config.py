"""How to reach a cluster: Java's client properties, made into settings for kafka-python.

A properties file is often shared between tools, so a name that any of Kafka's clients knows is no mistake. One that
changes who is trusted, or how a secret is found, must not be ignored either: it is refused, with its reason.

The rule for a property is one of four. It is honoured; or it has no bearing on describing a cluster and is passed
over; or it cannot be honoured and is refused by name, because a client that quietly drops a security setting is worse
than none; or no Kafka client knows it, and one warning says so, as Java's does.

Every refusal names the key, the value (never a secret), what is allowed, and where it was written.
"""

import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum

from brimline.model.failures import BadInput
from brimline.observe.client.login import OAUTH_CLASSES, Login, login_of
from brimline.observe.client.oauth import TokenProvider, TokenSource
from brimline.observe.client.tls import tls_context_of
from brimline.observe.properties.java_properties import JavaProperties, PropertyReader

REFUSED: Mapping[str, str] = {
    "bootstrap.controllers": "log dirs are described by brokers, not by controllers",
    "config.providers": "values from config providers are not resolved here; write the values themselves",
    "sasl.client.callback.handler.class": "Java classes cannot be loaded here",
    "sasl.login.callback.handler.class": "Java classes cannot be loaded here",
    "sasl.login.class": "Java classes cannot be loaded here",
    "sasl.oauthbearer.jwt.retriever.class": "Java classes cannot be loaded here",
    "security.providers": "Java security providers cannot be loaded here",
    "ssl.cipher.suites": "Java's cipher suite names have no exact counterpart in OpenSSL",
    "ssl.engine.factory.class": "Java classes cannot be loaded here",
    "ssl.provider": "Java security providers cannot be loaded here",
}

# AdminClientConfig, ConsumerConfig and ProducerConfig of Kafka 3.2 to 4.3, all names together.
_NAMES = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size bootstrap.controllers
    bootstrap.servers buffer.memory check.crcs client.dns.lookup client.id client.rack compression.gzip.level
    compression.lz4.level compression.type compression.zstd.level config.providers connections.max.idle.ms
    default.api.timeout.ms delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id
    group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes internal.leave.group.on.close
    internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records max.request.size metadata.max.age.ms metadata.max.idle.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms partition.assignment.strategy
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
    retries retry.backoff.max.ms retry.backoff.ms sasl.client.callback.handler.class sasl.jaas.config
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
    sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes session.timeout.ms
    share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain
    ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
    ssl.truststore.password ssl.truststore.type transaction.timeout.ms transaction.two.phase.commit.enable
    transactional.id value.deserializer value.serializer
"""
KNOWN = frozenset(_NAMES.split())


DEFAULT_CLIENT_ID = "brimline"
_DNS_LOOKUPS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
_PROVIDER_REFERENCE = re.compile(r"\$\{[^}:]+:[^}]*\}")
_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?(?:\[([0-9a-zA-Z\-%._:]+)\]|([0-9a-zA-Z\-%._]+)):([0-9]{1,5})")


class SecurityProtocol(Enum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_tls(self) -> bool:
        return self.value.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.value.startswith("SASL")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Everything a client needs to know before its first connection."""

    bootstrap_servers: tuple[str, ...]
    client_id: str = DEFAULT_CLIENT_ID
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    ssl_context: ssl.SSLContext | None = None
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    token_source: TokenSource | None = None
    request_timeout: timedelta = timedelta(seconds=30)
    api_timeout: timedelta | None = None  # default.api.timeout.ms, where given: the deadline of a whole call
    connection_setup_timeout: timedelta = timedelta(seconds=10)
    connection_setup_timeout_max: timedelta = timedelta(seconds=30)
    dns_lookup: str = "use_all_dns_ips"
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_properties(
        cls, bootstrap_servers: str | Iterable[str], properties: JavaProperties | None = None
    ) -> "ClientConfig":
        """The configuration for these servers (``host:port``, which win over the file's, as in Java) and properties."""
        reader = PropertyReader(properties if properties is not None else JavaProperties())
        for key, reason in REFUSED.items():
            value = reader.text(key)
            if value and value not in OAUTH_CLASSES.get(key, ()):
                raise reader.refusal(key, f"is not supported: {reason}")
        name = reader.choice("security.protocol", [each.value for each in SecurityProtocol], fold_case=True)
        protocol = SecurityProtocol(name or "PLAINTEXT")
        login: Login | None = login_of(reader) if protocol.uses_sasl else None
        config = cls(
            bootstrap_servers=parse_bootstrap_servers(bootstrap_servers),
            client_id=reader.text("client.id") or DEFAULT_CLIENT_ID,
            security_protocol=protocol,
            ssl_context=tls_context_of(reader) if protocol.uses_tls else None,
            sasl_mechanism=login.mechanism if login else None,
            sasl_username=login.username if login else None,
            sasl_password=login.password if login else None,
            token_source=login.token_source if login else None,
            api_timeout=reader.duration("default.api.timeout.ms"),
            dns_lookup=reader.choice("client.dns.lookup", _DNS_LOOKUPS) or _DNS_LOOKUPS[0],
            warnings=tuple(_warnings(reader)),
        )
        return _with_timeouts(config, reader)

    def kafka_python_options(self) -> dict[str, object]:
        """Keyword arguments that kafka-python's clients of every kind take."""
        return {
            "bootstrap_servers": list(self.bootstrap_servers),
            "client_id": self.client_id,
            "security_protocol": self.security_protocol.value,
            "ssl_context": self.ssl_context,
            "sasl_mechanism": self.sasl_mechanism,
            "sasl_plain_username": self.sasl_username,
            "sasl_plain_password": self.sasl_password,
            "request_timeout_ms": _milliseconds(self.request_timeout),
            "client_dns_lookup": self.dns_lookup,
            **({} if self.token_source is None else {"sasl_oauth_token_provider": TokenProvider(self.token_source)}),
        }

    def kafka_python_connection_options(self) -> dict[str, object]:
        """The same for ``KafkaConnectionManager``, which takes two more than ``KafkaConsumer`` does."""
        return {
            **self.kafka_python_options(),
            "socket_connection_setup_timeout_ms": _milliseconds(self.connection_setup_timeout),
            "socket_connection_setup_timeout_max_ms": _milliseconds(self.connection_setup_timeout_max),
        }


def parse_bootstrap_servers(servers: str | Iterable[str]) -> tuple[str, ...]:
    """``host:port,[ipv6]:port`` → each address by itself; the port is required, as in Java."""
    text = servers if isinstance(servers, str) else ",".join(servers)
    addresses = [address.strip() for address in text.split(",") if address.strip()]
    if not addresses:
        raise BadInput("no bootstrap server given: write host:port, comma-separated")
    parsed = []
    for address in addresses:
        match = _ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match[3]) < 65536:
            raise BadInput(f"bootstrap server {address!r} is not host:port (an IPv6 address is written [::1]:9092)")
        host = f"[{match[1]}]" if match[1] and ":" in match[1] else match[1] or match[2]
        try:
            host.encode("idna")
        except UnicodeError:  # Python would raise it in the middle of asking for its address
            raise BadInput(
                f"bootstrap server {address!r} has no host name: two dots, or a part that is too long"
            ) from None
        parsed.append(f"{host}:{match[3]}")
    return tuple(parsed)


def _with_timeouts(config: ClientConfig, reader: PropertyReader) -> ClientConfig:
    request = reader.duration("request.timeout.ms")
    if request is not None and config.api_timeout is not None and config.api_timeout < request:
        raise reader.refusal("default.api.timeout.ms", "must not be smaller than request.timeout.ms")
    setup = reader.duration("socket.connection.setup.timeout.ms")
    setup_max = reader.duration("socket.connection.setup.timeout.max.ms")
    return replace(
        config,
        request_timeout=config.request_timeout if request is None else request,
        connection_setup_timeout=config.connection_setup_timeout if setup is None else setup,
        connection_setup_timeout_max=config.connection_setup_timeout_max if setup_max is None else setup_max,
    )


def _warnings(reader: PropertyReader) -> Iterator[str]:
    unknown = sorted(key for key in reader.properties if key not in KNOWN)
    if unknown:
        yield f"unknown to Kafka clients, no effect: {', '.join(unknown)}"
    for key, value in reader.properties.items():
        if key in KNOWN and _PROVIDER_REFERENCE.search(value):
            yield f"{key} holds a ${{…}} reference and no config.providers is set: taken literally, as in Java"


def _milliseconds(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
