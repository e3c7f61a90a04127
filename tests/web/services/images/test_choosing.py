import numpy as np
import pytest
from pydantic import ValidationError

from weakspot.core.errors import DataError
from weakspot.web.services import images
from weakspot.web.services.images import (
    WRONG,
    ImageQuery,
    choose_images,
    largest_first,
    row_of,
    visible_samples,
)


def _chosen(workspace, **fields):
    return choose_images(workspace, ImageQuery(**fields)).rows


def test_choose__nothing_asked__all_that_people_may_look_at(world_workspace):
    assert _chosen(world_workspace).tolist() == visible_samples(world_workspace).rows.tolist()


def test_choose__several_filters__all_hold(world_workspace):
    dataset, seen = world_workspace.samples.dataset, visible_samples(world_workspace)
    rows = _chosen(
        world_workspace,
        label="disc",
        result="wrong",
        part="discovery half",
        sure_from=0.3,
        attributes=["colour"],
        values=["green"],
    )
    colours = np.array(dataset.metadata("colour").to_pylist())
    disc = dataset.class_code("disc")
    expected = [
        row
        for place, row in enumerate(seen.rows.tolist())
        if seen.labels[place] == disc
        and seen.results[place] == WRONG
        and seen.parts[place] == 0
        and seen.sure[place] >= 0.3
        and colours[row] == "green"
    ]
    assert expected
    assert rows.tolist() == expected


def test_choose__confusion_cell__label_and_answer(world_workspace):
    seen, dataset = visible_samples(world_workspace), world_workspace.samples.dataset
    codes = [dataset.class_code(name) for name in ("disc", "star")]
    rows = _chosen(world_workspace, label="disc", answer="star", sure_to=1.0)
    expected = seen.rows[(seen.labels == codes[0]) & (seen.answers == codes[1])]
    assert len(expected)
    assert rows.tolist() == expected.tolist()


@pytest.mark.parametrize("many", [0, 10**9], ids=["order of all", "own order"])
def test_choose__ordered__worst_first_also_among_many(world_workspace, monkeypatch, many):
    monkeypatch.setattr(images, "MANY", many)
    seen = visible_samples(world_workspace)
    by_loss = np.searchsorted(seen.rows, _chosen(world_workspace, order="loss"))
    assert (np.diff(seen.truth[by_loss]) >= 0).all()
    sure = np.searchsorted(seen.rows, _chosen(world_workspace, label="disc", order="sure"))
    assert (np.diff(seen.sure[sure]) <= 0).all()
    unsure = np.searchsorted(seen.rows, _chosen(world_workspace, label="disc", order="unsure"))
    assert (np.diff(seen.sure[unsure]) >= 0).all()
    assert sorted(sure.tolist()) == sorted(unsure.tolist())


def test_choose__words__most_similar_first_and_near_enough(world_workspace):
    found = choose_images(world_workspace, ImageQuery(words="green", label="disc"))
    assert (np.diff(found.scores) <= 0).all()
    colours = np.array(world_workspace.samples.dataset.metadata("colour").to_pylist())
    assert (colours[found.rows[:20]] == "green").mean() > 0.8
    middle = float(np.median(found.scores))
    nearer = choose_images(
        world_workspace, ImageQuery(words="green", label="disc", similar_from=middle)
    )
    assert nearer.rows.tolist() == found.rows[found.scores >= middle].tolist()


def test_choose__like_an_image__it_comes_first(world_workspace):
    row = int(world_workspace.discovery.rows[4])
    (sample_id,) = world_workspace.samples.dataset.sample_ids(np.array([row]))
    found = choose_images(world_workspace, ImageQuery(like=sample_id))
    assert (int(found.rows[0]), found.place_of(row)) == (row, 0)
    assert found.scores[0] == pytest.approx(1.0, abs=1e-5)


def test_choose__hidden_image__cannot_be_compared_with(world_workspace):
    hidden = world_workspace.confirmation.rows[:1]
    (sample_id,) = world_workspace.samples.dataset.sample_ids(hidden)
    with pytest.raises(DataError, match="no such image"):
        row_of(world_workspace, sample_id)
    with pytest.raises(DataError, match="no such image"):
        _chosen(world_workspace, like=sample_id)


def test_choose__name__part_of_it_in_any_case(world_workspace):
    keys = world_workspace.samples.dataset.table.column("key").to_pylist()
    wanted = str(keys[int(visible_samples(world_workspace).rows[7])])
    assert _chosen(world_workspace, name=wanted.upper()).tolist() == [
        int(visible_samples(world_workspace).rows[7])
    ]


@pytest.mark.parametrize(
    "asked",
    [
        {"label": "heron"},
        {"answer": "heron"},
        {"attributes": ["colour"]},
        {"attributes": ["taste"], "values": ["sweet"]},
        {"slice_id": "0123456789ab"},
        {"words": "green", "like": "0" * 32},
    ],
)
def test_choose__names_what_is_not_there__said(world_workspace, asked):
    with pytest.raises(DataError):
        _chosen(world_workspace, **asked)


@pytest.mark.parametrize("asked", [{"sure_from": 2}, {"slice_id": "../x"}, {"order": "random"}])
def test_query__out_of_bounds__refused(asked):
    with pytest.raises(ValidationError):
        ImageQuery(**asked)


def test_largest_first__as_a_stable_order():
    random = np.random.default_rng(0)
    scores = np.round(random.normal(size=5000), 1).astype(np.float32)
    scores[:4] = [0.0, -0.0, np.inf, -np.inf]
    assert largest_first(scores).tolist() == np.argsort(-scores, kind="stable").tolist()
    assert largest_first(scores[:0]).tolist() == []


def test_cosines__missing_and_empty_embeddings():
    embeddings = np.array([[3, 4], [0, 0], [np.nan, np.nan], [-2, 0]], dtype=np.float32)
    found = images._cosines(embeddings, np.array([1, 0], dtype=np.float32))
    np.testing.assert_allclose(found, [0.6, 0.0, np.nan, -1.0], rtol=1e-6)
