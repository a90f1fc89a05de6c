"""Properties files as operators write them."""

from collections.abc import Mapping

from brimline.observe.properties.java_properties import parse_properties
from brimline.settings.config import BadConfig, GuardConfig, read_config

BROKER = """\
node.id=7
process.roles=broker
log.dirs=/data/a,/data/b
listeners=CLIENT://0.0.0.0:9092,ADMIN://127.0.0.1:9093
advertised.listeners=CLIENT://broker7.example.org:9092,ADMIN://127.0.0.1:9093
listener.security.protocol.map=CLIENT:SASL_SSL,ADMIN:PLAINTEXT
inter.broker.listener.name=ADMIN
"""
FIRST_LINE = BROKER.count("\n") + 1
"""The number of the first line that a test adds."""


def config(
    added: str = "",
    broker: str = BROKER,
    *,
    environment: Mapping[str, str] | None = None,
    broker_cwd: str | None = None,
) -> GuardConfig:
    properties = parse_properties(f"{broker}{added}".encode(), "server.properties")
    return read_config(properties, "server.properties", environment or {}, broker_cwd)


def problems(added: str = "", broker: str = BROKER, **how: str) -> list[str]:
    try:
        config(added, broker, **how)  # type: ignore[arg-type]
    except BadConfig as bad:
        return list(bad.problems)
    return []
