"""Where this user's caches are."""

import os
import sys
from pathlib import Path

CACHE_VARIABLE = "WEAKSPOT_CACHE"


def user_cache_folder() -> Path:
    """Return the folder for what can be fetched or computed again: $WEAKSPOT_CACHE, else the platform's user cache."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE]).expanduser()
    if sys.platform == "win32":
        return (
            Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
            / "weakspot"
            / "Cache"
        )
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "weakspot"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weakspot"
