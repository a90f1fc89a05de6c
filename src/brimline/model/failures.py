"""Failure as a value: what went wrong, with what, and what to do about it.

``Failure`` is the value that stands in an observation instead of an answer; ``ObservationFailed`` is the same
thing raised, where a caller asked for the answer or nothing.

::

    BrimlineError
    ├── BadInput              what the caller gave cannot be used (property, option, file)
    └── ObservationFailed     the cluster, or one broker of it, gave no answer; carries the Failure
"""

from dataclasses import dataclass
from enum import Enum

from brimline.model.secrets import without_login


class FailureKind(Enum):
    """Why there is no answer. The value is the stable name in JSON and CSV."""

    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed-out"
    TLS_FAILED = "tls-failed"
    NOT_AUTHENTICATED = "not-authenticated"
    NOT_AUTHORIZED = "not-authorized"
    UNSUPPORTED = "unsupported"
    NOT_KAFKA = "not-kafka"
    KAFKA_ERROR = "kafka-error"
    STALLED = "stalled"
    UNREADABLE = "unreadable"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    kind: FailureKind
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", without_login(self.message))

    def __str__(self) -> str:
        return self.message


class BrimlineError(Exception):
    """Everything Brimline raises on purpose. Its text is one sentence for the person who reads it, without logins."""

    def __init__(self, *words: object) -> None:
        super().__init__(*(without_login(word) if isinstance(word, str) else word for word in words))


class BadInput(BrimlineError):
    """A property, option or file that cannot be used as given."""


class ObservationFailed(BrimlineError):
    """No answer where one was required."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure
