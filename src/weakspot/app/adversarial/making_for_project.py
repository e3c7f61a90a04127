"""An adversarial set for a project folder."""

from collections.abc import Sequence
from pathlib import Path

from weakspot.app.adversarial.making import AdversarialStage, MadeSet
from weakspot.app.adversarial.measuring import model_of
from weakspot.app.adversarial.records import AdversarialRequest
from weakspot.app.config import load_settings, with_engine
from weakspot.app.generator_choice import with_generator
from weakspot.app.project import Project
from weakspot.core.run import StageProgress, no_stage_progress


def make_for_project(
    folder: Path,
    request: AdversarialRequest,
    *,
    models: Sequence[Path] = (),
    generator: str = "",
    engine: str = "",
    progress: StageProgress = no_stage_progress,
) -> MadeSet:
    """Make a set for the classifier of a project.

    Args:
        folder: of the project; its samples must have been ingested.
        request: what is asked.
        models: folders of further projects whose classifiers the set is put to.
        generator: name of another generator than the configured one.
        engine: name of another engine than the configured one.
        progress: told how far every step is.
    """
    settings = with_engine(with_generator(load_settings(folder), generator), engine)
    project = Project(folder, settings, progress=progress)
    further = tuple(model_of(one) for one in models)
    stage = AdversarialStage(
        prepared=project.prepared(),
        settings=project.settings,
        criterion=project.settings.failure.criterion(),
        store=project.store,
        progress=progress,
        models=further,
    )
    return stage.run(request)
