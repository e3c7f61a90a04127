from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests import build

from weakspot.core.dataset import Split
from weakspot.core.failures import FailureCriterion
from weakspot.discover.mixture import (
    Material,
    Mixture,
    MixtureDiscoverer,
    bayesian_criterion,
    confusion_parts,
    fit_mixture,
    fit_reduction,
    held_out_odds,
    k_means_parts,
    log_odds,
)
from weakspot.testing.checks import checks_for
from weakspot.testing.planted import plant, rare

TOP_1 = FailureCriterion()
PLAIN = MixtureDiscoverer(
    label_weight=0.0,
    prediction_weight=0.0,
    regularisation=1e-6,
    variance_prior=0.0,
    tolerance=1e-6,
    n_steps=200,
)


def _samples(embeddings, labels, predictions, *, names=("cat", "dog"), probabilities=None):
    return build.samples(
        labels,
        class_names=names,
        predictions=np.asarray(predictions),
        probabilities=probabilities,
        embeddings=embeddings,
    )


def _blobs(n_each=60, *, seed=0, dimension=6):
    """Two classes with two kinds each; the second kind of cat is taken for a dog."""
    draws = np.random.default_rng(seed)
    kinds = np.repeat(np.arange(4), n_each)
    embeddings = 0.15 * draws.standard_normal((4 * n_each, dimension)) + np.eye(dimension)[kinds]
    labels = kinds // 2
    predictions = np.where(kinds == 1, 1, labels)
    return _samples(embeddings, labels, predictions), kinds


def _material(seed=0, n_each=200):
    draws = np.random.default_rng(seed)
    parts = np.repeat([0, 1, 2], n_each)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    reduced = (centres[parts] + draws.standard_normal((len(parts), 2)) * [1.0, 0.5]).astype(
        np.float32
    )
    blank = np.ones((len(parts), 1), dtype=np.float32)
    return (
        Material.of(reduced, np.zeros(len(parts), dtype=np.int64), blank, n_labels=1),
        parts,
        centres,
    )


@pytest.mark.parametrize("check", checks_for("discoverers"))
def test_mixture__keeps_the_contract_of_discoverers_for_all_classes_at_once(check):
    checks_for("discoverers")[check](lambda: MixtureDiscoverer(per_class=False, start="confusion"))


@pytest.mark.parametrize(
    "options", [{}, {"per_class": False}, {"per_class": False, "start": "confusion"}]
)
def test_discover__finds_the_kind_that_fails(options):
    samples, kinds = _blobs()
    discovery = MixtureDiscoverer(n_components=8, **options).discover(samples, TOP_1, seed=0)
    first = discovery.slices[0]
    assert first.class_name == "cat"
    inside = first.rule.members(samples, samples.rows)[kinds < 2]
    assert np.mean(inside == (kinds[kinds < 2] == 1)) > 0.95
    assert first.n_found == pytest.approx(inside.sum(), abs=3)
    assert first.strength > 0.9
    assert [note.class_name for note in discovery.notes] == ["dog"]
    assert discovery.n_considered >= 2


def test_discover__posterior_cut_is_where_a_component_wins():
    samples, kinds = _blobs()
    found = (
        MixtureDiscoverer(n_components=8, cut="posterior")
        .discover(samples, TOP_1, seed=0)
        .slices[0]
    )
    assert found.rule.threshold == 0.0
    inside = found.rule.members(samples, samples.rows)
    assert inside.sum() > 20
    assert np.mean(kinds[inside] == 1) > 0.95


