"""TLS on both sides of the gateway, with the key store that the broker itself uses at that listener.

**Towards clients** the gateway shows the broker's own certificate, so that no client has to trust anybody new. A store
that changes on disk is read again; one that cannot be read is named once, and the certificate of before goes on.

**Towards the broker** the peer must show the very certificate that the key store holds. Its name is not looked at: the
gateway speaks to a loopback address, which no certificate names. A broker reads a renewed store only when it is told
to, perhaps weeks later, so the certificates of before are accepted too, and they are kept in a file: a gateway that is
restarted meanwhile must know its broker again.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

from brimline.model import BadInput
from brimline.observe.properties.key_stores import KeyMaterial, ListenerTls, certificates_in, read_key_store
from brimline.observe.properties.pem_stores import load_key, new_context
from brimline.service.durable_files import read_state, replace_durably

_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which ``ssl`` has no name for."""
_MOST_PINS = 16
"""Renewals that are remembered: a broker has long read the last of them."""

_Stamp = tuple[int, int, int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """What became of a key store that has changed, for the log."""

    is_loaded: bool
    sentence: str


class ServerTls:
    """For one listener. One thread refreshes; the contexts, made when the store is read, may be asked for by any.

    ``memory`` is the file in which the broker's certificates are remembered. ``BadInput`` when the store cannot be used
    at the start.
    """

    def __init__(self, settings: ListenerTls, memory: Path | None = None) -> None:
        self._settings = settings
        self._memory = memory
        self._stamp = self._look()
        self._pins = _remembered(memory)
        self.complaint: str | None = None
        """Why the memory could not be written, for the log."""
        self._load()

    def client_context(self) -> ssl.SSLContext:
        """For connections that clients open from now on."""
        return self._client_context

    def upstream_context(self) -> ssl.SSLContext:
        """For connections to the broker from now on. It wants no host name."""
        return self._upstream_context

    def refresh(self) -> Renewal | None:
        """Read the store again if its file has changed; ``None`` if not. Costs one ``stat`` then."""
        stamp = self._look()
        if stamp == self._stamp:
            return None
        # Taken before the file is read: whoever writes it meanwhile is seen the next time.
        self._stamp = stamp
        try:
            self._load()
        except BadInput as problem:
            return Renewal(
                is_loaded=False,
                sentence=f"the changed key store of {self._settings.listener} cannot be used; clients still get the "
                f"previous certificate: {problem}",
            )
        return Renewal(
            is_loaded=True,
            sentence=f"the key store of {self._settings.listener} has changed: new connections get its certificate",
        )

    def _load(self) -> None:
        material = read_key_store(self._settings.key_store)
        client = _context_for_clients(self._settings, material)
        pins = [material.leaf, *(pin for pin in self._pins if pin != material.leaf)][:_MOST_PINS]
        self._client_context, self._upstream_context = client, _context_for_broker(pins)
        if pins != self._pins:
            self._pins = pins
            self._remember()

    def _remember(self) -> None:
        """Whole or not at all. Nothing depends on it until the next start, so a full disk stops nobody here."""
        if self._memory is None:
            return
        try:
            replace_durably(self._memory, "".join(self._pins).encode("ascii"))
        except OSError as failure:
            self.complaint = f"the broker's certificates cannot be kept in {self._memory}: {failure.strerror}"
        else:
            self.complaint = None

    def _look(self) -> _Stamp:
        """A file that is replaced, rewritten or given to somebody else looks different; ``None``: there is none."""
        location = self._settings.key_store.location
        if location is None:
            return None
        try:
            status = Path(location).stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _remembered(memory: Path | None) -> list[str]:
    """What cannot be read, or is no certificate, was not remembered."""
    try:
        text = read_state(memory).decode("ascii", "replace") if memory else ""
    except OSError:
        return []
    return [pin for pin in certificates_in(text) if _is_certificate(pin)]


def _is_certificate(pem: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except ssl.SSLError:
        return False
    return True


def _context_for_clients(settings: ListenerTls, material: KeyMaterial) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = settings.oldest
    context.maximum_version = settings.newest
    # A client that renegotiates again and again would keep this one thread busy; brokers refuse it too.
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        load_key(context, private_key=material.private_key, chain=material.chain, password=material.password)
    except ValueError as failure:
        raise settings.key_store.refusal(str(failure)) from failure
    return context


def _context_for_broker(pins: list[str]) -> ssl.SSLContext:
    """A pin is an anchor of trust without being an authority: it vouches for itself and not for its issuer's others."""
    context = new_context(oldest=ssl.TLSVersion.TLSv1_2, newest=ssl.TLSVersion.TLSv1_3, check_host_name=False)
    for pin in pins:
        context.load_verify_locations(cadata=pin)
    # Whether a certificate has expired is between the clients and whoever renews it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    return context
