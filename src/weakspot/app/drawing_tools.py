"""What every command that draws pictures for a project needs."""

from dataclasses import dataclass

from weakspot.app.config import Settings
from weakspot.app.drawn_outcomes import DrawnOutcomes
from weakspot.app.generator_choice import build_generator
from weakspot.app.own_pictures import Purpose
from weakspot.app.preparation import Prepared
from weakspot.app.studio import confirm_cost
from weakspot.core.failures import FailureCriterion
from weakspot.core.roles import ImageGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.store.project import ProjectStore


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawingTools:
    """A project that pictures are drawn for.

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

    def drawer(self, *, purpose: Purpose = "measure") -> ImageGenerator:
        """Return the generator that draws."""
        return self.generator or build_generator(self.settings, self.store.root, self.prepared, purpose=purpose)

    def confirm_cost(self, drawer: ImageGenerator, n_pictures: int) -> None:
        """Do nothing if so many pictures cost no more than was agreed to.

        Raises:
            ConfigError: with the cost, if they do.
        """
        confirm_cost(drawer, n_pictures, self.settings.generator)

    def outcomes(self, drawer: ImageGenerator, *, progress: Progress = no_progress) -> DrawnOutcomes:
        """Return what draws in the project's folder and asks its classifier."""
        return DrawnOutcomes.of(drawer, self.prepared, self.store.drawn, settings=self.settings, progress=progress)
