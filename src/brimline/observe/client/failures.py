"""What kafka-python's errors mean for the person who asked.

kafka-python tells most network failures apart only by the text of one error class, so this is the one place that
reads those texts.
"""

import errno
import re
import socket

from kafka import errors as client_errors

from brimline.model import Failure, FailureKind
from brimline.observe.client.config import SecurityProtocol
from brimline.observe.client.oauth import TokenError
from brimline.wire.primitives import WireError

_ERRNO = re.compile(r"\b(\d+) (E[A-Z]+)\b")
_PREFIX = re.compile(r"^(?:\[Error -?\d+\] |\w+Error:\s*)+")
_REFUSED = errno.errorcode[errno.ECONNREFUSED]
# What a listener may want when it closes the connection of a client that does this.
_PERHAPS_WANTED = {
    SecurityProtocol.PLAINTEXT: "SASL or TLS",
    SecurityProtocol.SSL: "SASL too",
    SecurityProtocol.SASL_PLAINTEXT: "TLS too",
    SecurityProtocol.SASL_SSL: "something else",
}
_UNASKED_SECONDS = 1.0


def failure_of(
    error: BaseException, who: str, security_protocol: SecurityProtocol, address: tuple[str, int] | None = None
) -> Failure:
    """``who`` is the broker or address that was asked, in words. Looks once more at an address that hung up."""
    text = _text(error)
    match error:
        case client_errors.KafkaTimeoutError() | client_errors.RequestTimedOutError():
            return _failure(FailureKind.TIMED_OUT, who, "did not answer in time")
        case TokenError():
            return _failure(FailureKind.NOT_AUTHENTICATED, who, f"was not asked: {text}")
        case client_errors.UnsupportedSaslMechanismError():
            return _failure(FailureKind.NOT_AUTHENTICATED, who, f"does not offer this SASL mechanism ({text})")
        case client_errors.SaslAuthenticationFailedError() | client_errors.IllegalSaslStateError():
            return _failure(FailureKind.NOT_AUTHENTICATED, who, f"refused the SASL credentials ({text})")
        case client_errors.AuthorizationError():
            return _failure(FailureKind.NOT_AUTHORIZED, who, f"refused: {text}")
        case client_errors.IncompatibleBrokerVersion() | client_errors.UnsupportedVersionError():
            return _failure(FailureKind.UNSUPPORTED, who, f"does not support the request ({text})")
        case client_errors.KafkaProtocolError() | WireError():
            hint = "" if security_protocol.uses_tls else "; if it is a TLS listener, set security.protocol=SSL"
            return _failure(FailureKind.NOT_KAFKA, who, f"answered with something that is not Kafka's protocol{hint}")
        case client_errors.NodeNotReadyError():
            return _failure(FailureKind.UNREACHABLE, who, "is not connected: an earlier attempt failed a moment ago")
        case client_errors.KafkaConnectionError() | OSError():
            if address is not None and _hung_up(text) and _closes_unasked(address):
                return _failure(
                    FailureKind.UNREACHABLE,
                    who,
                    "closes every connection at once: the broker behind this gateway is down, or is at max.connections",
                )
            return _connection_failure(text, who, security_protocol)
        case client_errors.UnknownBrokerIdError():
            return _failure(FailureKind.UNREACHABLE, who, "is not a live broker of this cluster")
    return _failure(FailureKind.KAFKA_ERROR, who, f"answered with {type(error).__name__}: {text}")


def _connection_failure(text: str, who: str, security_protocol: SecurityProtocol) -> Failure:
    if "Handshake failed" in text or "[SSL:" in text:
        return _failure(FailureKind.TLS_FAILED, who, _tls_words(text))
    if "DNS" in text:
        return _failure(FailureKind.UNREACHABLE, who, "is unknown: the host name cannot be resolved")
    if _REFUSED in text:
        return _failure(FailureKind.UNREACHABLE, who, "refused the connection: is a broker listening there?")
    if "timed out" in text.lower():
        return _failure(FailureKind.TIMED_OUT, who, "did not answer in time")
    if "disconnected" in text and security_protocol.uses_sasl:
        # A broker answers wrong credentials and hangs up; kafka-python may see only that it hung up.
        return _failure(
            FailureKind.NOT_AUTHENTICATED,
            who,
            "closed the connection while authenticating: check the SASL credentials, and that the listener wants"
            f" {security_protocol.value}{'' if security_protocol.uses_tls else ', without TLS'}",
        )
    if "disconnected" in text or not text:
        return _failure(
            FailureKind.UNREACHABLE,
            who,
            f"closed the connection without an answer: it may want {_PERHAPS_WANTED[security_protocol]}"
            f" (security.protocol is {security_protocol.value})",
        )
    named = _ERRNO.search(text)
    return _failure(FailureKind.UNREACHABLE, who, f"cannot be reached ({named[2] if named else text})")


def _hung_up(text: str) -> bool:
    return not text or "disconnected" in text or "EOF" in text or "Connection reset" in text


def _closes_unasked(address: tuple[str, int]) -> bool:
    """A broker waits for the first request, whatever its listener wants. A gateway without its broker does not."""
    try:
        with socket.create_connection(address, _UNASKED_SECONDS) as connection:
            return not connection.recv(1)
    except ConnectionResetError:
        return True
    except OSError:
        return False


def _tls_words(text: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in text:
        why = text.split("certificate verify failed:")[-1].split("(_ssl")[0].strip()
        return f"shows a certificate that is not trusted ({why}): check ssl.truststore.*"
    if "EOF" in text or "WRONG_VERSION_NUMBER" in text or "Connection reset" in text or "RECORD_LAYER" in text:
        return "does not speak TLS there: check security.protocol and the port"
    if "ALERT" in text.upper():
        return f"ended the TLS handshake ({text.split(']')[0].split('[')[-1]}): does it want a client certificate?"
    return f"failed the TLS handshake ({text})"


def _failure(kind: FailureKind, who: str, what: str) -> Failure:
    return Failure(kind=kind, message=f"{who} {what}")


def _text(error: BaseException) -> str:
    """The error's own words, without the numbers and class names that kafka-python puts in front."""
    return _PREFIX.sub("", str(error)).strip()
