"""A planted project whose classifier fails on green discs, and a stage on it."""

import shutil

import pytest

from weakspot.core.run import no_progress, no_stage_progress
from weakspot.data.settings import DataSettings
from weakspot.project.adversarial import AdversarialStage
from weakspot.project.project import Project
from weakspot.run import loop
from weakspot.run.models import RunModels
from weakspot.run.preparation import Preparation
from weakspot.run.settings import (
    GeneratorSettings,
    PartSettings,
    Settings,
)
from weakspot.run.stage_clock import StageClock
from weakspot.store.project import ProjectStore
from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
from weakspot.testing.planted import plant, rare


@pytest.fixture(scope="session")
def hard_world():
    return plant(rare(0.01), 240, seed=3)


@pytest.fixture(scope="session")
def hard_files(hard_world, tmp_path_factory):
    return hard_world.write_images(tmp_path_factory.mktemp("hard"))


@pytest.fixture(scope="session")
def hard_settings(hard_files):
    return Settings(
        data=DataSettings(source=str(hard_files.manifest)),
        captioner=PartSettings(name="planted"),
        generator=GeneratorSettings(name="planted"),
    )


@pytest.fixture(scope="session")
def read_project(tmp_path_factory, hard_settings, hard_world):
    """A project whose samples were read, embedded and classified, to be copied."""
    store = ProjectStore.create(tmp_path_factory.mktemp("template") / "project")
    loop.ingest_samples(
        store, loop.open_data(hard_settings.data, store.root), hard_settings, no_progress
    )
    _prepared(store, hard_settings, hard_world)
    return store.root


def _prepared(store, settings, world):
    return Preparation(
        store=store,
        models=RunModels(
            settings=settings,
            folder=store.root,
            ready_classifier=planted_classifier(world),
            ready_embedder=PlantedEmbedder(),
        ),
        clock=StageClock(),
    ).run()


@pytest.fixture(scope="session")
def stage_in(hard_world, hard_settings, read_project):
    """Return a stage on a project in a new folder: `stage_in(folder, settings=..., captioner=...)`."""

    def make(folder, *, settings=hard_settings, progress=no_stage_progress, **parts):
        if not folder.exists():
            shutil.copytree(read_project, folder)
        project = Project(
            folder,
            settings,
            classifier=planted_classifier(hard_world),
            embedder=PlantedEmbedder(),
            progress=progress,
        )
        return AdversarialStage(project=project, **parts)

    return make


@pytest.fixture
def captions(tmp_path):
    """Two captions that a person wrote: one of the planted failure, one of something easy."""
    path = tmp_path / "captions.csv"
    path.write_text("label,caption\ndisc,It is green.\nsquare,It is red and large.\n")
    return path
