"""Looks at what the gateway needs on this machine: its state folder, its ports, its key stores, and whether it runs.

It changes nothing: a port is bound for a moment without listening, and a key store is opened as the gateway opens it.
"""

import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterator

from brimline.documents.gateway_state import GatewayState
from brimline.documents.notices import Weight
from brimline.gateway.net.tls import ServerTls
from brimline.guard.feature import Finding
from brimline.guard.gateway_link.findings import concerns_gateway, gateway_finding, hole_weight
from brimline.model import BadInput, FailureKind, ObservationFailed, counted
from brimline.settings import keys
from brimline.settings.config import GuardConfig
from brimline.settings.layout import Address, FrontedListener

_PATIENCE = 3.0
"""Seconds for a broker on this machine to shake hands."""


def check_gateway(config: GuardConfig, ask: Callable[[], GatewayState]) -> Iterator[Finding]:
    """``ask`` fetches the state of the running gateway, or raises ``ObservationFailed``."""
    if not concerns_gateway(config):
        return
    yield from check_state_dir(config)
    yield from check_key_stores(config)
    try:
        state = ask()
    except ObservationFailed as error:
        not_ours = error.failure.kind is FailureKind.NOT_AUTHORIZED
        yield gateway_finding(Weight.NOTE if not_ours else hole_weight(config), str(error))
        if not not_ours:
            yield from check_ports(config)
        return
    yield from _explain_running(config, state)


def check_state_dir(config: GuardConfig) -> Iterator[Finding]:
    path = config.state_dir
    named = f"{keys.STATE_DIR.name}={path}"
    if not path.is_dir():
        yield gateway_finding(
            hole_weight(config),
            f"{named} is not a folder: create it for the user of guard and gateway, with mode 0700 (systemd: "
            "StateDirectory=brimline)",
        )
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield gateway_finding(hole_weight(config), f"{named} cannot be written to by this user (uid {os.geteuid()})")


def check_key_stores(config: GuardConfig) -> Iterator[Finding]:
    for fronted in config.layout.fronted:
        settings = config.tls.get(fronted.name)
        if settings is None:
            continue
        try:
            if isinstance(settings, BadInput):
                raise settings
            tls = ServerTls(settings)
        except BadInput as problem:
            yield gateway_finding(
                hole_weight(config), f"{fronted.name}: the gateway cannot offer TLS like the broker: {problem}"
            )
            continue
        if fronted.has_client_tls:
            yield gateway_finding(Weight.FINE, f"{fronted.name}: clients see the broker's own certificate")
            for sentence in settings.not_honoured:
                yield gateway_finding(Weight.WARNING, f"{fronted.name}: {sentence}")
        if fronted.has_broker_tls:
            yield from _check_broker_certificate(fronted, tls)


def _check_broker_certificate(fronted: FrontedListener, tls: ServerTls) -> Iterator[Finding]:
    """A broker that does not answer is a finding of its own, elsewhere."""
    try:
        with socket.create_connection((fronted.upstream.host, fronted.upstream.port), timeout=_PATIENCE) as plain:
            tls.upstream_context().wrap_socket(plain).close()
    except ssl.SSLCertVerificationError:
        yield gateway_finding(
            Weight.WARNING,
            f"{fronted.name}: the broker shows a certificate that is not in its key store, and a new gateway will "
            "not trust it: the broker has not read the renewed store; reload it with "
            f"kafka-configs.sh --alter --add-config listener.name.{fronted.name.lower()}.ssl.keystore.location=…, or "
            "restart it",
        )
    except OSError:
        return
    else:
        yield gateway_finding(Weight.FINE, f"{fronted.name}: the broker shows the certificate in its key store")


def check_ports(config: GuardConfig) -> Iterator[Finding]:
    """Only while no gateway runs: it would be the one who has them."""
    for fronted in config.layout.fronted:
        if fronted.is_intercepted:
            continue
        problem = _why_not_bound(fronted.bind)
        if problem is None:
            continue
        hint = ""
        if problem.errno == errno.EADDRINUSE:
            hint = ": another process listens there (fine if it is systemd for brimline-gateway.socket)"
        elif problem.errno == errno.EADDRNOTAVAIL:
            hint = ": it is not an address of this machine"
        yield gateway_finding(
            hole_weight(config),
            f"{fronted.name}: the gateway could not listen on {fronted.bind}{hint or f': {problem.strerror}'}",
        )


def check_upstreams(config: GuardConfig) -> Iterator[Finding]:
    """Only while the broker answers elsewhere: else it is the broker that is down."""
    for fronted in config.layout.fronted:
        host = fronted.upstream.host if not fronted.upstream.is_everywhere else "localhost"
        try:
            socket.create_connection((host, fronted.upstream.port), _PATIENCE).close()
        except OSError as error:
            yield gateway_finding(
                hole_weight(config),
                f"{fronted.name}: the broker does not answer at {fronted.upstream} ({error.strerror or error}): was it "
                "started with these listeners?",
            )


def _why_not_bound(address: Address) -> OSError | None:
    both = address.is_everywhere and socket.has_dualstack_ipv6()
    host = "::" if both else address.host or "0.0.0.0"
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if both:
                tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            tried.bind((host, address.port))
    except OSError as problem:
        return problem
    return None


def _explain_running(config: GuardConfig, state: GatewayState) -> Iterator[Finding]:
    draining = ", shutting down" if state.draining else ""
    yield gateway_finding(
        Weight.FINE,
        f"gateway running (version {state.version}, process {state.pid}), "
        f"{counted(state.connections.open, 'connection')}"
        f"{draining}",
    )
    if state.enforcement != config.text(keys.ENFORCEMENT):
        yield gateway_finding(
            hole_weight(config),
            f"the running gateway's enforcement is {state.enforcement}, and {config.path} says "
            f"{config.text(keys.ENFORCEMENT)}: restart the gateway",
        )
    if state.reject_error != config.reject_error:
        yield gateway_finding(
            Weight.WARNING,
            f"the running gateway answers with error {state.reject_error}, and {config.path} says "
            f"{config.reject_error}: send it SIGHUP",
        )
    served = {listener.name for listener in state.listeners}
    for fronted in config.layout.fronted:
        if fronted.name not in served:
            yield gateway_finding(
                hole_weight(config), f"{fronted.name}: the running gateway does not serve it: restart the gateway"
            )