def test_discover__probabilities_are_not_needed_and_are_used():
    samples, kinds = _blobs()
    soft = np.stack([np.where(kinds < 2, 0.9, 0.1), np.where(kinds < 2, 0.1, 0.9)], axis=1)
    soft[kinds == 1] = [0.2, 0.8]
    with_soft = replace(
        samples,
        dataset=samples.dataset.with_predictions(
            predictions=samples.dataset.predictions, probabilities=soft.astype(np.float32)
        ),
    )
    plain = MixtureDiscoverer(n_components=8).discover(samples, TOP_1, seed=0).slices[0]
    other = MixtureDiscoverer(n_components=8).discover(with_soft, TOP_1, seed=0).slices[0]
    assert (
        np.mean(
            plain.rule.members(samples, samples.rows) == other.rule.members(samples, samples.rows)
        )
        > 0.9
    )
    assert plain.rule != other.rule


def test_discover__ranking_changes_the_order_only():
    world = plant(rare(0.05), 1600, seed=3)
    samples = world.samples(Split.VALIDATION)
    found = {
        ranking: MixtureDiscoverer(ranking=ranking, n_slices=25)
        .discover(samples, TOP_1, seed=0)
        .slices
        for ranking in ("separation", "errors", "profile")
    }
    ids = [[item.slice_id for item in slices] for slices in found.values()]
    assert sorted(ids[0]) == sorted(ids[1]) == sorted(ids[2])
    assert ids[0] != ids[1]
    assert ids[1] != ids[2]
    strengths = [item.strength for item in found["separation"]]
    assert strengths == sorted(strengths, reverse=True)


def test_discover__bic_takes_no_more_components_than_there_are_kinds():
    samples, _ = _blobs(n_each=150)
    found = (
        MixtureDiscoverer(n_components="bic", variance_prior=0.0)
        .discover(samples, TOP_1, seed=0)
        .slices[0]
    )
    assert 4 <= found.parameters["fitted_components"] <= 6
    assert found.parameters["n_components"] == "bic"


def test_discover__constant_embeddings_get_a_note():
    samples = _samples(np.ones((40, 5)), [0] * 20 + [1] * 20, [0] * 10 + [1] * 30)
    discovery = MixtureDiscoverer().discover(samples, TOP_1, seed=0)
    assert discovery.slices == ()
    assert {note.class_name: note.note for note in discovery.notes}[
        "cat"
    ] == "The embeddings of all samples are alike."


def test_discover__rows_without_embeddings_are_left_out_and_counted():
    samples, _ = _blobs()
    embeddings = samples.space("clip").embeddings.copy()
    embeddings[120:239] = np.nan
    holed = replace(samples, spaces={"clip": replace(samples.space("clip"), embeddings=embeddings)})
    discovery = MixtureDiscoverer(n_components=4).discover(holed, TOP_1, seed=0)
    assert discovery.slices[0].class_name == "cat"
    assert (
        "119 samples have no embedding"
        in {note.class_name: note.note for note in discovery.notes}["dog"]
    )


def test_discover__a_part_of_many_samples_is_enough():
    samples, kinds = _blobs(n_each=200)
    found = (
        MixtureDiscoverer(n_components=8, max_samples=200)
        .discover(samples, TOP_1, seed=0)
        .slices[0]
    )
    inside = found.rule.members(samples, samples.rows)[kinds < 2]
    assert np.mean(inside == (kinds[kinds < 2] == 1)) > 0.9
    assert found.n_found < 120


def test_fit_mixture__is_as_likely_as_scikit_learn():
    from sklearn.mixture import GaussianMixture

    material, _, _ = _material(seed=4)
    start = k_means_parts(material.reduced, 3, np.random.default_rng(1))
    found = fit_mixture(material, start, PLAIN, n_components=3)
    peer = GaussianMixture(3, covariance_type="diag", random_state=0, tol=1e-6, max_iter=200).fit(
        material.reduced.astype(float)
    )
    assert found.log_likelihood == pytest.approx(
        peer.score(material.reduced.astype(float)), abs=1e-3
    )
    assert bayesian_criterion(found, len(material)) == pytest.approx(
        peer.bic(material.reduced.astype(float)), rel=1e-3
    )


