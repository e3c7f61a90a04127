"""The image generator of a project, ready to draw."""

from pathlib import Path
from typing import cast

from weakspot.app.config import Settings
from weakspot.app.own_pictures import Purpose, own_pictures
from weakspot.app.preparation import Prepared
from weakspot.app.wiring import build_part, resolved_options
from weakspot.core.errors import ConfigError
from weakspot.core.roles import ComposesPictures, CostsMoney, ImageGenerator

COMPOSE = "compose"


def with_generator(settings: Settings, name: str) -> Settings:
    """Return settings with another generator, if one is named; options stay with the generator they were given for.

    Raises:
        ConfigError: if something is given that is no name.
    """
    chosen = settings.generator
    if not name or name == chosen.name:
        return settings
    return settings.model_copy(update={"generator": chosen.model_copy(update={"name": name, "options": {}})})


def build_generator(settings: Settings, folder: Path, prepared: Prepared | None = None, *, purpose: Purpose) -> ImageGenerator:
    """Return the generator that is configured; one that composes gets the project's own pictures.

    Args:
        settings: of the project.
        folder: where relative paths start.
        prepared: the project's samples and models; None where there are none.
        purpose: what the pictures are for, which decides from which samples they are composed.

    Raises:
        ConfigError: if there is no such generator, or one of its options does not exist.
        DataError: if it composes and there is no picture to compose from.
    """
    chosen = settings.generator
    if not chosen.name:
        raise ConfigError(
            "No image generator is configured.", where="[generator] name", fix="Choose compose, diffusers, endpoint or unclip."
        )
    options = resolved_options(chosen.options, folder)
    built = build_part("image_generators", chosen.name, options, where="[generator] options")
    if isinstance(built, ComposesPictures) and prepared is not None and not options.get("pictures"):
        masks_from = _start_of_paths(folder / settings.data.source)
        return built.with_pictures(own_pictures(prepared, purpose, settings, masks_from=masks_from))
    return cast(ImageGenerator, built)


def expected_cost(settings: Settings, folder: Path, n_pictures: int) -> str:
    """Return what pictures cost at most, in a sentence; empty if the generator charges nothing or its price is not known."""
    if settings.generator.name == COMPOSE:
        return ""
    generator = build_generator(settings, folder, purpose="measure")
    cost = generator.cost_of(n_pictures) if isinstance(generator, CostsMoney) else None
    return "" if cost is None else f"Up to {n_pictures} pictures cost up to {cost.amount:.2f} {cost.currency} ({cost.basis})."


def _start_of_paths(source: Path) -> Path:
    """Return where relative paths in a data source start: the folder itself, or the one that its table is in."""
    return source if source.is_dir() else source.parent
