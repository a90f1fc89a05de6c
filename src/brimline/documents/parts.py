"""What many documents have in common."""

from collections.abc import Mapping

from brimline.model import Failure

Json = Mapping[str, object]


def failure_document(failure: Failure | None) -> Json | None:
    return None if failure is None else {"kind": failure.kind.value, "message": failure.message}
