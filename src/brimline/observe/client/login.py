r"""SASL: mechanism, and user name and password or the source of a token, from a client's properties.

Kafka reads ``sasl.jaas.config`` with a tokenizer of its own (``java.io.StreamTokenizer``), not with the JDK's file
parser, and its rules are the ones people's files have been written against: a value is a word or a quoted string,
``\`` escapes inside quotes, ``//`` and ``/* */`` are comments, and a bare number is no value, so ``password=123`` must
be quoted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from brimline.model.failures import BadInput
from brimline.observe.client.oauth import TokenSource
from brimline.observe.properties.java_properties import PropertyReader

_OPTIONS = ("username", "password", "tokenauth")
_CONTROL_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
# A lone slash begins a comment too, and Java has read one more character by then, be it the end of the line.
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?(?:\*/|\Z)|/.?[^\r\n]*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$\u00a0-\U0010ffff][-A-Za-z0-9._$\u00a0-\U0010ffff]*")
_NUMBER = re.compile(r"-?[0-9.]+")
_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")


@dataclass(frozen=True, slots=True)
class LoginModule:
    """The one entry that a client's ``sasl.jaas.config`` holds. Its options may be secrets: they have no repr."""

    name: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Token:
    """A word or quoted string (``text``), or a character that stands for itself (``mark``); a number is neither."""

    text: str | None = None
    mark: str | None = None


def parse_jaas_config(config: str) -> LoginModule:
    """Read the property's value; ``ValueError`` says what is wrong without quoting a value, which may be a secret."""
    tokens = _tokens(config)
    entries = []
    for token in tokens:
        entries.append(_login_module(token.text, tokens))
    if len(entries) != 1:
        raise ValueError(f"must have one login module, has {len(entries)}")
    return entries[0]


def _login_module(name: str | None, tokens: Iterator[_Token]) -> LoginModule:
    if name is None:
        raise ValueError("must begin with the class name of a login module")
    flag = next(tokens, _Token()).text
    if flag is None or flag.lower() not in _CONTROL_FLAGS:
        raise ValueError(f"no control flag after {shown_module(name)} ({', '.join(sorted(_CONTROL_FLAGS))})")
    options: dict[str, str] = {}
    for token in tokens:
        if token.mark == ";":
            return LoginModule(name, options)
        key = token.text
        if key is None:
            raise ValueError(f"an option of {shown_module(name)} has no name")
        value = next(tokens, _Token()).mark == "=" and next(tokens, _Token()).text
        if value is None or value is False:
            option = f"the option {key}" if key in _OPTIONS else "an option"
            raise ValueError(f'{option} has no value: write NAME=word or NAME="text"')
        options[key] = value
    raise ValueError("does not end with a semicolon")


def shown_module(name: str) -> str:
    """A word in the module's place may be a password that was pasted without one."""
    return name if name.endswith("LoginModule") else "the first word"


def _tokens(config: str) -> Iterator[_Token]:
    position = 0
    while position < len(config):
        char = config[position]
        if char <= " ":
            position += 1
        elif char == "/":
            comment = _COMMENT.match(config, position)
            position = comment.end() if comment else len(config)
        elif char in "\"'":
            text, position = _quoted(config, position)
            yield _Token(text=text)
        elif word := _WORD.match(config, position):
            position = word.end()
            yield _Token(text=word[0])
        elif (number := _NUMBER.match(config, position)) and any("0" <= digit <= "9" for digit in number[0]):
            position = number.end()
            yield _Token()
        else:
            position += 1
            yield _Token(mark=char)


def _quoted(config: str, start: int) -> tuple[str, int]:
    """The string that opens at ``start``. As in Java it also ends, unclosed, at the end of its line."""
    quote = config[start]
    text: list[str] = []
    position = start + 1
    while position < len(config):
        char = config[position]
        if char == quote:
            return "".join(text), position + 1
        if char in "\r\n":
            break
        position += 1
        if char == "\\" and position < len(config):
            if octal := _OCTAL.match(config, position):
                char = chr(int(octal[0], 8))
                position = octal.end()
            else:
                char = _SIMPLE_ESCAPES.get(config[position], config[position])
                position += 1
        text.append(char)
    return "".join(text), position


