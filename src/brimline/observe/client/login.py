r"""SASL: ``sasl.jaas.config``, mechanism, user and password.

``sasl.jaas.config``: which login module, with which user and password.

Kafka reads this property with a tokenizer of its own (``java.io.StreamTokenizer``), not with the JDK's file parser, and
its rules are the ones people's files have been written against: a value is a word or a quoted string, ``\`` escapes
inside quotes, ``//`` and ``/* */`` are comments, and a bare number is no value, so ``password=123`` must be quoted.

SASL: mechanism, user name and password from a client's properties.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from brimline.model.failures import BadInput
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
        raise ValueError(f"it must hold one login module, and holds {len(entries)}")
    return entries[0]


def _login_module(name: str | None, tokens: Iterator[_Token]) -> LoginModule:
    if name is None:
        raise ValueError("it must begin with the class name of a login module")
    flag = next(tokens, _Token()).text
    if flag is None or flag.lower() not in _CONTROL_FLAGS:
        raise ValueError(f"after {shown_module(name)} stands no control flag ({', '.join(sorted(_CONTROL_FLAGS))})")
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
    raise ValueError("it does not end with a semicolon")


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
