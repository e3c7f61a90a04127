from collections import Counter

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.repairs import GroupKind, RepairArm
from weakspot.core.samples import SampleSet
from weakspot.repair.measure import measure_arm

TOP_1 = FailureCriterion()

ARM = RepairArm(arm="x", is_baseline=False, note="n", n_trained=1, changes=())


def _measured(labels, before, after, slices, *, metadata=None, n_classes=2, **options):
    names = ["apple", "pear", *(f"fruit {number}" for number in range(2, n_classes))]
    dataset = dataset_from_columns(
        class_names=names, labels=labels, predictions=np.array(before), metadata=metadata or {}
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(len(labels)))
    probabilities = np.eye(n_classes, dtype=np.float32)[after]
    return measure_arm(ARM, probabilities, slices, samples, TOP_1, **options)


def _apples_and_pears():
    """Ten apples, five of them green: one green and all others right; ten pears, eight right."""
    before = [0, 1, 1, 1, 1] + [0] * 5 + [1] * 8 + [0] * 2
    # Three green apples are gained, one other apple and one pear are lost.
    after = [0, 0, 0, 0, 1] + [1, 0, 0, 0, 0] + [0] + [1] * 7 + [0] * 2
    return [0] * 10 + [1] * 10, before, after, {"green": [True] * 5 + [False] * 15}


def test_spread_of__worst_average_and_gap(make_slice):
    labels, before, after, columns = _apples_and_pears()
    spread = _measured(labels, before, after, [make_slice()], metadata=columns).spread
    # Groups: green apples 1/5 -> 4/5, the other apples 5/5 -> 4/5, pears 8/10 -> 7/10; overall 14/20 -> 15/20.
    assert spread.worst_group == "pear"
    assert (spread.worst_before, spread.worst_after) == (pytest.approx(0.2), pytest.approx(0.7))
    assert spread.average_before == pytest.approx((0.2 + 1.0 + 0.8) / 3)
    assert spread.average_after == pytest.approx((0.8 + 0.8 + 0.7) / 3)
    assert (spread.gap_before, spread.gap_after) == (pytest.approx(0.5), pytest.approx(0.05))
    assert spread.worst_change.low < 0.5 < spread.worst_change.high
    assert spread.gap_change.low < -0.45 < spread.gap_change.high


def test_spread_of__overlapping_slices_are_groups_of_their_own(make_slice):
    # Apples 0 to 5 are green, 4 to 9 are wet, 10 to 15 are neither; the two that are both are wrong before and right after.
    before = [0] * 4 + [1, 1] + [0] * 10
    columns = {"green": [True] * 6 + [False] * 10, "wet": [False] * 4 + [True] * 6 + [False] * 6}
    spread = _measured(
        [0] * 16, before, [0] * 16, [make_slice(), make_slice("wet")], metadata=columns
    ).spread
    # Green 4/6, wet 4/6, neither 6/6.
    assert spread.average_before == pytest.approx((4 / 6 + 4 / 6 + 1) / 3)
    assert spread.worst_before == pytest.approx(4 / 6)
    assert (spread.worst_after, spread.average_after) == (1.0, 1.0)


def test_spread_of__small_groups_count_overall_only(make_slice):
    labels, before, after, columns = _apples_and_pears()
    spread = _measured(
        labels, before, after, [make_slice()], metadata=columns, least_group=6
    ).spread
    # Only pears are left: one group is no spread.
    assert spread is None
    columns = {"green": [True] * 4 + [False] * 16}
    spread = _measured(labels, before, after, [make_slice()], metadata=columns).spread
    # Green apples 1/4 are left out; the other apples 5/6, pears 8/10; overall is still 14/20.
    assert (spread.worst_before, spread.gap_before) == pytest.approx((0.8, 0.7 - 0.8))


def test_spread_of__given_groups_take_the_place_of_slices(make_slice):
    labels, before, after, columns = _apples_and_pears()
    groups = np.array([7] * 10 + [2] * 8 + [-1] * 2)
    spread = _measured(
        labels, before, after, [make_slice()], metadata=columns, groups=groups
    ).spread
    # Group 7 is the apples: 6/10 -> 8/10; group 2 the pears that were right: 8/8 -> 7/8.
    assert spread.worst_group == "group 7"
    assert (spread.worst_before, spread.worst_after) == pytest.approx((0.6, 0.8))
    assert spread.average_before == pytest.approx(0.8)
    with pytest.raises(DataError, match="one group number"):
        _measured(labels, before, after, [make_slice()], metadata=columns, groups=groups[:4])


def test_spread_of__interval_of_two_groups_agrees_with_arithmetic():
    # Apples: 100 of 200 right before; 60 gained, 20 lost. Pears are always right, so the worst group is always the apples.
    before = [0] * 100 + [1] * 100 + [1] * 50
    after = [1] * 20 + [0] * 80 + [0] * 60 + [1] * 40 + [1] * 50
    spread = _measured([0] * 200 + [1] * 50, before, after, []).spread
    deviation = np.sqrt((80 / 200 - (40 / 200) ** 2) / 200)
    assert spread.worst_change.low == pytest.approx(0.2 - 1.96 * deviation, abs=0.015)
    assert spread.worst_change.high == pytest.approx(0.2 + 1.96 * deviation, abs=0.015)
    # Overall changes by 4/5 of what the apples change by, so the gap by minus a fifth of it.
    assert spread.gap_change.low == pytest.approx(-0.2 * (0.2 + 1.96 * deviation), abs=0.003)


