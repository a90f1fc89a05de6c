"""A guard's ``/v1/state``, fetched and read."""

import urllib.error
import urllib.request

from brimline.documents.codec import from_json, read_json
from brimline.documents.guard_state import FORMAT, VERSION, GuardState
from brimline.model.failures import BrimlineError


def fetch_state(url: str, timeout: float) -> tuple[GuardState, str]:
    """The state, and the document it was read from."""
    address = url.rstrip("/") + "/v1/state"
    if not address.startswith(("http://", "https://")):
        raise BrimlineError(f"{url!r} is not the address of a guard: write http://host:port")
    try:
        with urllib.request.urlopen(address, timeout=timeout) as answer:
            text: str = answer.read().decode("utf-8")
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "reason", failure)
        raise BrimlineError(f"no guard answers at {address}: {reason}") from failure
    return read_state(text, address), text


def read_state(text: str, address: str) -> GuardState:
    try:
        document = read_json(object, text)
        if not isinstance(document, dict) or document.get("format") != FORMAT or "version" not in document:
            raise ValueError("it is another document")
        if document["version"] != VERSION:
            raise BrimlineError(
                f"{address} answers in version {document['version']}, and this brimline reads version {VERSION}: use "
                "the guard's own"
            )
        return from_json(GuardState, document)
    except ValueError as failure:
        raise BrimlineError(f"{address} answers, but not as a guard of this version does") from failure
