"""One login, in the words of each client library."""

from dataclasses import dataclass
from pathlib import Path

from brimline.torture.clients.table import Client

LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """``mechanism`` is empty without SASL, ``ca`` is ``None`` without TLS."""

    protocol: str
    mechanism: str = ""
    user: str = ""
    password: str = ""
    ca: Path | None = None

    def in_words_of(self, client: Client) -> dict[str, str]:
        if client.java_version:
            return self.java()
        return {"librdkafka_producer": self._librdkafka, "kafka_python_producer": self._kafka_python}[client.module]()

    def java(self) -> dict[str, str]:
        words = {"security.protocol": self.protocol}
        if self.ca is not None:
            words |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca)}
        if self.mechanism:
            module = LOGIN_MODULES[self.mechanism]
            login = f'{module} required username="{self.user}" password="{self.password}";'
            words |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": login}
        return words

    def _librdkafka(self) -> dict[str, str]:
        words = {"security.protocol": self.protocol}
        if self.ca is not None:
            words["ssl.ca.location"] = str(self.ca)
        if self.mechanism:
            words |= {"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password}
        return words

    def _kafka_python(self) -> dict[str, str]:
        words = {"security_protocol": self.protocol}
        if self.ca is not None:
            words["ssl_cafile"] = str(self.ca)
        if self.mechanism:
            words |= {"sasl_mechanism": self.mechanism}
            words |= {"sasl_plain_username": self.user, "sasl_plain_password": self.password}
        return words
