"""The user's own models on a paper's own data: each a project, set up by hand before or made here by its name."""

import re
from pathlib import Path

from weakspot.core.errors import ConfigError
from weakspot.core.roles import ImageGenerator
from weakspot.data.settings import DataSettings
from weakspot.project.new_settings import recommended_settings
from weakspot.project.project import Project
from weakspot.run.settings import SETTINGS_FILE
from weakspot.run.wiring import build_part
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.labelled_files import read_files
from weakspot_lab.reproduce.request import ReproduceRequest

PROJECTS, IMAGES, MANIFEST = "projects", "images", "manifest.csv"


def model_projects(request: ReproduceRequest, found: DataSet) -> tuple[Project, ...]:
    """Return one project a model: a folder that holds one is opened; of any other name one is made on the data.

    Raises:
        ConfigError: if no model is named, or one cannot be had.
    """
    if not request.models:
        raise ConfigError(
            "The protocol needs models on your own data.",
            where="--models",
            fix="Name a model of timm or transformers, a file, or the folder of a project that holds one.",
        )
    return tuple(_project(name, request, found) for name in request.models)


def _project(name: str, request: ReproduceRequest, found: DataSet) -> Project:
    given = Path(name)
    if (given / SETTINGS_FILE).is_file():
        return Project.open(given)
    folder = request.out / PROJECTS / re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    if (folder / SETTINGS_FILE).is_file():
        return Project.open(folder)
    assert request.data is not None
    files = read_files(found, request.data, request.out / IMAGES)
    folder.mkdir(parents=True, exist_ok=True)
    files.write_manifest(folder / MANIFEST)
    settings = recommended_settings().model_copy(
        update={"data": DataSettings(source=MANIFEST, class_names=files.class_names)}
    )
    project = Project.create(folder, classifier=name, settings=settings)
    project.ingest()
    return project


def given_generator(request: ReproduceRequest) -> ImageGenerator | None:
    """Return the generator that is named; None for the one of the project."""
    if not request.generator:
        return None
    part: ImageGenerator = build_part(
        "image_generators", request.generator, {}, where="--generator"
    )
    return part