def _multi_label(after, *, slices=(), groups=None):
    """Twelve samples, six with an apple; no pear anywhere; the first two apples are missed before."""
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        label_lists=[[0]] * 6 + [[]] * 6,
        predicted_matrix=np.array(
            [[False, False]] * 2 + [[True, False]] * 4 + [[False, False]] * 6
        ),
        metadata={"green": [True] * 3 + [False] * 9},
    )
    probabilities = np.array(after, dtype=np.float32)
    samples = SampleSet(dataset=dataset, rows=np.arange(12))
    return measure_arm(
        ARM, probabilities, slices, samples, TOP_1, groups=groups, least_group=3
    ).spread


def test_spread_of__multi_label_draws_whole_samples(make_slice):
    after = [[0.9, 0.1]] * 6 + [[0.1, 0.1]] * 5 + [[0.1, 0.9]]
    spread = _multi_label(after, slices=[make_slice(side=Side.PRESENT)])
    # Green apples 1/3 -> 3/3, other apples 3/3, no apple 6/6, no pear 12/12 -> 11/12; overall 22/24 -> 23/24.
    assert spread.worst_group == "no pear"
    assert (spread.worst_before, spread.worst_after) == pytest.approx((1 / 3, 11 / 12))
    assert spread.average_before == pytest.approx((1 / 3 + 3) / 4)
    assert spread.gap_before == pytest.approx(22 / 24 - 1 / 3)
    assert spread.gap_after == pytest.approx(23 / 24 - 11 / 12)
    assert spread.worst_change.low < 11 / 12 - 1 / 3 < spread.worst_change.high <= 1.0


def test_spread_of__decisions_on_one_sample_are_not_counted_as_many():
    # Every sample has both labels and gets both right or both wrong: 100 samples, 200 decisions. Samples 0 to 49: 20 are right
    # before, 15 are gained and 5 lost; the others are always right.
    was_right = np.array([True] * 20 + [False] * 30 + [True] * 50)
    is_right = np.array([False] * 5 + [True] * 15 + [True] * 15 + [False] * 15 + [True] * 50)
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        label_lists=[[0, 1]] * 100,
        predicted_matrix=np.column_stack([was_right, was_right]),
    )
    probabilities = np.column_stack([is_right, is_right]).astype(np.float32)
    samples, groups = SampleSet(dataset=dataset, rows=np.arange(100)), np.repeat([0, 1], 50)
    spread = measure_arm(ARM, probabilities, [], samples, TOP_1, groups=groups).spread
    deviation = np.sqrt((20 / 50 - (10 / 50) ** 2) / 50)
    assert spread.worst_after - spread.worst_before == pytest.approx(0.2)
    assert spread.worst_change.high - spread.worst_change.low == pytest.approx(
        2 * 1.96 * deviation, rel=0.12
    )


@pytest.mark.parametrize(("n_groups", "n_each", "least_share"), [(2, 150, 0.9), (10, 60, 0.85)])
def test_spread_of__covers_the_truth_nearly_as_often_as_it_says(n_groups, n_each, least_share):
    # The first class has an accuracy of 0.5 and gets to 0.725; the others lie between 0.7 and 0.9 and gain a little.
    accuracies = np.concatenate([[0.5], np.linspace(0.7, 0.9, n_groups)[1:]])
    kept, gained = np.full(n_groups, 0.95), np.array([0.5] + [0.15] * (n_groups - 1))
    truth = (accuracies * kept + (1 - accuracies) * gained).min() - 0.5
    labels = np.repeat(np.arange(n_groups), n_each)
    random, n_hits, n_worlds = np.random.default_rng(0), 0, 120
    for seed in range(n_worlds):
        was_right = random.random(len(labels)) < accuracies[labels]
        is_right = random.random(len(labels)) < np.where(was_right, kept[labels], gained[labels])
        before, after = (
            np.where(right, labels, (labels + 1) % n_groups) for right in (was_right, is_right)
        )
        change = _measured(
            labels, before, after, [], n_classes=n_groups, seed=seed
        ).spread.worst_change
        n_hits += change.low <= truth <= change.high
    # Without the correction of bias it is 0.8 for ten classes of sixty.
    assert n_hits >= least_share * n_worlds


def _objects(seed, make_slice, *, is_told, per_object=5):
    """Forty green apples and forty others, seen several times, decided on alike; true accuracies 0.4 to 0.6 and 0.9 to 0.9."""
    draws = np.random.default_rng(seed)
    objects = np.repeat(np.arange(80), per_object)
    is_green = np.arange(80) < 40
    chance = draws.random(80)
    before = np.where(is_green, chance > 0.4, chance > 0.9).astype(np.int64)
    # Objects change apart from what they were: a third of the wrong ones is gained, nothing is lost.
    after = np.where(is_green & (before == 1) & (draws.random(80) < 1 / 3), 0, before)
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * len(objects),
        predictions=before[objects],
        metadata={"green": is_green[objects].tolist()},
        groups=[f"object {one}" for one in objects] if is_told else None,
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(len(objects)))
    probabilities = np.eye(2, dtype=np.float32)[after[objects]]
    return measure_arm(ARM, probabilities, [make_slice()], samples, TOP_1, seed=seed)


def test_measure_arm__objects_count_once_and_are_drawn_whole(make_slice):
    covered = Counter()
    for seed in range(60):
        for is_told in (True, False):
            measured = _objects(seed, make_slice, is_told=is_told)
            change = measured.change_of(GroupKind.SLICE)
            assert change.n_groups == (40 if is_told else None)
            for name, interval in (
                ("worst", measured.spread.worst_change),
                ("slice", change.interval_of_change),
            ):
                covered[name, is_told] += interval.low <= 0.2 <= interval.high
    assert max(covered["worst", False], covered["slice", False]) <= 45
    assert covered["worst", True] >= 52
    assert covered["slice", True] >= 54
