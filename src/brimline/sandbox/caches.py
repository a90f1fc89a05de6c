"""Where Brimline keeps what it can fetch again: one directory per user."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """``$XDG_CACHE_HOME/brimline``, by the XDG base directory rules: a relative value counts as unset."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (configured if configured.is_absolute() else Path.home() / ".cache") / "brimline"
