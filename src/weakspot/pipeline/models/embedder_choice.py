"""Which embedder to use, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from weakspot.backends import hub
from weakspot.core.errors import ConfigError
from weakspot.core.roles import Embedder
from weakspot.core.run import Progress
from weakspot.pipeline.settings import EmbedderSettings
from weakspot.pipeline.wiring import build_part, resolved_options, with_provider

AUTO = "auto"
HUB_MODELS = (
    "openai/clip-vit-base-patch16",
    "openai/clip-vit-large-patch14",
    "openai/clip-vit-base-patch32",
    "google/siglip2-base-patch16-224",
    "google/siglip-base-patch16-224",
)
EMBEDDED = "embedded"
EMBEDDED_NAME = "the embedded default (CLIP ViT-B/16 image tower with weakspot's own text side)"


@dataclass(frozen=True, kw_only=True)
class EmbedderChoice:
    """An embedder and one sentence on why it was chosen."""

    embedder: Embedder
    reason: str


def choose_embedder(
    settings: EmbedderSettings,
    *,
    folder: Path | None = None,
    ask_hub: bool = True,
    provider: str = AUTO,
    progress: Progress | None = None,
) -> EmbedderChoice:
    """Return the configured embedder; for `auto` a hub model that is cached or reachable, else the embedded default.

    Args:
        settings: section `embedder` of weakspot.toml.
        folder: the project's folder, which relative paths in options start from.
        ask_hub: whether the network may be tried.
        provider: the project's execution provider.
        progress: told the bytes of the embedded default's first download.

    Raises:
        ConfigError: if the embedder or one of its options does not exist.
    """
    if settings.name != AUTO:
        embedder = build_embedder(
            settings.name, settings.options, folder=folder, provider=provider, progress=progress
        )
        return EmbedderChoice(
            embedder=embedder, reason=f"Using the embedder {settings.name!r}, as configured."
        )
    if settings.options:
        raise ConfigError(
            "Options need a named embedder, since `auto` may choose any.",
            where="embedder.options",
            given=dict(settings.options),
            fix='Set embedder.name, for example to "embedded" or "transformers", or remove the options.',
        )
    name, options, reason = _automatic(ask_hub=ask_hub)
    embedder = build_embedder(name, options, provider=provider, progress=progress)
    return EmbedderChoice(embedder=embedder, reason=reason)


def build_embedder(
    name: str,
    options: Mapping[str, JsonValue],
    *,
    folder: Path | None = None,
    provider: str = AUTO,
    progress: Progress | None = None,
) -> Embedder:
    """Return a registered embedder; options that name an existing file or folder are taken relative to `folder`."""
    resolved = with_provider("embedders", name, resolved_options(options, folder), provider)
    if name == EMBEDDED:
        resolved.setdefault("progress", progress)
    embedder: Embedder = build_part("embedders", name, resolved, where="[embedder] options")
    return embedder


def _automatic(*, ask_hub: bool) -> tuple[str, dict[str, Any], str]:
    if not hub.can_load_hub_models():
        return (
            EMBEDDED,
            {},
            f"Using {EMBEDDED_NAME}, because torch and transformers are not installed.",
        )
    for model in HUB_MODELS:
        if hub.is_in_hub_cache(model):
            return (
                "transformers",
                {"model": model},
                f"Using {model} from the hub's cache on this machine.",
            )
    switched_off = hub.hub_is_off()
    if switched_off is not None:
        return (
            EMBEDDED,
            {},
            f"Using {EMBEDDED_NAME}, because no known model is cached and {switched_off} forbids asking the hub.",
        )
    if ask_hub and hub.hub_answers():
        return (
            "transformers",
            {"model": HUB_MODELS[0]},
            f"Using {HUB_MODELS[0]}, because the hub can be reached.",
        )
    why = "the hub does not answer" if ask_hub else "the hub is not to be asked"
    return EMBEDDED, {}, f"Using {EMBEDDED_NAME}, because no known model is cached and {why}."
