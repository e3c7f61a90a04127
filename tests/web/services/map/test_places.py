"""The map: who is on it, where, in which colours, and what a selection says."""

import base64
import json

import numpy as np
import pytest
from tests.build import planted_project

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import DataError, ModelError
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.project.project import Project
from weakspot.web.services import sample_map
from weakspot.web.services.map_colours import colourings, colours, selection
from weakspot.web.services.sample_map import (
    PARTS,
    Layout,
    LayoutFiles,
    frame,
    map_layout,
    map_parts,
    map_plan,
    map_rows,
    map_sample,
    map_view,
    principal_layout,
)
from weakspot.web.services.workspace import Workspace


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """480 planted images (green discs are rare), with one run."""
    project = planted_project(tmp_path_factory.mktemp("map"), 480)
    project.discover()
    return project.folder


@pytest.fixture(scope="module")
def workspace(folder):
    return Workspace(Project.open(folder))


def numbers(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def values_of(workspace, column):
    return np.array(workspace.samples.dataset.metadata(column).to_pylist(), dtype=object)


def test_rows__planted_project__discovery_half_training_and_pool_only(workspace):
    rows, dataset = map_rows(workspace), workspace.samples.dataset
    assert not np.isin(workspace.confirmation.rows, rows).any()
    assert not np.isin(dataset.rows_of(Split.TEST), rows).any()
    assert np.isin(workspace.discovery.rows, rows).all()
    parts = map_parts(workspace)
    assert rows[parts == 0].tolist() == workspace.discovery.rows.tolist()
    assert rows[parts == 1].tolist() == dataset.rows_of(Split.TRAIN).tolist()
    assert rows[parts == 2].tolist() == dataset.rows_of(Split.POOL).tolist()


def test_rows__evaluated_on_training_samples__confirmation_half_stays_away(folder):
    project = Project.open(folder)
    verify = project.settings.verify.model_copy(update={"splits": ("train",)})
    other = Workspace(Project(folder, project.settings.model_copy(update={"verify": verify})))
    assert not np.isin(other.confirmation.rows, map_rows(other)).any()
    assert np.isin(other.discovery.rows, map_rows(other)).all()


def test_rows__more_than_fit__same_sample_every_time_said_in_words(folder, monkeypatch):
    monkeypatch.setattr(sample_map, "MAX_POINTS", 100)
    plans = [map_plan(Workspace(Project.open(folder))) for _ in range(2)]
    assert len(plans[0].rows) <= 100
    assert plans[0].rows.tolist() == plans[1].rows.tolist()
    assert plans[0].key == plans[1].key
    assert set(plans[0].parts.tolist()) == {0, 1, 2}
    assert "at most 100" in map_view(Workspace(Project.open(folder))).note


def test_map_view__planted_project__arrays_fit_together(workspace):
    view = map_view(workspace)
    places, rows = numbers(view.positions, "<f4").reshape(-1, 2), numbers(view.rows, "<i4")
    assert len(places) == len(rows) == len(numbers(view.parts, "u1")) == view.n_points
    assert rows.tolist() == map_rows(workspace).tolist()
    assert np.abs(places).max() <= 1.0
    assert np.abs(places).max() > 0.9
    assert [part.name for part in view.part_counts] == list(PARTS)
    assert sum(part.shown for part in view.part_counts) == view.n_points
    assert view.is_ready
    assert view.note == ""


def test_map_view__umap_not_made__says_so_without_points(workspace):
    view = map_view(workspace, "umap")
    assert not view.is_ready
    assert not view.is_umap_ready
    assert view.n_points == 0
    assert view.positions == ""


def test_map_layout__reopened__read_from_disk_not_made_again(folder, monkeypatch):
    first = map_layout(Workspace(Project.open(folder)))
    monkeypatch.setattr(sample_map, "principal_layout", None)
    again = map_layout(Workspace(Project.open(folder)))
    assert again.rows.tolist() == first.rows.tolist()
    assert np.array_equal(again.places, first.places)


def test_map_layout__project_is_being_written__map_all_the_same(folder, monkeypatch):
    monkeypatch.setattr(sample_map, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(sample_map, "MAX_POINTS", 90)
    other = Project.open(folder)
    with other.store.writing():
        layout = map_layout(Workspace(Project.open(folder)))
    assert len(layout.rows) <= 90


def test_layout_files__damaged_or_cut_short__none(tmp_path, folder):
    files = LayoutFiles(Project.open(folder).store)
    layout = Layout(rows=np.arange(3), places=np.zeros((3, 2), dtype=np.float32))
    files.save("probe", "abc", layout)
    assert files.load("probe", "abc").rows.tolist() == [0, 1, 2]
    path = Project.open(folder).store.data / "maps" / "probe-abc.npy"
    path.write_bytes(path.read_bytes()[:-4])
    assert files.load("probe", "abc") is None
    np.save(path, np.zeros(3))
    assert files.load("probe", "abc") is None
    files.save("probe", "def", layout)
    assert not path.exists()


def test_principal_layout__in_pieces_with_gaps__same_as_whole_and_gaps_left_out(monkeypatch):
    widths = [5, 3, 1, 0.5, 0.1, 0.1]
    embeddings = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32) * widths
    embeddings[7] = np.nan
    dataset = dataset_from_columns(class_names=["a"], labels=[0] * 50)
    space = EmbeddingSpace(encoder_id="one", embeddings=embeddings.astype(np.float32))
    samples = SampleSet(dataset=dataset, rows=np.arange(50), spaces={"clip": space})
    whole = principal_layout(samples, "clip", np.arange(50), seed=0)
    monkeypatch.setattr(sample_map, "CHUNK_ROWS", 7)
    pieces = principal_layout(samples, "clip", np.arange(50), seed=0)
    assert 7 not in whole.rows
    assert len(whole.rows) == 49
    np.testing.assert_allclose(pieces.places, whole.places, atol=1e-5)


@pytest.mark.parametrize("places", [np.zeros((0, 2)), np.zeros((1, 2)), np.full((5, 2), 3.0)])
def test_framed__nothing_one_or_all_alike__in_the_middle(places):
    assert np.array_equal(frame(places), np.zeros((len(places), 2)))


def test_map_sample__on_the_map__in_words_and_others_none(workspace):
    found = map_sample(workspace, int(workspace.discovery.rows[0]))
    assert found.label in workspace.samples.dataset.class_names
    assert found.part == "discovery half"
    assert found.is_failure == (found.label != found.answer)
    assert map_sample(workspace, int(workspace.confirmation.rows[0])) is None
    assert map_sample(workspace, 10**9) is None


def test_colourings__planted_project__every_one_can_be_asked_for(workspace):
    listed = colourings(workspace)
    asked = [choice.by for choice in listed.colourings]
    assert {"result", "class", "predicted", "confidence", "split", "column:colour"} <= set(asked)
    assert any(by.startswith("slice:") for by in asked)
    assert listed.has_words
    for by in [*asked, "phrase:green"]:
        view = colours(workspace, by)
        n_points = len(map_rows(workspace))
        if view.codes is not None:
            codes = numbers(view.codes, "<u2")
            assert len(codes) == n_points
            counts = np.bincount(codes, minlength=len(view.legend))
            assert counts.tolist() == [entry.count for entry in view.legend]
        else:
            assert len(numbers(view.values, "<f4")) == n_points
            assert view.low <= view.high
        assert view.map_id == map_view(workspace).map_id
        json.loads(view.model_dump_json())


def test_colours__prediction__as_the_class_problems_say(workspace):
    codes = numbers(colours(workspace, "result").codes, "<u2")
    rows = map_rows(workspace)
    for problem in workspace.problems.values():
        own = codes[np.searchsorted(rows, problem.rows)]
        assert own.tolist() == problem.failed.astype(int).tolist()


def test_colours__column__the_values_of_the_column(workspace):
    view = colours(workspace, "column:colour")
    codes = numbers(view.codes, "<u2")
    shown = [view.legend[code].value for code in codes]
    assert shown == values_of(workspace, "colour")[map_rows(workspace)].tolist()


def test_colours__phrase__what_it_names_is_nearer(workspace):
    values = numbers(colours(workspace, "phrase:green").values, "<f4")
    is_green = values_of(workspace, "colour")[map_rows(workspace)] == "green"
    assert values[is_green].mean() > values[~is_green].mean() + 0.05


def test_selection__green_discs__words_values_and_rates_of_the_discovery_half(workspace):
    dataset = workspace.samples.dataset
    is_green = values_of(workspace, "colour") == "green"
    disc = workspace.problem("disc")
    chosen = disc.rows[is_green[disc.rows]]
    found = selection(workspace, np.concatenate([chosen, dataset.rows_of(Split.TRAIN)[:5]]))
    assert (found.n_selected, found.n_surroundings) == (len(chosen), 5)
    count = found.classes[0]
    assert count.title == found.title == "disc"
    n_failed = int(disc.failed[is_green[disc.rows]].sum())
    assert (count.inside.count, count.inside.total) == (n_failed, len(chosen))
    assert count.inside.total + count.rest.total == len(disc.rows)
    assert found.words[0].words.startswith("green")
    assert found.words[0].score > 0.9
    assert (found.values[0].column, found.values[0].value) == ("colour", "green")
    assert found.values[0].inside.value == 1.0
    assert {sample.row for sample in found.examples} <= set(chosen.tolist())
    failures = [sample.is_failure for sample in found.examples]
    assert failures == sorted(failures, reverse=True)


def test_selection__confirmation_rows__nothing_is_said_of_them(workspace):
    found = selection(workspace, workspace.confirmation.rows)
    assert (found.n_selected, found.n_surroundings, found.classes, found.examples) == (0, 0, (), ())
    assert found.note


def test_selection__whole_class_or_empty_or_unknown_class__said_in_words(workspace):
    assert "whole class" in selection(workspace, workspace.problem("disc").rows).note
    assert selection(workspace, np.zeros(0, dtype=np.int64)).n_selected == 0
    with pytest.raises(DataError):
        selection(workspace, np.zeros(0, dtype=np.int64), "no such class")


def test_selection__another_class_asked_for__words_are_about_it(workspace):
    rows = np.concatenate([workspace.problem("disc").rows[:9], workspace.problem("star").rows[:3]])
    found = selection(workspace, rows, "star")
    assert [count.title for count in found.classes] == ["disc", "star"]
    assert found.title == "star"
    assert {sample.label for sample in found.examples} == {"star"}


def test_selection__no_text_side__counts_without_words(folder):
    other = Workspace(Project.open(folder))

    def refuse(_phrases):
        raise ModelError("The embedder has no text side.")

    other.embed_texts = refuse
    found = selection(other, other.problem("disc").rows[:5])
    assert found.words == ()
    assert "no text side" in found.note
    assert found.examples