def test_fit_mixture__predictions_split_what_embeddings_do_not():
    draws = np.random.default_rng(0)
    reduced = draws.standard_normal((400, 2)).astype(np.float32)
    reduced[:200, 0] += 1.0
    said = np.zeros((400, 2), dtype=np.float32)
    said[:200, 0], said[200:, 1] = 1.0, 1.0
    material = Material.of(reduced, np.zeros(400, dtype=np.int64), said, n_labels=1)
    start = (np.arange(400) % 2).astype(np.int64)
    start[:300] = 0
    aware = fit_mixture(material, start, replace(PLAIN, prediction_weight=10.0), n_components=2)
    assert sorted(aware.prediction_profiles[:, 0].round(2)) == [0.0, 1.0]
    assert sorted(aware.means[:, 0]) == pytest.approx([0.0, 1.0], abs=0.2)


def test_fit_mixture__labels_ascend_over_pieces():
    draws = np.random.default_rng(0)
    labels = np.sort(draws.integers(5, size=5000))
    reduced = (np.eye(5)[labels] * 8 + draws.standard_normal((5000, 5))).astype(np.float32)
    material = Material.of(reduced, labels, np.ones((5000, 1), dtype=np.float32), n_labels=5)
    start = k_means_parts(material.reduced, 5, np.random.default_rng(3))
    found = fit_mixture(material, start, replace(PLAIN, label_weight=1.0), n_components=5)
    assert found.label_profiles.max(axis=1) == pytest.approx(np.ones(5), abs=0.01)
    assert found.label_profiles.sum(axis=1) == pytest.approx(np.ones(5), abs=1e-6)


def test_fit_mixture__many_samples_begin_with_a_part(monkeypatch):
    monkeypatch.setattr("weakspot.discover.mixture.WARM_ROWS", 100)
    material, _, _ = _material()
    start = k_means_parts(material.reduced, 3, np.random.default_rng(1))
    warm = fit_mixture(material, start, PLAIN, n_components=3)
    monkeypatch.undo()
    cold = fit_mixture(material, start, PLAIN, n_components=3)
    assert warm.log_likelihood == pytest.approx(cold.log_likelihood, abs=1e-3)


def test_fit_mixture__an_empty_component_and_equal_points_stay_finite():
    material = Material.of(
        np.zeros((8, 2), dtype=np.float32),
        np.zeros(8, dtype=np.int64),
        np.zeros((8, 2), dtype=np.float32),
        n_labels=1,
    )
    found = fit_mixture(
        material,
        np.zeros(8, dtype=np.int64),
        replace(PLAIN, prediction_weight=10.0),
        n_components=3,
    )
    assert np.isfinite(found.means).all()
    assert np.isfinite(log_odds(material.reduced, found)).all()


def test_log_odds__by_hand_and_far_out():
    mixture = Mixture(
        means=np.array([[1.0], [-1.0]]),
        variances=np.array([[0.5], [0.5]]),
        log_weights=np.log([0.75, 0.25]),
        label_profiles=np.ones((2, 1)),
        prediction_profiles=np.ones((2, 1)),
    )
    odds = log_odds(np.array([[0.0], [1.0], [30.0]], dtype=np.float32), mixture)
    assert odds[0] == pytest.approx(np.log(3) + np.array([0.0, 4.0, 120.0]), abs=1e-3)
    assert odds[1] == pytest.approx(-odds[0], abs=1e-3)


def test_held_out_odds__a_component_of_one_sample_does_not_know_it():
    draws = np.random.default_rng(0)
    reduced = np.concatenate([draws.standard_normal((40, 2)), [[30.0, 30.0]]]).astype(np.float32)
    material = Material.of(
        reduced, np.zeros(41, dtype=np.int64), np.ones((41, 1), dtype=np.float32), n_labels=1
    )
    start = np.zeros(41, dtype=np.int64)
    start[40] = 1
    settings = replace(PLAIN, variance_prior=5.0)
    mixture = fit_mixture(material, start, settings, n_components=2)
    seen = log_odds(material.reduced, mixture)
    unseen = held_out_odds(material, mixture, settings, np.arange(41) % 5)
    assert seen[1, 40] > 0 > unseen[1, 40]
    assert unseen[0, :40].min() > 0


