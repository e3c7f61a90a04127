from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.samples import SampleSet, VectorSpace
from weakspot.discover.directions import (
    DirectionsDiscoverer,
    best_cut,
    fit_direction,
    mean_and_deviation,
    row_space,
    stratified_folds,
)
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import rare

TOP_1 = FailureCriterion()
QUICK = DirectionsDiscoverer(costs=(0.01, 1.0), n_repeats=1)


def _world(n_samples=120, *, seed=0, gap=4.0, share=0.25, shift=10.0, scale=5.0):
    """One class; samples with a hidden mark lie further along axis 2 and fail; vectors are far off centre and stretched."""
    draws = np.random.default_rng(seed)
    has_mark = np.arange(n_samples) < share * n_samples
    vectors = draws.normal(size=(n_samples, 8))
    vectors[:, 2] += gap * has_mark
    vectors = shift + vectors * np.array([1, 1, scale, 1, 1, 1, 1, 1])
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * n_samples,
        predictions=has_mark.astype(np.int64),
        splits=["validation"] * n_samples,
    )
    space = VectorSpace(encoder_id="toy", vectors=vectors.astype(np.float32))
    rows = np.arange(n_samples)
    return SampleSet(dataset=dataset, rows=rows, spaces={"joint": space}, name="toy", reference_rows=rows), has_mark


def test_discover__finds_the_planted_mark_with_the_right_sign():
    samples, has_mark = _world()
    half = samples.only(samples.rows[::2])
    found = QUICK.discover(half, TOP_1, seed=0).slices
    assert [item.class_name for item in found] == ["apple"]
    unseen = samples.rows[1::2]
    members = found[0].rule.members(samples, unseen)
    assert np.mean(has_mark[unseen][members]) > 0.9
    assert np.mean(members[has_mark[unseen]]) > 0.85
    scores = found[0].rule.scores(samples, unseen)
    assert scores[has_mark[unseen]].mean() > scores[~has_mark[unseen]].mean() + 0.5
    assert int(np.argmax(found[0].rule.direction)) == 2
    assert found[0].strength > 0.85
    assert found[0].n_found == int(found[0].rule.members(samples, half.rows).sum())
    assert found[0].found_on.digest == half.digest()


def test_discover__scales_vectors_exactly_once():
    samples, _ = _world()
    rule = QUICK.discover(samples, TOP_1, seed=0).slices[0].rule
    vectors = samples.vectors("joint")
    assert rule.centre == pytest.approx(vectors.mean(axis=0, dtype=np.float64), rel=1e-4)
    assert rule.scale == pytest.approx(vectors.std(axis=0, dtype=np.float64), rel=1e-4)
    by_hand = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
    by_hand /= np.linalg.norm(by_hand, axis=1, keepdims=True)
    assert rule.scores(samples, samples.rows) == pytest.approx(by_hand @ np.array(rule.direction) + rule.offset, abs=1e-4)
    assert np.linalg.norm(rule.direction) == pytest.approx(1.0, abs=1e-6)
    # Standardising a second time would shift every vector again by the centre, which is far from zero here.
    twice = rule.scaled(rule.scaled(vectors))
    assert np.abs(twice - rule.scaled(vectors)).max() > 0.1


def test_discover__scales_by_reference_rows_and_by_its_own_without_any():
    samples, _ = _world()
    first = samples.only(samples.rows[:90])
    by_reference = QUICK.discover(replace(first, reference_rows=samples.rows[90:]), TOP_1, seed=0).slices[0].rule
    assert by_reference.centre == pytest.approx(samples.vectors("joint", samples.rows[90:]).mean(axis=0), rel=1e-4)
    by_itself = QUICK.discover(replace(first, reference_rows=None), TOP_1, seed=0).slices[0].rule
    assert by_itself.centre == pytest.approx(samples.vectors("joint", samples.rows[:90]).mean(axis=0), rel=1e-4)


