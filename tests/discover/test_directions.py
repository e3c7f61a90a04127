from dataclasses import replace

import numpy as np
import pytest
from tests import build

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.discover.directions import (
    DirectionsDiscoverer,
    class_data,
    mean_and_deviation,
    stratified_part,
)
from weakspot.testing.planted import nothing, plant

TOP_1 = FailureCriterion()
QUICK = DirectionsDiscoverer(costs=(0.01, 1.0), n_repeats=1, n_permutations=0)


def _world(n_samples=120, *, seed=0, gap=4.0, share=0.25, shift=10.0, scale=5.0):
    """One class; samples with a hidden mark lie further along axis 2 and fail; embeddings are far off centre and stretched."""
    draws = np.random.default_rng(seed)
    has_mark = np.arange(n_samples) < share * n_samples
    embeddings = draws.normal(size=(n_samples, 8))
    embeddings[:, 2] += gap * has_mark
    embeddings = shift + embeddings * np.array([1, 1, scale, 1, 1, 1, 1, 1])
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * n_samples,
        predictions=has_mark.astype(np.int64),
        splits=["validation"] * n_samples,
    )
    space = EmbeddingSpace(encoder_id="toy", embeddings=embeddings.astype(np.float32))
    rows = np.arange(n_samples)
    return SampleSet(
        dataset=dataset, rows=rows, spaces={"clip": space}, name="toy", reference_rows=rows
    ), has_mark


def test_discover__finds_the_planted_mark_with_the_right_sign():
    samples, has_mark = _world()
    half = samples.only(samples.rows[::2])
    found = QUICK.discover(half, TOP_1, seed=0).slices
    assert [item.class_name for item in found] == ["apple"]
    unseen = samples.rows[1::2]
    members = found[0].rule.members(samples, unseen)
    assert np.mean(has_mark[unseen][members]) > 0.9
    assert np.mean(members[has_mark[unseen]]) > 0.75
    scores = found[0].rule.scores(samples, unseen)
    assert scores[has_mark[unseen]].mean() > scores[~has_mark[unseen]].mean() + 0.5
    assert int(np.argmax(found[0].rule.direction)) == 2
    assert found[0].strength > 0.85
    assert found[0].n_found == int(found[0].rule.members(samples, half.rows).sum())
    assert found[0].found_on.digest == half.digest()


def test_discover__scales_embeddings_exactly_once():
    samples, _ = _world()
    rule = QUICK.discover(samples, TOP_1, seed=0).slices[0].rule
    embeddings = samples.embeddings("clip")
    assert rule.centre == pytest.approx(embeddings.mean(axis=0, dtype=np.float64), rel=1e-4)
    assert rule.scale == pytest.approx(embeddings.std(axis=0, dtype=np.float64), rel=1e-4)
    by_hand = (embeddings - embeddings.mean(axis=0)) / embeddings.std(axis=0)
    by_hand /= np.linalg.norm(by_hand, axis=1, keepdims=True)
    assert rule.scores(samples, samples.rows) == pytest.approx(
        by_hand @ np.array(rule.direction) + rule.offset, abs=1e-4
    )
    assert np.linalg.norm(rule.direction) == pytest.approx(1.0, abs=1e-6)
    # Standardising a second time would shift every embedding again by the centre, which is far from zero here.
    twice = rule.scaled(rule.scaled(embeddings))
    assert np.abs(twice - rule.scaled(embeddings)).max() > 0.1