OAUTHBEARER = "OAUTHBEARER"
_BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*_BY_PASSWORD, OAUTHBEARER)

# Java lets either module serve any mechanism that needs a name and a password.
LOGIN_MODULES = (
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
)
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_OAUTH_MODULE = f"{_OAUTH}.OAuthBearerLoginModule"
OAUTH_CLASSES: Mapping[str, tuple[str, ...]] = {
    "sasl.login.callback.handler.class": (
        f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
        f"{_OAUTH}.secured.OAuthBearerLoginCallbackHandler",
    ),
    "sasl.oauthbearer.jwt.retriever.class": (
        f"{_OAUTH}.DefaultJwtRetriever",
        f"{_OAUTH}.ClientCredentialsJwtRetriever",
        f"{_OAUTH}.FileJwtRetriever",
    ),
}
"""What these classes of Java's do is done here as well."""
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CLIENT = "sasl.oauthbearer.client.credentials.client"
_GSSAPI = "GSSAPI (Kerberos) is not supported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """By name and password, or by a token."""

    mechanism: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token_source: TokenSource | None = None


def login_of(reader: PropertyReader) -> Login:
    allowed = ", ".join(MECHANISMS)
    mechanism = reader.text("sasl.mechanism")
    if mechanism is None:
        raise BadInput(f"sasl.mechanism is missing; Kafka's default is GSSAPI, and {_GSSAPI}; allowed: {allowed}")
    if mechanism not in MECHANISMS:
        why = _GSSAPI if mechanism == "GSSAPI" else "not supported"
        raise reader.refusal("sasl.mechanism", f"{why}; allowed: {allowed}")
    if mechanism == OAUTHBEARER:
        return Login(mechanism=mechanism, token_source=_token_source(reader))
    module = _module(reader, LOGIN_MODULES, f"{mechanism} takes the user name and password from it")
    if module.options.get("tokenauth", "").lower() == "true":
        raise reader.refusal("sasl.jaas.config", "tokenauth is not supported: use a user name and password")
    for option in ("username", "password"):
        if option not in module.options:
            raise reader.refusal("sasl.jaas.config", f"the option {option} is missing")
    return Login(mechanism=mechanism, username=module.options["username"], password=module.options["password"])


def _module(reader: PropertyReader, allowed: Sequence[str], what_for: str) -> LoginModule:
    config = reader.text("sasl.jaas.config")
    if config is None:
        raise BadInput(f"sasl.jaas.config is missing: {what_for}")
    try:
        module = parse_jaas_config(config)
    except ValueError as failure:
        raise reader.refusal("sasl.jaas.config", str(failure)) from failure
    if module.name not in allowed:
        raise reader.refusal(
            "sasl.jaas.config", f"{shown_module(module.name)} is not supported; allowed: {', '.join(allowed)}"
        )
    return module


def _token_source(reader: PropertyReader) -> TokenSource:
    url = reader.text(_ENDPOINT)
    if url is None:
        raise BadInput(f"{_ENDPOINT} is missing: OAUTHBEARER takes the token from there (https:, http: or file:)")
    scheme = url.partition(":")[0].lower()
    if scheme not in ("https", "http", "file"):
        raise reader.refusal(_ENDPOINT, "allowed: an address that begins with https:, http: or file:")
    options = _module(reader, (_OAUTH_MODULE,), "Kafka's clients want it, with the module of OAUTHBEARER").options
    client = reader.text(f"{_CLIENT}.id") or options.get("clientId", "")
    secret = reader.text(f"{_CLIENT}.secret") or options.get("clientSecret", "")
    if scheme != "file" and not (client and secret):
        raise BadInput(f"no client id: set {_CLIENT}.id and .secret, or clientId and clientSecret in sasl.jaas.config")
    return TokenSource(
        url=url,
        client_id=client,
        client_secret=secret,
        scope=reader.text("sasl.oauthbearer.scope") or options.get("scope"),
        timeout=reader.duration("sasl.login.read.timeout.ms") or timedelta(seconds=10),
    )
