"""What the broker's file says, as settings of the gateway's parts; and what keeps a gateway from starting."""

import os
import socket
from pathlib import Path

from brimline.decide.admission import RejectError
from brimline.decide.interception import CLIENT_MARK
from brimline.disks.task import DiskSettings
from brimline.gateway.describe.job import BrokerAccess
from brimline.gateway.net.addresses import AddressLimits, limits_in_file
from brimline.gateway.net.forwarder import ForwarderSettings
from brimline.gateway.net.listening import Address, listening_sockets, resolved
from brimline.gateway.net.tls import ServerTls
from brimline.gateway.net.transparent import own_ports
from brimline.gateway.rules.rules import RuleSettings
from brimline.model import BadInput
from brimline.service.durable_files import why_untrusted
from brimline.settings import keys
from brimline.settings.config import GuardConfig
from brimline.settings.layout import FrontedListener


def refuse_impossible(config: GuardConfig) -> None:
    if config.layout.problems:
        raise BadInput("; ".join(config.layout.problems))
    if not config.layout.fronted:
        past = "; ".join(f"{each.name}: {each.why.value}" for each in config.layout.bypassed)
        raise BadInput(
            f"{config.path}: no listener goes through a gateway ({past}); brimline doctor says how to set one up"
        )


def make_state_dir(path: Path) -> list[str]:
    """What is wrong with it: the gateway does without, or with what it is."""
    try:
        path.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as problem:
        return [f"{keys.STATE_DIR.name}: {path} cannot be made: {problem.strerror}"]
    if not os.access(path, os.W_OK | os.X_OK):
        return [f"{keys.STATE_DIR.name}: {path} cannot be written by this user (uid {os.geteuid()})"]
    untrusted = why_untrusted(path)
    return [] if untrusted is None else [f"{keys.STATE_DIR.name}: {untrusted}"]


def upstream_of(fronted: FrontedListener) -> tuple[socket.AddressFamily, Address]:
    host = fronted.upstream.host
    try:
        return resolved(host, fronted.upstream.port)
    except OSError as problem:
        raise BadInput(
            f"listener {fronted.name}: the broker's host {host} has no address: {problem.strerror}"
        ) from problem


def own_sockets(fronted: FrontedListener) -> tuple[socket.socket, ...]:
    if fronted.is_intercepted:
        return taking_aside()
    try:
        return listening_sockets(fronted.bind.host, fronted.bind.port)
    except OSError as problem:
        raise BadInput(
            f"the gateway cannot listen on {fronted.bind} for {fronted.name}: {problem.strerror}"
        ) from problem


def taking_aside() -> tuple[socket.socket, ...]:
    try:
        return own_ports(CLIENT_MARK)
    except OSError as problem:
        raise BadInput(
            f"{keys.INTERCEPTION.name}: the gateway cannot accept intercepted connections ({problem.strerror}): "
            "it needs CAP_NET_RAW"
        ) from problem


def tls_of(config: GuardConfig) -> dict[str, ServerTls]:
    made = {}
    for name, settings in config.tls.items():
        if isinstance(settings, BadInput):
            raise settings
        made[name] = ServerTls(settings, memory=config.state_dir / f"certificates-{config.node_id}-{name}.pem")
    return made


def broker_access(config: GuardConfig) -> BrokerAccess:
    access = config.admin_access
    return BrokerAccess(
        node_id=config.node_id, bootstrap_servers=access.servers, client_properties=dict(access.properties)
    )


def disk_settings(config: GuardConfig) -> DiskSettings:
    return DiskSettings(limits=config.limits, pace=config.pace, stall_timeout=config.seconds(keys.STALL_TIMEOUT))


def rule_settings(config: GuardConfig) -> RuleSettings:
    return RuleSettings(
        error=RejectError(config.reject_error),
        refusals_per_second=config.number(keys.GATEWAY_REFUSALS),
        memory_seconds=config.number(keys.REJECT_MEMORY) // 1000,
    )


def forwarder_settings(config: GuardConfig) -> ForwarderSettings:
    return ForwarderSettings(
        largest_request=config.broker.largest_request,
        max_connections=config.number(keys.GATEWAY_MAX_CONNECTIONS),
        header_timeout=config.seconds(keys.GATEWAY_HEADER_TIMEOUT),
        kept_bytes=config.number(keys.GATEWAY_MEMORY),
        login_timeout=config.seconds(keys.GATEWAY_LOGIN_TIMEOUT),
        largest_login=config.broker.largest_login,
        # Where the broker sees its clients' own addresses, it keeps its limits itself.
        addresses=AddressLimits() if config.intercepts else limits_in_file(config.broker.connection_limits),
    )