def test_discover__does_not_depend_on_outcomes_of_rows_it_was_not_given():
    samples, _ = _world()
    half = samples.only(samples.rows[::2])
    found = QUICK.discover(half, TOP_1, seed=0)
    flipped = samples.dataset.predictions.copy()
    flipped[1::2] = 1 - flipped[1::2]
    other = replace(half, dataset=samples.dataset.with_outcomes(predictions=flipped))
    assert QUICK.discover(other, TOP_1, seed=0) == found


def test_discover__same_seed_same_result_in_any_row_order():
    samples, _ = _world()
    once = QUICK.discover(samples, TOP_1, seed=3)
    order = np.random.default_rng(9).permutation(len(samples))
    ids = samples.dataset.sample_ids()
    shuffled = SampleSet(
        dataset=dataset_from_columns(
            class_names=["apple", "pear"],
            labels=[0] * len(order),
            predictions=samples.dataset.predictions[order],
            sample_ids=[ids[place] for place in order],
        ),
        rows=np.arange(len(order)),
        spaces={"joint": VectorSpace(encoder_id="toy", vectors=samples.vectors("joint")[order])},
        name="toy",
    )
    again = QUICK.discover(shuffled, TOP_1, seed=3)
    assert again.slices[0].rule.direction == pytest.approx(once.slices[0].rule.direction, abs=1e-6)
    assert again.slices[0].rule.threshold == pytest.approx(once.slices[0].rule.threshold, abs=1e-6)
    assert again.slices[0].strength == once.slices[0].strength
    assert QUICK.discover(samples, TOP_1, seed=3) == once


@pytest.mark.parametrize(
    ("n_failed", "beginning"),
    [
        (0, "Too few failures"),
        (1, "Too few failures"),
        (20, "Too few samples that did not fail"),
        (19, "Too few samples that did not fail"),
    ],
)
def test_discover__classes_with_too_little_get_a_note(n_failed, beginning):
    predictions = (np.arange(20) < n_failed).astype(np.int64)
    dataset = dataset_from_columns(class_names=["apple", "pear"], labels=[0] * 20, predictions=predictions)
    vectors = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    samples = SampleSet(dataset=dataset, rows=np.arange(20), spaces={"joint": VectorSpace(encoder_id="toy", vectors=vectors)})
    discovery = DirectionsDiscoverer().discover(samples, TOP_1, seed=0)
    assert discovery.slices == ()
    assert [note.class_name for note in discovery.notes] == ["apple"]
    assert discovery.notes[0].note.startswith(beginning)
    assert f"{n_failed} of 20 samples failed" in discovery.notes[0].note


def test_discover__two_failures_are_enough_not_to_crash():
    predictions = (np.arange(20) < 2).astype(np.int64)
    dataset = dataset_from_columns(class_names=["apple", "pear"], labels=[0] * 20, predictions=predictions)
    vectors = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    vectors[:2, 0] += 9
    samples = SampleSet(dataset=dataset, rows=np.arange(20), spaces={"joint": VectorSpace(encoder_id="toy", vectors=vectors)})
    discovery = DirectionsDiscoverer().discover(samples, TOP_1, seed=0)
    assert len(discovery.slices) + len(discovery.notes) == 1
    assert discovery.slices[0].strength > 0.9


def test_discover__samples_without_a_vector_are_left_out_and_said():
    samples, _ = _world()
    vectors = samples.vectors("joint").copy()
    vectors[::5] = np.nan
    broken = replace(samples, spaces={"joint": VectorSpace(encoder_id="toy", vectors=vectors)})
    rule = QUICK.discover(broken, TOP_1, seed=0).slices[0].rule
    assert np.isfinite(rule.direction).all()
    assert np.isfinite(rule.centre).all()
    assert not rule.members(broken, np.arange(0, 120, 5)).any()
    none_left = replace(samples, spaces={"joint": VectorSpace(encoder_id="toy", vectors=np.full_like(vectors, np.nan))})
    note = QUICK.discover(none_left, TOP_1, seed=0).notes[0].note
    assert "120 samples have no vector" in note


