import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot.project.project import Project
from weakspot.run.settings import (
    EmbedderSettings,
    GeneratorSettings,
    PartSettings,
    SearchSettings,
    Settings,
)
from weakspot_lab.reproduce.given_models import given_generator, model_projects
from weakspot_lab.reproduce.labelled_files import IMAGENET
from weakspot_lab.reproduce.refine import protocol as refine
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.reproduce.running import run_protocol
from weakspot_lab.reproduce.search import protocol as search


@pytest.fixture(scope="module")
def projects(tmp_path_factory, world):
    """Two projects with a classifier that fails on green discs, by settings alone."""
    folder = tmp_path_factory.mktemp("given")
    manifest = world.write_images(folder / "images", rows=np.arange(420), side=32).manifest
    made = []
    for name, number in (("first", 3), ("second", 4)):
        settings = Settings(
            classifier=PartSettings(name="planted", options={"seed": number}),
            embedder=EmbedderSettings(name="planted"),
            language=PartSettings(name="planted"),
            captioner=PartSettings(name="planted"),
            generator=GeneratorSettings(name="planted"),
            search=SearchSettings(budget=120, most_captions=2, most_baseline=60),
        )
        project = Project.create(folder / name, data=str(manifest), settings=settings)
        project.ingest()
        made.append(str(project.folder))
    return tuple(made)


@pytest.fixture
def imagenet(tmp_path):
    for name in ("train/n01", "val/n01"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "LOC_synset_mapping.txt").write_text("n01 disc\n")
    return tmp_path


def test_model_projects__none_named(tmp_path):
    request = ReproduceRequest(paper="refine", out=tmp_path)
    with pytest.raises(ConfigError, match="needs models"):
        model_projects(request, IMAGENET)
    assert given_generator(request) is None


def test_refine_protocol__the_user_s_own_models(projects, imagenet, tmp_path, monkeypatch):
    for name, value in (("KINDS", ("colour",)), ("MAX_IMAGES", 4), ("IMAGES_PER_FAILURE", 1)):
        monkeypatch.setattr(refine, name, value)
    request = ReproduceRequest(
        paper="refine", out=tmp_path / "out", data=imagenet, models=projects, generator="planted"
    )
    found = run_protocol(refine.PROTOCOL.open(request), request)
    measured = {one.figure.key for one in found.figures if one.measured.value is not None}
    assert {"held_out", "seed", "clean", "collective_1", "relative", "iou_family"} <= measured
    assert {"lambda", "colour_held_out"}.isdisjoint(measured)


def test_search_protocol__the_user_s_own_model(projects, imagenet, tmp_path, monkeypatch):
    request = ReproduceRequest(
        paper="search",
        out=tmp_path / "out",
        data=imagenet,
        models=projects[:1],
        generator="planted",
    )
    with pytest.raises(ConfigError, match="none of the pairs"):
        run_protocol(search.PROTOCOL.open(request), request)
    monkeypatch.setattr(search, "PAIRS", (("disc", "star"),))
    found = run_protocol(search.PROTOCOL.open(request), request)
    assert found.steps["pairs"]["rows"][0]["class"] == "disc"
    assert any(
        one.figure.key == "pairs_found" and one.measured.value is not None for one in found.figures
    )
