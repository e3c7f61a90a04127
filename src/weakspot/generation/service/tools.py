"""What every command that generates images for a project needs."""

from dataclasses import dataclass

from weakspot.core.failures import FailureCriterion
from weakspot.core.roles import ImageGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.generation.service.generator_choice import build_generator
from weakspot.generation.service.own_images import Purpose
from weakspot.generation.service.predictions import GeneratedPredictions
from weakspot.generation.service.service import confirm_cost
from weakspot.pipeline.preparation import Prepared
from weakspot.pipeline.settings import Settings
from weakspot.store.project import ProjectStore


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
