"""An adversarial set for a project folder."""

from collections.abc import Sequence
from pathlib import Path

from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.generation.service.generator_choice import with_generator
from weakspot.lab.adversarial.making import AdversarialStage, MadeSet
from weakspot.lab.adversarial.measuring import model_of
from weakspot.lab.adversarial.records import AdversarialRequest
from weakspot.pipeline.changed_settings import with_engine
from weakspot.pipeline.settings_file import load_settings
from weakspot.project.project import Project


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
