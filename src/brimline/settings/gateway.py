"""What the gateway is told by the broker's file: its layout, the TLS of its listeners, and where it keeps its state.

With it values that have a form of their own (landing places, patterns of topics), found wrong before the guard starts.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TypeVar

from brimline.model import BadInput
from brimline.model.reclaim import split_patterns
from brimline.model.secrets import is_uri
from brimline.observe.properties.broker_properties import BrokerProperties
from brimline.observe.properties.config_providers import resolve_references
from brimline.observe.properties.java_properties import JavaProperties, PropertyReader
from brimline.observe.properties.key_stores import ListenerTls, listener_tls, tls_keys
from brimline.settings.keys import (
    GATEWAY_LISTENERS,
    GATEWAY_PROTOCOLS,
    GATEWAY_SOURCE,
    INTERCEPTION,
    LANDING_URI,
    STATE_DIR,
    TPROXY,
    Key,
)
from brimline.settings.layout import (
    GatewayLayout,
    GatewayWishes,
    gateway_layout,
    parse_listeners,
    parse_protocols,
    wrong_listeners,
    wrong_protocols,
)

_LONGEST_SOCKET_PATH = 107
"""What the kernel takes for the name of a Unix socket."""

OWN, ANY = "own", "any"
"""An address of the gateway's own to connect from, or whichever the system takes."""

Parsed = TypeVar("Parsed")


def read_layout(reader: PropertyReader, broker: BrokerProperties, admin_listener: str) -> GatewayLayout:
    """``BadInput`` when one of our own keys cannot be followed."""
    wishes = GatewayWishes(
        listeners=_parsed(GATEWAY_LISTENERS, parse_listeners, reader),
        protocols=_parsed(GATEWAY_PROTOCOLS, parse_protocols, reader),
        admin_listener=admin_listener.upper() or broker.inter_broker_listener,
        intercepts=(reader.text(INTERCEPTION.name) or "").strip().lower() == TPROXY,
    )
    if wishes.intercepts and wishes.listeners:
        raise reader.refusal(GATEWAY_LISTENERS.name, f"no effect with {INTERCEPTION.name}={TPROXY}: remove it")
    for key, check in ((GATEWAY_LISTENERS, wrong_listeners), (GATEWAY_PROTOCOLS, wrong_protocols)):
        wrong = check(broker, wishes)
        if wrong is not None:
            raise reader.refusal(key.name, wrong)
    return gateway_layout(broker, wishes)


def read_tls(
    raw: JavaProperties, layout: GatewayLayout, environment: Mapping[str, str], broker_cwd: str | None
) -> dict[str, ListenerTls | BadInput]:
    """Of every fronted listener with TLS on either side. Only then are the broker's secrets for it looked at."""
    found: dict[str, ListenerTls | BadInput] = {}
    for listener in layout.fronted:
        if not (listener.has_client_tls or listener.has_broker_tls):
            continue
        properties, problems = resolve_references(raw, environment, keys=tls_keys(listener.name).__contains__)
        try:
            found[listener.name] = problems[0] if problems else listener_tls(properties, listener.name, broker_cwd)
        except BadInput as problem:
            found[listener.name] = problem
    return found


def refuse_source(reader: PropertyReader, wish: str) -> None:
    """``BadInput`` for what is no address."""
    if wish not in (OWN, ANY) and _ip(wish) is None:
        raise reader.refusal(GATEWAY_SOURCE.name, f"allowed: {OWN}, {ANY} or an IP address of this machine")


def refuse_state_dir(reader: PropertyReader, path: str, node_id: int | None) -> None:
    """``BadInput`` for a folder that no control socket can be in."""
    if not path.startswith("/"):
        raise reader.refusal(STATE_DIR.name, "allowed: an absolute path")
    if len(f"{path}/gateway-{node_id}.sock".encode()) > _LONGEST_SOCKET_PATH:
        raise reader.refusal(
            STATE_DIR.name, f"the path of a socket in it would be longer than {_LONGEST_SOCKET_PATH} bytes"
        )


def _parsed(key: Key, parse: Callable[[str], Parsed], reader: PropertyReader) -> Parsed:
    try:
        return parse(reader.text(key.name) or "")
    except ValueError as problem:
        raise reader.refusal(key.name, str(problem)) from problem


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


_NEEDED = "pyarrow"


def refuse_landing(
    reader: PropertyReader, uri: str, is_installed: Callable[[str], bool] = lambda name: find_spec(name) is not None
) -> None:
    """``BadInput`` for a place that no snapshot can be put to."""
    if not uri:
        return
    if not uri.startswith("/") and not is_uri(uri):
        raise reader.refusal(LANDING_URI.name, "allowed: an absolute path, or a URI such as s3://bucket/folder")
    if not is_installed(_NEEDED):
        raise reader.refusal(
            LANDING_URI.name, f"it needs {_NEEDED}, which is not installed: pip install 'brimline[fleet]'"
        )


def protected_patterns(text: str) -> tuple[str, ...]:
    """``ValueError`` with the words for what is wrong."""
    patterns = split_patterns(text)
    for pattern in patterns:
        if pattern.count("{") != pattern.count("}"):
            raise ValueError(f"{pattern} has unbalanced braces")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern} is not a regular expression: {error}") from error
    return patterns
