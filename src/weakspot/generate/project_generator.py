"""The image generator of a project, ready to generate, with what every command that uses it needs."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from weakspot.core.errors import ConfigError
from weakspot.core.failures import FailureCriterion
from weakspot.core.registry import part_class
from weakspot.core.roles import ComposesImages, CostsMoney, ImageGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.generate.own_images import Purpose, own_images
from weakspot.generate.predictions import GeneratedPredictions
from weakspot.generate.service import confirm_cost
from weakspot.run.model_map import ImageBench
from weakspot.run.object_masks import ObjectMasks, build_segmenter
from weakspot.run.preparation import Prepared
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_engine, build_part, resolved_options
from weakspot.store.project import ProjectStore

COMPOSE = "compose"


def with_generator(settings: Settings, name: str) -> Settings:
    """Return settings with another generator, if one is named: `NAME`, or `NAME:MODEL`.

    Options stay with the generator they were given for.

    Raises:
        ConfigError: if there is no such generator.
    """
    chosen = settings.generator
    name, _, model = name.partition(":")
    if not name:
        return settings
    part_class("image_generators", name)
    options = chosen.options if name == chosen.name else {}
    options = {**options, "model": model} if model else options
    return settings.model_copy(
        update={"generator": chosen.model_copy(update={"name": name, "options": options})}
    )


def build_generator(
    settings: Settings,
    folder: Path,
    prepared: Prepared | None = None,
    *,
    purpose: Purpose,
    store: ProjectStore | None = None,
) -> ImageGenerator:
    """Return the generator that is configured; one that composes gets the project's own images.

    Args:
        settings: of the project.
        folder: where relative paths start.
        prepared: the project's samples and models; None where there are none.
        purpose: what the images are for, which decides from which samples they are composed.
        store: keeps the masks of objects; None: the project in the folder.

    Raises:
        ConfigError: if there is no such generator, or one of its options does not exist.
        DataError: if it composes and there is no image to compose from.
    """
    chosen = settings.generator
    if not chosen.name:
        raise ConfigError(
            "No image generator is configured.",
            where="[generator] name",
            fix="Choose compose, diffusers, edit, edit-endpoint, endpoint or unclip.",
        )
    options = resolved_options(chosen.options, folder)
    built = build_part("image_generators", chosen.name, options, where="[generator] options")
    if isinstance(built, ComposesImages) and prepared is not None and not options.get("images"):
        masks = None
        segmenter = build_segmenter(settings, folder)
        if segmenter is not None:
            masks = ObjectMasks(
                segmenter=segmenter,
                bench=ImageBench(
                    dataset=prepared.samples.dataset,
                    store=store or ProjectStore(folder),
                    engine=build_engine(settings),
                ),
            )
        source = folder / settings.data.source
        masks_from = source if source.is_dir() else source.parent
        return built.with_images(
            own_images(prepared, purpose, settings, masks_from=masks_from, masks=masks)
        )
    return cast(ImageGenerator, built)


def expected_cost(settings: Settings, folder: Path, n_images: int) -> str:
    """Return what images cost at most, in a sentence; empty if the generator charges nothing or its price is not known."""
    if settings.generator.name == COMPOSE:
        return ""
    generator = build_generator(settings, folder, purpose="measure")
    cost = generator.cost_of(n_images) if isinstance(generator, CostsMoney) else None
    return (
        ""
        if cost is None
        else f"Up to {n_images} images cost up to {cost.amount:.2f} {cost.currency} ({cost.basis})."
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class GenerationTools:
    """A project that images are generated for.

    Args:
        prepared: its samples and models.
        settings: its settings.
        criterion: what counts as a failure.
        store: its folder.
        generator: a ready generator, instead of the configured one.
        progress: told how far it is.
    """

    prepared: Prepared
    settings: Settings
    criterion: FailureCriterion
    store: ProjectStore
    generator: ImageGenerator | None = None
    progress: Progress = no_progress

    def image_generator(self, *, purpose: Purpose = "measure") -> ImageGenerator:
        return self.generator or build_generator(
            self.settings, self.store.root, self.prepared, purpose=purpose, store=self.store
        )

    def confirm_cost(self, image_generator: ImageGenerator, n_images: int) -> None:
        """Do nothing if so many images cost no more than was agreed to.

        Raises:
            ConfigError: with the cost, if they do.
        """
        confirm_cost(image_generator, n_images, self.settings.generator)

    def predictions(
        self, image_generator: ImageGenerator, *, progress: Progress = no_progress
    ) -> GeneratedPredictions:
        """Return what generates in the project's folder and asks its classifier."""
        return GeneratedPredictions.of(
            image_generator,
            self.prepared,
            self.store.generated,
            settings=self.settings,
            progress=progress,
        )
