"""A planted project with attributes that were assigned from words."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.build import planted_project

from weakspot.core.assistants import Assistants
from weakspot.core.run import no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.project.project import Project
from weakspot.run.preparation import EmbedResult, Prepared
from weakspot.run.settings import Settings
from weakspot.store.project import ProjectStore
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import plant, rare
from weakspot.web.services import attributes as attribute_columns
from weakspot.web.services.workspace import Workspace

ATTRIBUTE_SETTINGS = """\
[attributes]
use_properties = false
[verify]
splits = ["validation", "test"]
"""


@pytest.fixture(scope="session")
def unassigned_folder(tmp_path_factory):
    """480 planted images (green discs are rare), embedded; no attribute is assigned."""
    project = planted_project(tmp_path_factory.mktemp("attributes"), 480, more=ATTRIBUTE_SETTINGS)
    project.embed()
    return project.folder


@pytest.fixture(scope="session")
def assigned_folder(unassigned_folder, tmp_path_factory):
    """The same with attributes."""
    folder = copied(unassigned_folder, tmp_path_factory.mktemp("assigned"))
    attribute_columns.assign(Project.open(folder), no_stage_progress)
    return folder


@pytest.fixture
def attributed(assigned_folder, tmp_path):
    """A workspace on a copy of the project with attributes, that a test may change."""
    return Workspace(Project.open(copied(assigned_folder, tmp_path)))


def copied(folder: Path, to: Path) -> Path:
    """Copy a project; its images are linked, because nobody writes them."""
    target = to / folder.name
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("*.png"))
    for image in folder.glob("*/*.png"):
        (target / image.relative_to(folder)).symlink_to(image)
    return target


class ProjectInMemory(Project):
    """A project whose samples and embeddings are in memory; runs and looks are on disk.

    Args:
        folder: where runs and looks are kept.
        samples: all samples.
        assistants: whom to ask.
        scheme: how halves are used.
    """

    def __init__(
        self, folder: Path, samples: SampleSet, assistants: Assistants, *, scheme: str = "halves"
    ) -> None:
        super().__init__(
            folder, Settings(verify={"splits": ("validation", "test"), "scheme": scheme})
        )
        ProjectStore.create(folder)
        self._ready = Prepared(
            samples=samples,
            assistants=assistants,
            embedder=None,
            classifier=None,
            summary=EmbedResult(),
            inputs={},
        )

    def prepared(self, record=None) -> Prepared:
        del record
        return self._ready


@pytest.fixture(scope="session")
def green_world():
    """2,400 planted samples without images; green discs are rare in training, so the classifier fails on them."""
    return plant(rare(0.01), 2400, seed=3)


@pytest.fixture
def open_world(green_world, tmp_path):
    """Return a function that opens the planted samples as a workspace, with an empty project folder."""

    def opened(**changes) -> Workspace:
        assistants = changes.pop(
            "assistants", Assistants(embed_texts=PlantedEmbedder().embed_texts)
        )
        samples = changes.pop("samples", None) or SampleSet(
            dataset=green_world.dataset,
            rows=np.arange(len(green_world)),
            spaces=green_world.spaces(),
            name="all samples",
        )
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        return Workspace(ProjectInMemory(folder, samples, assistants, **changes))

    return opened


@pytest.fixture
def world_workspace(open_world):
    return open_world()
