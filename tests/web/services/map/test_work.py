"""The UMAP layout as work."""

import base64
import warnings

import numpy as np
import pytest
from tests.build import planted_project

from weakspot.core.arrays import unit_rows
from weakspot.core.errors import ConfigError, MissingExtraError
from weakspot.project.project import Project
from weakspot.web.services import sample_map as map_work
from weakspot.web.services.sample_map import lay_out, map_view, umap_places
from weakspot.web.services.work import do_work
from weakspot.web.services.workspace import Workspace


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project of 240 planted images without a run."""
    return planted_project(tmp_path_factory.mktemp("map-work"), 240).folder


def test_lay_out__asked_twice__made_once_and_shown_by_an_open_workspace(folder):
    watching = Workspace(Project.open(folder))
    before = map_view(watching, "umap")
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = do_work("map", Project.open(folder), {}, lambda *step: told.append(step))
    after = map_view(watching, "umap")
    again = lay_out(Project.open(folder), lambda *_: None)
    assert not before.is_ready
    assert after.is_ready
    assert after.is_umap_ready
    assert map_view(watching, "pca").is_umap_ready
    assert (after.rows, after.parts) == (map_view(watching).rows, map_view(watching).parts)
    places = np.frombuffer(base64.b64decode(after.positions), dtype="<f4")
    assert np.isfinite(places).all()
    assert np.abs(places).max() <= 1.0
    assert result == {"layout": "umap", "n_points": after.n_points, "was_there": False}
    assert again["was_there"]
    assert told[0] == ("lay out samples", 0, after.n_points)
    assert told[-1] == ("lay out samples", after.n_points, after.n_points)


def test_umap_places__more_than_are_fitted__the_rest_stands_with_its_own_kind_the_same_every_time(
    monkeypatch,
):
    monkeypatch.setattr(map_work, "MAX_UMAP_SAMPLES", 90)
    draws = np.random.default_rng(0)
    kinds = np.repeat(np.arange(3), 50)
    embeddings = unit_rows(np.eye(3, 8)[kinds] + draws.normal(scale=0.1, size=(150, 8)))
    start = embeddings[:, :2]
    told = []
    places, again = (umap_places(embeddings, start, seed=1, report=told.append) for _ in range(2))
    middles = np.stack([places[kinds == kind].mean(axis=0) for kind in range(3)])
    nearest = np.argmin(np.linalg.norm(places[:, None] - middles[None], axis=2), axis=1)
    assert (nearest == kinds).mean() > 0.95
    assert np.array_equal(places, again)
    assert told == [90, 150, 90, 150]


def test_umap_places__too_few_samples__left_where_they_are():
    start = np.array([[0.0, 0.0], [1.0, 1.0]], dtype=np.float32)
    assert umap_places(np.eye(2, dtype=np.float32), start, seed=0, report=lambda _: None) is start


def test_lay_out__another_layout__refused(folder):
    with pytest.raises(ConfigError):
        do_work("map", Project.open(folder), {"layout": "spiral"}, lambda *_: None)


def test_lay_out__library_missing__says_how_to_install_it(folder, monkeypatch):
    def missing(_name, *, extra, purpose):
        raise MissingExtraError("umap", extra=extra, purpose=purpose)

    monkeypatch.setattr(map_work, "require_library", missing)
    monkeypatch.setattr(map_work.LayoutFiles, "load", lambda *_: None)
    with pytest.raises(MissingExtraError, match=r"weakspot\[web\]"):
        lay_out(Project.open(folder), lambda *_: None)