def test_fit_reduction__is_principal_components_either_way():
    from sklearn.decomposition import PCA

    draws = np.random.default_rng(0)
    embeddings = draws.standard_normal((200, 12)) * np.linspace(3.0, 0.2, 12) + 2.0
    samples = _samples(embeddings, [0] * 200, [0] * 200)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    for rows in (np.arange(200), np.arange(10)):
        peer = PCA(4).fit(unit[rows])
        found = fit_reduction(samples, "clip", rows, n_dimensions=4)
        reduced = found.apply(samples, "clip", rows)
        scale = np.sqrt(len(rows) / (len(rows) - 1) / peer.explained_variance_.mean())
        assert np.abs(reduced) == pytest.approx(
            np.abs(peer.transform(unit[rows])) * scale, abs=1e-3
        )
        assert reduced.var(axis=0).mean() == pytest.approx(1.0, abs=1e-3)


def test_fit_reduction__leaves_out_directions_without_variance():
    embeddings = np.zeros((50, 6))
    embeddings[:, 0] = 1.0
    embeddings[:25, 1] = 0.5
    samples = _samples(embeddings, [0] * 50, [0] * 50)
    assert len(fit_reduction(samples, "clip", np.arange(50), n_dimensions=4).projection) == 1
    assert fit_reduction(samples, "clip", np.arange(25), n_dimensions=4) is None
    assert fit_reduction(samples, "clip", np.arange(0), n_dimensions=4) is None


def test_confusion_parts__half_are_for_failures_and_parts_stay_in_their_cell():
    draws = np.random.default_rng(0)
    reduced = draws.standard_normal((103, 3)).astype(np.float32)
    labels = np.array([0] * 50 + [1] * 50 + [0, 0, 0])
    predicted = np.array([0] * 40 + [1] * 10 + [1] * 50 + [2, 2, 2])
    parts = confusion_parts(reduced, labels, predicted, 7, draws)
    cells = {
        part: {(labels[place], predicted[place]) for place in np.flatnonzero(parts == part)}
        for part in np.unique(parts)
    }
    failing = [part for part, found in cells.items() if any(label != said for label, said in found)]
    assert len(cells) == 7
    assert len(failing) == 4
    assert all(len(found) == 1 for found in cells.values())


def test_confusion_parts__rows_of_cells_without_a_part_go_to_the_nearest():
    reduced = np.array([[0.0], [0.1], [5.0], [5.1], [4.9]], dtype=np.float32)
    parts = confusion_parts(
        reduced, np.array([0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 2]), 2, np.random.default_rng(0)
    )
    assert parts[0] == parts[1] != parts[2]
    assert parts[2] == parts[3] == parts[4]


def test_discover__folds_keep_groups_whole(monkeypatch):
    samples, kinds = _blobs()
    objects = np.arange(len(kinds)) // 4
    folds = []

    def watched(material, mixture, settings, fold_of):
        folds.append(fold_of)
        return held_out_odds(material, mixture, settings, fold_of)

    monkeypatch.setattr("weakspot.discover.mixture.held_out_odds", watched)
    names = pa.array([f"object {one}" for one in objects])
    told = replace(samples, dataset=samples.dataset.with_groups(names))
    for given in (samples, told):
        MixtureDiscoverer(per_class=False).discover(given, TOP_1, seed=0)
    # Samples of a mixture are ordered by label and sample id.
    order = np.lexsort((np.array(told.dataset.sample_ids(told.rows)), kinds // 2))
    n_folds = [
        [len(np.unique(one[objects[order] == which])) for which in range(60)] for one in folds
    ]
    assert max(n_folds[0]) > 1
    assert max(n_folds[1]) == 1