def test_discover__constant_dimensions_do_no_harm():
    samples, _ = _world()
    vectors = np.concatenate([samples.vectors("joint"), np.full((120, 1), 7.0, np.float32)], axis=1)
    rule = (
        QUICK.discover(replace(samples, spaces={"joint": VectorSpace(encoder_id="toy", vectors=vectors)}), TOP_1, seed=0)
        .slices[0]
        .rule
    )
    assert rule.scale[-1] == 1.0
    assert rule.direction[-1] == pytest.approx(0.0, abs=1e-6)


def test_discover__chance_failures_are_weak_on_held_out_folds():
    strengths = []
    for seed in range(6):
        samples, _ = _world(80, seed=seed, gap=0.0)
        outcomes = (np.random.default_rng(100 + seed).random(80) < 0.3).astype(np.int64)
        null = replace(samples, dataset=samples.dataset.with_outcomes(predictions=outcomes))
        found = replace(QUICK, min_strength=0.0).discover(null, TOP_1, seed=seed).slices[0]
        strengths.append(found.strength)
    assert 0.38 < np.mean(strengths) < 0.62


def test_discover__permutation_p_tells_pattern_from_chance():
    careful = replace(QUICK, n_permutations=19, costs=(1.0,), min_strength=0.0, n_outer_folds=2)
    samples, _ = _world(60)
    assert careful.discover(samples, TOP_1, seed=0).slices[0].strength_p == pytest.approx(0.05)
    outcomes = (np.random.default_rng(5).random(60) < 0.3).astype(np.int64)
    null = replace(samples, dataset=samples.dataset.with_outcomes(predictions=outcomes))
    assert careful.discover(null, TOP_1, seed=0).slices[0].strength_p > 0.05
    assert QUICK.discover(samples, TOP_1, seed=0).slices[0].strength_p is None


def test_discover__both_sides_of_a_multi_label_class():
    draws = np.random.default_rng(0)
    truth = np.arange(160) < 80
    is_marked = np.arange(160) % 4 == 0
    vectors = draws.normal(size=(160, 6)).astype(np.float32)
    vectors[is_marked, 1] += 6
    said = truth ^ is_marked
    dataset = dataset_from_columns(
        class_names=["effusion"], label_lists=[[0] if one else [] for one in truth], predicted_matrix=said[:, None]
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(160), spaces={"joint": VectorSpace(encoder_id="toy", vectors=vectors)})
    found = QUICK.discover(samples, TOP_1, seed=0).slices
    assert [(item.class_name, item.side) for item in found] == [("effusion", Side.PRESENT), ("effusion", Side.ABSENT)]
    assert min(item.strength for item in found) > 0.9


def test_discover__large_classes_are_fitted_on_a_part():
    samples, has_mark = _world(400)
    found = replace(QUICK, max_samples=80).discover(samples, TOP_1, seed=0).slices[0]
    members = found.rule.members(samples, samples.rows)
    assert np.mean(has_mark[members]) > 0.9


def test_discover__boundary_cut_is_the_svm_boundary():
    samples, _ = _world()
    assert replace(QUICK, cut="boundary").discover(samples, TOP_1, seed=0).slices[0].rule.threshold == 0.0


def test_discoverer__refuses_bad_settings_and_missing_vectors():
    with pytest.raises(ConfigError, match="n_folds"):
        DirectionsDiscoverer(n_folds=1)
    with pytest.raises(ConfigError, match="costs"):
        DirectionsDiscoverer(costs=())
    samples, _ = _world(20)
    with pytest.raises(DataError, match="no vectors called 'other'"):
        DirectionsDiscoverer(space="other").discover(samples, TOP_1, seed=0)


def test_fit_direction__points_to_failures_and_zero_lies_midway():
    vectors = np.array([[1.0, 0.0], [0.9, 0.1], [-1.0, 0.0], [-0.9, -0.1]])
    failed = np.array([True, True, False, False])
    direction, offset = fit_direction(vectors, failed, 1.0)
    assert direction[0] > 0.9
    scores = vectors @ direction + offset
    assert scores[failed].mean() == pytest.approx(-scores[~failed].mean())


