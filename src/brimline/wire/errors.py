"""What can be wrong with bytes.

::

    BrimlineError
    └── WireError             bytes that cannot be what they claim to be
        ├── Truncated         they end before the message does
        └── Malformed         a length, count or marker that no valid message has

Whose fault it is follows from where the bytes came from; the caller knows and says so.
"""

from brimline.model import BrimlineError


class WireError(BrimlineError):
    """Bytes that cannot be what they claim to be."""


class Truncated(WireError):
    def __init__(self, wanted: int, available: int) -> None:
        super().__init__(f"the message ends too early: {wanted} more bytes were announced, {available} are there")


class Malformed(WireError):
    pass
