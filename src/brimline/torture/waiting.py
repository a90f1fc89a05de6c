"""Waiting for the world, with an end."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 180.0
"""Far longer than anything here takes on a busy machine."""
_POLL = 0.1


def came_true(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> bool:
    """Whether ``condition`` returned something true before the time was over."""
    give_up_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(_POLL)
    return True
