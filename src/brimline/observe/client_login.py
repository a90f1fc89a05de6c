"""SASL: mechanism, user name and password from a client's properties."""

from dataclasses import dataclass, field

from brimline.model.failures import BadInput
from brimline.observe.jaas_config import parse_jaas_config, shown_module
from brimline.observe.property_reader import PropertyReader

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

# Java lets either module serve any mechanism that needs a name and a password.
LOGIN_MODULES = (
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    mechanism: str
    username: str
    password: str = field(repr=False)


def login_of(reader: PropertyReader) -> Login:
    allowed = ", ".join(MECHANISMS)
    mechanism = reader.text("sasl.mechanism")
    if mechanism is None:
        raise BadInput(
            f"sasl.mechanism is missing; Kafka's default is GSSAPI, which cannot be honoured; allowed: {allowed}"
        )
    if mechanism not in MECHANISMS:
        raise reader.refusal("sasl.mechanism", f"cannot be honoured; allowed: {allowed}")
    config = reader.text("sasl.jaas.config")
    if config is None:
        raise BadInput(f"sasl.jaas.config is missing: {mechanism} takes the user name and password from it")
    try:
        module = parse_jaas_config(config)
    except ValueError as failure:
        raise reader.refusal("sasl.jaas.config", str(failure)) from failure
    if module.name not in LOGIN_MODULES:
        raise reader.refusal(
            "sasl.jaas.config", f"{shown_module(module.name)} cannot be honoured; allowed: {', '.join(LOGIN_MODULES)}"
        )
    if module.options.get("tokenauth", "").lower() == "true":
        raise reader.refusal("sasl.jaas.config", "tokenauth cannot be honoured: log in with a user name and password")
    for option in ("username", "password"):
        if option not in module.options:
            raise reader.refusal("sasl.jaas.config", f"the option {option} is missing")
    return Login(mechanism=mechanism, username=module.options["username"], password=module.options["password"])
