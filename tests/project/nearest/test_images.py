import numpy as np
import pytest
from tests.build import planted_project

from weakspot.core.errors import ConfigError, DataError, WeakspotError
from weakspot.core.failures import FailureCriterion
from weakspot.project.nearest import IndexKind, NearestRequest
from weakspot.run.halves import split_in_halves
from weakspot.run.preparation import CLIP


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = planted_project(tmp_path_factory.mktemp("nearest"), 500)
    made.prepared()
    return made


@pytest.fixture(scope="module")
def samples(project):
    return project.prepared().samples


@pytest.fixture(scope="module")
def both(project, samples):
    return split_in_halves(samples, project.settings, FailureCriterion())[0]


def rows_by_id(samples):
    return {name: row for row, name in enumerate(samples.dataset.sample_ids())}


@pytest.mark.parametrize("index", list(IndexKind))
def test_nearest__words_find_what_they_say(project, samples, index):
    report = project.nearest(NearestRequest(phrase="green", n_wanted=15, index=index))
    rows = [rows_by_id(samples)[one.sample_id] for one in report.images]
    colours = samples.dataset.metadata("colour").take(rows).to_pylist()
    scores = [one.score for one in report.images]
    assert len(rows) == 15
    assert scores == sorted(scores, reverse=True)
    assert set(colours) == {"green"}
    assert report.asked == "green"


def test_nearest__copies_and_all_embeddings_give_the_same(project):
    for above in (None, 0.05):
        exact, copy = (
            project.nearest(NearestRequest(phrase="green", n_wanted=30, above=above, index=index))
            for index in (IndexKind.EXACT, IndexKind.QUANTISED)
        )
        assert exact.images == copy.images
        assert (exact.n_above, exact.failing) == (copy.n_above, copy.failing)


def test_nearest__confirmation_half_is_not_shown_and_predictions_only_of_discovery(
    project, samples, both
):
    report = project.nearest(NearestRequest(phrase="green", n_wanted=100_000))
    known = rows_by_id(samples)
    shown = {known[one.sample_id]: one for one in report.images}
    discovery, confirmation = (set(half.rows.tolist()) for half in both)
    assert not set(shown) & confirmation
    assert report.n_kept_back == len(confirmation)
    assert report.n_compared == len(samples.dataset) - len(confirmation)
    assert {row for row, one in shown.items() if one.is_failure is not None} == discovery
    assert all((one.prediction is None) == (one.is_failure is None) for one in report.images)
    wrong = {
        row for row in discovery if samples.dataset.predictions[row] != samples.dataset.labels[row]
    }
    assert {row for row, one in shown.items() if one.is_failure} == wrong
    assert (report.failing.count, report.failing.total) == (len(wrong), len(discovery))


def test_nearest__above_counts_all_and_lists_the_first(project, samples, both):
    everything = project.nearest(NearestRequest(phrase="green", n_wanted=100_000))
    threshold = everything.images[40].score
    report = project.nearest(NearestRequest(phrase="green", n_wanted=5, above=threshold))
    expected = [one for one in everything.images if one.score >= threshold]
    assert report.n_above == len(expected)
    assert report.images == everything.images[:5]
    assert report.failing.total == sum(one.is_failure is not None for one in expected)
    assert report.failing.total + report.failing_elsewhere.total == len(both[0].rows)
    assert project.nearest(NearestRequest(phrase="green", above=1.0)).images == ()


def test_nearest__class_and_splits(project):
    report = project.nearest(
        NearestRequest(
            phrase="green", n_wanted=1000, class_name="disc", splits=("train", "validation")
        )
    )
    assert {one.label for one in report.images} == {"disc"}
    assert {one.split for one in report.images} == {"train", "validation"}


def test_nearest__like_a_sample_leaves_itself_out(project, samples):
    row = 17
    sample_id = samples.dataset.sample_ids(np.array([row]))[0]
    report = project.nearest(NearestRequest(like=sample_id, n_wanted=3))
    assert sample_id not in {one.sample_id for one in report.images}
    embeddings = samples.space(CLIP).embeddings
    other = rows_by_id(samples)[report.images[0].sample_id]
    cosine = (
        embeddings[row]
        @ embeddings[other]
        / np.linalg.norm(embeddings[row])
        / np.linalg.norm(embeddings[other])
    )
    assert report.images[0].score == pytest.approx(float(cosine), abs=1e-5)


def test_nearest__like_a_image_file(project, samples, both):
    row = int(both[0].rows[0])
    location = samples.dataset.locations(np.array([row]))[0]
    report = project.nearest(NearestRequest(like=location, n_wanted=1))
    assert report.images[0].sample_id == samples.dataset.sample_ids(np.array([row]))[0]
    assert report.images[0].score == pytest.approx(1.0, abs=1e-5)


def test_nearest__what_is_no_image(project, tmp_path):
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(WeakspotError, match="cannot be used"):
        project.nearest(NearestRequest(like=str(tmp_path / "text.png")))
    with pytest.raises(DataError, match="no sample with this id"):
        project.nearest(NearestRequest(like="0123"))
    with pytest.raises(DataError, match="no class 'disk'"):
        project.nearest(NearestRequest(phrase="green", class_name="disk"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "either words"),
        ({"phrase": "green", "like": "x"}, "either words"),
        ({"phrase": "  "}, "either words"),
        ({"phrase": "green", "n_wanted": 0}, "--top"),
        ({"phrase": "green", "above": 1.5}, "--above"),
        ({"phrase": "green", "above": float("nan")}, "--above"),
        ({"phrase": "green", "splits": ("valid",)}, "no such split"),
    ],
)
def test_request__refused(given, words):
    with pytest.raises(ConfigError, match=words):
        NearestRequest(**given)
