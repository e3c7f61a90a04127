"""What the machine knows of a model hub, without loading any model."""

import importlib.util
import os
from pathlib import Path

OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
TIMEOUT_SECONDS = 3.0
_WEIGHTS = ("*.safetensors", "*.bin")
_FOUND_BELOW = 500


def hub_is_off() -> str | None:
    """Return the variable that forbids asking the hub, or None."""
    for name in OFFLINE_VARIABLES:
        if os.environ.get(name, "").strip().lower() in {"1", "true", "yes", "on"}:
            return name
    return None


def hub_cache_folder() -> Path:
    if os.environ.get("HF_HUB_CACHE"):
        return Path(os.environ["HF_HUB_CACHE"]).expanduser()
    if os.environ.get("HF_HOME"):
        return Path(os.environ["HF_HOME"]).expanduser() / "hub"
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root).expanduser() / "huggingface" / "hub"


def is_in_hub_cache(name: str) -> bool:
    """Return whether a model's configuration and weights are in the hub's cache.

    Args:
        name: `organisation/model`.
    """
    snapshots = hub_cache_folder() / f"models--{name.replace('/', '--')}" / "snapshots"
    if not snapshots.is_dir():
        return False
    return any(
        (folder / "config.json").is_file()
        and any(path.is_file() for pattern in _WEIGHTS for path in folder.glob(pattern))
        for folder in snapshots.iterdir()
    )


def can_load_hub_models() -> bool:
    return all(
        importlib.util.find_spec(library) is not None for library in ("torch", "transformers")
    )


def hub_answers(*, timeout_seconds: float = TIMEOUT_SECONDS, address: str | None = None) -> bool:
    """Return whether the hub answers in time; it is not asked when that is forbidden.

    Args:
        timeout_seconds: how long to wait.
        address: by default the one that huggingface_hub uses.
    """
    if hub_is_off() is not None:
        return False
    asked = address if address is not None else _hub_address()
    if asked is None:
        return False
    import httpx

    try:
        return (
            httpx.head(asked, timeout=timeout_seconds, follow_redirects=True).status_code
            < _FOUND_BELOW
        )
    except (httpx.HTTPError, httpx.InvalidURL, OSError):
        return False


def _hub_address() -> str | None:
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import constants

    return str(constants.ENDPOINT)