def test_discover__scales_by_reference_rows_and_by_its_own_without_any():
    samples, _ = _world()
    first = samples.only(samples.rows[:90])
    by_reference = (
        QUICK.discover(replace(first, reference_rows=samples.rows[90:]), TOP_1, seed=0)
        .slices[0]
        .rule
    )
    assert by_reference.centre == pytest.approx(
        samples.embeddings("clip", samples.rows[90:]).mean(axis=0), rel=1e-4
    )
    by_itself = QUICK.discover(replace(first, reference_rows=None), TOP_1, seed=0).slices[0].rule
    assert by_itself.centre == pytest.approx(
        samples.embeddings("clip", samples.rows[:90]).mean(axis=0), rel=1e-4
    )


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
    dataset = dataset_from_columns(
        class_names=["apple", "pear"], labels=[0] * 20, predictions=predictions
    )
    embeddings = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    samples = SampleSet(
        dataset=dataset,
        rows=np.arange(20),
        spaces={"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)},
    )
    discovery = DirectionsDiscoverer().discover(samples, TOP_1, seed=0)
    assert discovery.slices == ()
    assert [note.class_name for note in discovery.notes] == ["apple"]
    assert discovery.notes[0].note.startswith(beginning)
    assert f"{n_failed} of 20 samples failed" in discovery.notes[0].note


def test_discover__chance_failures_are_weak_on_held_out_folds():
    strengths = []
    for seed in range(6):
        samples, _ = _world(80, seed=seed, gap=0.0)
        predictions = (np.random.default_rng(100 + seed).random(80) < 0.3).astype(np.int64)
        null = replace(samples, dataset=samples.dataset.with_predictions(predictions=predictions))
        found = replace(QUICK, min_strength=0.0).discover(null, TOP_1, seed=seed).slices[0]
        strengths.append(found.strength)
    assert 0.38 < np.mean(strengths) < 0.62


def test_discover__permutation_p_tells_pattern_from_chance():
    careful = replace(QUICK, n_permutations=19, costs=(1.0,), min_strength=0.0, n_outer_folds=2)
    samples, _ = _world(60)
    assert careful.discover(samples, TOP_1, seed=0).slices[0].strength_p == pytest.approx(0.05)
    predictions = (np.random.default_rng(5).random(60) < 0.3).astype(np.int64)
    null = replace(samples, dataset=samples.dataset.with_predictions(predictions=predictions))
    assert careful.discover(null, TOP_1, seed=0).slices[0].strength_p > 0.05
    assert QUICK.discover(samples, TOP_1, seed=0).slices[0].strength_p is None


def test_discover__large_classes_are_fitted_on_a_part():
    samples, has_mark = _world(400)
    found = replace(QUICK, max_samples=80).discover(samples, TOP_1, seed=0).slices[0]
    members = found.rule.members(samples, samples.rows)
    assert np.mean(has_mark[members]) > 0.9


def test_discover__boundary_cut_is_the_svm_boundary():
    samples, _ = _world()
    assert (
        replace(QUICK, cut="boundary").discover(samples, TOP_1, seed=0).slices[0].rule.threshold
        == 0.0
    )


def test_mean_and_deviation__reads_in_chunks_and_skips_nan(monkeypatch):
    monkeypatch.setattr("weakspot.discover.directions.CHUNK_ROWS", 3)
    embeddings = np.array(
        [[1000.0, 1], [1001, 1], [np.nan, 1], [1003, 1], [1004, 1]], dtype=np.float32
    )
    samples = build.samples([0] * 5, class_names=["a"], embeddings=embeddings)
    mean, deviation = mean_and_deviation(samples, "clip", samples.rows)
    assert mean == pytest.approx([1002.0, 1.0])
    assert deviation == pytest.approx([np.sqrt(2.5), 1.0])


@pytest.fixture(scope="module")
def two_kinds():
    """A world in which green discs and discs on grass fail, each for its own reason."""
    world = plant(nothing(), 4_000, seed=0)
    colours, places = (
        np.array(world.dataset.metadata(name).to_pylist()) for name in ("colour", "background")
    )
    is_green, is_grassy = colours == "green", places == "grassy"
    draws = np.random.default_rng(0)
    fails = draws.random(4_000) < np.where(is_green | is_grassy, 0.8, 0.05)
    labels = world.dataset.labels
    predictions = np.where((labels == 0) & fails, 1, labels)
    samples = world.samples(Split.VALIDATION)
    return (
        replace(samples, dataset=world.dataset.with_predictions(predictions=predictions)),
        is_green,
        is_grassy,
    )


def _precision(found, samples, is_inside, n_first=10):
    rows = found.class_rows(samples.only(samples.dataset.rows_of(Split.TEST)))
    return is_inside[rows[np.argsort(-found.rule.scores(samples, rows))[:n_first]]].mean()


def test_discover__two_kinds_of_failure_in_one_class_get_a_direction_each(two_kinds):
    samples, is_green, is_grassy = two_kinds
    discovery = DirectionsDiscoverer(costs=(0.01, 1.0), n_permutations=19).discover(
        samples, TOP_1, seed=0
    )
    assert [item.class_name for item in discovery.slices] == ["disc", "disc"]
    green = [_precision(item, samples, is_green) for item in discovery.slices]
    grassy = [_precision(item, samples, is_grassy) for item in discovery.slices]
    assert max(green) >= 0.9
    assert max(grassy) >= 0.9
    assert int(np.argmax(green)) != int(np.argmax(grassy))
    assert all(item.strength_p == 0.05 for item in discovery.slices)
    assert discovery.slices[0].strength >= discovery.slices[1].strength
    assert discovery.n_considered == 2
    assert discovery.slices[0].parameters["n_directions_found"] == 2


def test_discover__one_direction_if_no_more_are_wanted(two_kinds):
    samples, _, _ = two_kinds
    discovery = replace(QUICK, n_directions=1).discover(samples, TOP_1, seed=0)
    assert [item.class_name for item in discovery.slices] == ["disc"]
    assert discovery.n_considered == 1


def test_discover__chance_of_large_classes_is_measured_on_a_part():
    samples, _ = _world(400)
    found = (
        replace(QUICK, n_permutations=19, max_null_samples=60)
        .discover(samples, TOP_1, seed=0)
        .slices[0]
    )
    assert found.strength_p == 0.05


def test_discover__constant_embeddings_and_both_costs_give_a_note():
    samples, _ = _world(40)
    flat = replace(
        samples,
        spaces={
            "clip": EmbeddingSpace(encoder_id="toy", embeddings=np.ones((40, 8), dtype=np.float32))
        },
    )
    discovery = DirectionsDiscoverer().discover(flat, TOP_1, seed=0)
    assert discovery.slices == ()
    assert "share no direction (balanced accuracy 0.50" in discovery.notes[0].note


def test_stratified_part__keeps_both_sides():
    part = stratified_part(np.arange(1_000) < 3, 100, np.random.default_rng(0))
    assert (part < 3).sum() == 2
    assert len(part) == 102
    assert stratified_part(np.arange(10) < 3, 10, np.random.default_rng(0)).tolist() == list(
        range(10)
    )


def _search(**options):
    settings = {
        "costs": (0.1,),
        "cost_slack": 0.0,
        "n_repeats": 1,
        "n_permutations": 19,
        "n_directions": 1,
    }
    return DirectionsDiscoverer(**(settings | options))


def _objects(seed, *, failing=12, gap=0.0):
    draws = np.random.default_rng(seed)
    objects = np.repeat(np.arange(40), 5)
    middles = draws.normal(size=(40, 12))
    middles[:failing, 0] += gap
    embeddings = middles[objects] + 0.1 * draws.normal(size=(200, 12))
    return embeddings.astype(np.float32), objects < failing, objects


def _found(given, search, *, is_told, seed=0, n_null=200):
    embeddings, failed, objects = given
    draws = np.random.default_rng(seed)
    groups = objects if is_told else None
    data = class_data(embeddings, failed, groups, max_null_samples=n_null, draws=draws)
    return search.search(data, draws)[0]


def test_run__objects_seen_several_times_are_no_direction():
    search = _search()
    clear = {True: 0, False: 0}
    for seed in range(20):
        for is_told in (True, False):
            found = _found(_objects(seed), search, is_told=is_told, seed=seed)[0]
            clear[is_told] += found.strength_p is not None and found.strength_p <= 0.05
    assert clear[False] >= 15
    assert clear[True] <= 4


def test_run__a_direction_that_objects_share_is_found():
    for n_null in (200, 120):
        found = _found(_objects(0, gap=4.0), _search(), is_told=True, n_null=n_null)[0]
        assert found.strength > 0.8
        assert found.strength_p == 0.05


def test_run__one_failing_object_has_no_cut_and_no_strength():
    found = _found(_objects(0, failing=1), _search(), is_told=True)[0]
    assert found.strength == 0.5
    assert found.threshold == 0.0


def test_run__without_permutations_groups_widen_what_may_be_chance():
    """Two kinds of failing objects, told from the others about as well as chance would tell so few of them."""
    kinds = {True: 0, False: 0}
    for seed in range(12):
        embeddings, failed, objects = _objects(seed, failing=14)
        embeddings[objects < 7, 1] += 12.0
        embeddings[(objects >= 7) & (objects < 20), 2] += 12.0
        embeddings[objects >= 34, 1] += 12.0
        search = _search(n_permutations=0, n_directions=2)
        for is_told in (True, False):
            found = _found((embeddings, failed, objects), search, is_told=is_told, seed=seed)
            kinds[is_told] += len(found) > 1
    assert kinds[True] < kinds[False]


def test_run__failures_of_few_objects_are_not_of_several_kinds():
    """Six failing objects lie apart from each other, as any six do: that is no reason to divide them."""
    search = _search(n_directions=3)
    told = [_found(_objects(seed, failing=6), search, is_told=True, seed=seed) for seed in range(6)]
    images = [_found(_objects(seed, failing=6), search, is_told=False) for seed in range(6)]
    assert sum(len(found) > 1 for found in told) <= 1
    assert sum(len(found) > 1 for found in images) >= 5