def test_row_space__keeps_all_inner_products():
    vectors = np.random.default_rng(0).normal(size=(5, 20))
    reduced, basis = row_space(vectors)
    assert reduced.shape == (5, 5)
    assert reduced @ basis == pytest.approx(vectors)
    assert reduced @ reduced.T == pytest.approx(vectors @ vectors.T)
    assert row_space(vectors.T)[1] is None


def test_stratified_folds__every_fold_has_both_sides():
    failed = np.arange(50) < 7
    folds = stratified_folds(failed, 5, np.random.default_rng(0))
    assert len(folds) == 5
    assert sorted(np.concatenate([held_out for _, held_out in folds]).tolist()) == list(range(50))
    assert all(failed[held_out].sum() in (1, 2) for _, held_out in folds)
    assert len(stratified_folds(np.arange(9) < 3, 5, np.random.default_rng(0))) == 3


def test_best_cut__ignores_a_lone_failure_far_down():
    scores = np.array([0.9, 0.8, 0.7, 0.3, 0.2, 0.1, 0.0])
    failed = np.array([True, True, True, False, False, False, True])
    assert best_cut(scores, failed) == pytest.approx(0.5)
    assert best_cut(np.ones(3), np.array([True, False, False])) == 1.0


def test_mean_and_deviation__reads_in_chunks_and_skips_nan(monkeypatch):
    monkeypatch.setattr("weakspot.discover.directions.CHUNK_ROWS", 3)
    vectors = np.array([[1000.0, 1], [1001, 1], [np.nan, 1], [1003, 1], [1004, 1]], dtype=np.float32)
    dataset = dataset_from_columns(class_names=["a"], labels=[0] * 5)
    samples = SampleSet(dataset=dataset, rows=np.arange(5), spaces={"joint": VectorSpace(encoder_id="toy", vectors=vectors)})
    mean, deviation = mean_and_deviation(samples, "joint", samples.rows)
    assert mean == pytest.approx([1002.0, 1.0])
    assert deviation == pytest.approx([np.sqrt(2.5), 1.0])


def test_discover__finds_the_rare_kind_of_a_planted_world():
    world = plant(rare(0.02), 6_000, seed=0)
    validation = world.samples(Split.VALIDATION)
    half = validation.only(validation.rows[::2])
    found = next(item for item in DirectionsDiscoverer().discover(half, TOP_1, seed=0).slices if item.class_name == "disc")
    unseen = found.class_rows(validation.only(validation.rows[1::2]))
    members = found.rule.members(validation, unseen)
    is_green = np.array(world.dataset.metadata("colour").to_pylist())[unseen] == "green"
    assert found.strength > 0.65
    assert is_green[members].mean() > 2 * is_green.mean()
    failed = TOP_1.failed(world.dataset, unseen)
    assert failed[members].mean() > failed[~members].mean() + 0.3


def test_discover__held_out_folds_take_no_part_in_choosing_the_cost():
    sizes = []

    class Watched(DirectionsDiscoverer):
        def _best_cost(self, vectors, failed, draws, *, n_repeats):
            sizes.append(len(failed))
            return super()._best_cost(vectors, failed, draws, n_repeats=n_repeats)

    samples, _ = _world(100)
    Watched(costs=(0.01, 1.0), n_outer_folds=5).discover(samples, TOP_1, seed=0)
    assert sizes == [80, 80, 80, 80, 80, 100]


def test_fit_direction__leaves_the_global_random_state_alone():
    before = np.random.get_state()  # noqa: NPY002 - the point is that nobody else moves it
    fit_direction(np.random.default_rng(0).normal(size=(20, 5)), np.arange(20) < 5, 1.0)
    after = np.random.get_state()  # noqa: NPY002
    assert before[2] == after[2]
    assert before[1].tolist() == after[1].tolist()
