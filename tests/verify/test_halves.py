from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import ColumnRule
from weakspot.core.slices import DataUse, SliceName
from weakspot.verify.halves import merge_folds, split_halves

TOP_1 = FailureCriterion()


def _dataset(order=None, hashes=None):
    labels = np.array([0] * 40 + [1] * 21)
    predictions = labels.copy()
    predictions[:8] = 1
    predictions[40:45] = 0
    places = np.arange(61) if order is None else order
    names = [f"{place:03d}" for place in range(61)] if hashes is None else hashes
    return dataset_from_columns(
        class_names=["apple", "pear"],
        labels=labels[places],
        predictions=predictions[places],
        sample_ids=[f"{place:03d}" for place in places],
        content_hashes=[names[place] for place in places],
    )


def test_split_halves__shares_of_every_class_and_prediction():
    dataset = _dataset()
    halves = split_halves(dataset, np.arange(61), TOP_1, seed=0)
    assert sorted([*halves.discovery, *halves.confirmation]) == list(range(61))
    assert abs(len(halves.discovery) - len(halves.confirmation)) == 1
    failed = dataset.predictions != dataset.labels
    for label, wrong, size in ((0, True, 8), (0, False, 32), (1, True, 5), (1, False, 16)):
        count = int(
            np.sum(
                (dataset.labels[halves.discovery] == label) & (failed[halves.discovery] == wrong)
            )
        )
        assert abs(2 * count - size) <= 1


def test_split_halves__another_share():
    halves = split_halves(_dataset(), np.arange(61), TOP_1, seed=0, discovery_share=0.3)
    assert len(halves.discovery) == 18
    with pytest.raises(ConfigError, match="discovery_share"):
        split_halves(_dataset(), np.arange(61), TOP_1, seed=0, discovery_share=1.0)


def test_split_halves__seed_decides_and_row_order_does_not():
    dataset = _dataset()
    first = dataset.sample_ids(split_halves(dataset, np.arange(61), TOP_1, seed=0).discovery)
    order = np.random.default_rng(1).permutation(61)
    shuffled = _dataset(order)
    again = shuffled.sample_ids(split_halves(shuffled, np.arange(61), TOP_1, seed=0).discovery)
    other = dataset.sample_ids(split_halves(dataset, np.arange(61), TOP_1, seed=1).discovery)
    assert sorted(again) == sorted(first)
    assert sorted(other) != sorted(first)


def test_split_halves__copies_of_a_image_stay_together():
    hashes = [f"{place // 3:03d}" for place in range(61)]
    dataset = _dataset(hashes=hashes)
    for seed in range(5):
        halves = split_halves(dataset, np.arange(61), TOP_1, seed=seed)
        assert not {hashes[row] for row in halves.discovery} & {
            hashes[row] for row in halves.confirmation
        }


def test_split_halves__only_the_given_rows():
    rows = np.arange(10, 50)
    halves = split_halves(_dataset(), rows, TOP_1, seed=0)
    assert sorted([*halves.discovery, *halves.confirmation]) == rows.tolist()


def test_split_halves__multi_label_strata():
    label_lists = [[0], [0, 1], [1], []] * 10
    said = np.array([[True, False]] * 40)
    dataset = dataset_from_columns(
        class_names=["a", "b"], label_lists=label_lists, predicted_matrix=said
    )
    halves = split_halves(dataset, np.arange(40), TOP_1, seed=0)
    assert dataset.label_matrix[halves.discovery].sum(axis=0).tolist() == [10, 10]
    assert len(halves.discovery) == 20


def test_split_halves__one_image_cannot_be_halved():
    with pytest.raises(NotEnoughDataError, match="too few"):
        split_halves(_dataset(), np.array([3]), TOP_1, seed=0)


def _grouped(groups, failing=()):
    labels = np.zeros(len(groups), dtype=np.int64)
    predictions = labels.copy()
    predictions[list(failing)] = 1
    return dataset_from_columns(
        class_names=["apple", "pear"], labels=labels, predictions=predictions, groups=groups
    )


def test_split_halves__groups_stay_whole_and_shares_equal():
    # Forty objects of three images; those of every fourth object all fail.
    names = [f"object {place // 3}" for place in range(120)]
    dataset = _grouped(names, [place for place in range(120) if (place // 3) % 4 == 0])
    for seed in range(5):
        halves = split_halves(dataset, np.arange(120), TOP_1, seed=seed)
        first, second = (
            {names[row] for row in rows} for rows in (halves.discovery, halves.confirmation)
        )
        assert not first & second
        assert len(halves.discovery) == len(halves.confirmation) == 60
        assert int((dataset.predictions[halves.discovery] == 1).sum()) == 15


def test_split_halves__large_and_small_groups_in_both_halves():
    names = [f"video {place // 10}" if place < 100 else None for place in range(200)]
    halves = split_halves(_grouped(names), np.arange(200), TOP_1, seed=3)
    assert int((halves.discovery < 100).sum()) == 50
    assert len(halves.discovery) == 100


def test_split_halves__one_group_cannot_be_halved():
    with pytest.raises(NotEnoughDataError, match="too few"):
        split_halves(_grouped(["patient"] * 30), np.arange(30), TOP_1, seed=0)


def test_split_halves__groups_that_nobody_named_change_nothing():
    plain = split_halves(_dataset(), np.arange(61), TOP_1, seed=0)
    named = _dataset().with_groups([None] * 60 + ["one"])
    again = split_halves(named, np.arange(61), TOP_1, seed=0)
    assert again.discovery.tolist() == plain.discovery.tolist()


USE = DataUse(name="half", n_samples=20, digest="x")
WORD = SliceName(phrase="a marked apple", contrast="marked", score=1.0, describer="words")


def _entry(found, q_value, verdict=Verdict.CONFIRMED):
    interval = Interval(low=0.0, high=1.0)
    return Evidence(
        slice_id=found.slice_id, verifier="holdout", measured_on=USE,
        n_inside=9, failures_inside=9, n_outside=9, failures_outside=0,
        rate_inside=1.0, rate_outside=0.0, interval_inside=interval, interval_outside=interval, gap=1.0, p_value=q_value,
        q_value=q_value, n_tested=1, verdict=verdict,
    )  # fmt: skip


@pytest.fixture
def turns(make_samples, marked):
    """The same marked apples, found once on each half."""
    samples = make_samples([True] * 10 + [False] * 10, [True] * 10 + [False] * 10)
    first = marked(samples.only(samples.rows[::2]))
    second = marked(samples.only(samples.rows[1::2]), threshold=0.1)
    return samples, first, second


def test_merged_turns__the_weaker_of_two_becomes_the_same(turns):
    samples, first, second = turns
    evidence = [_entry(first, 0.02), _entry(second, 0.01)]
    merged = merge_folds([first, second], evidence, samples)
    assert [entry.verdict for entry in merged] == [Verdict.SAME, Verdict.CONFIRMED]
    assert merged[0].same_as == second.slice_id
    assert merged[0].q_value == 0.02


def test_merged_turns__only_confirmed_slices_of_different_turns(turns):
    samples, first, second = turns
    unproven = [_entry(first, 0.02), _entry(second, 0.3, Verdict.NOT_CONFIRMED)]
    assert list(merge_folds([first, second], unproven, samples)) == unproven
    same_fold = second.model_copy(update={"found_on": first.found_on})
    both = [_entry(first, 0.02), _entry(same_fold, 0.01)]
    assert list(merge_folds([first, same_fold], both, samples)) == both


def test_merged_turns__other_members_stay_apart(turns, marked):
    samples, first, _ = turns
    everything = marked(samples.only(samples.rows[1::2]), threshold=-2.0)
    evidence = [_entry(first, 0.02), _entry(everything, 0.01)]
    assert list(merge_folds([first, everything], evidence, samples)) == evidence
    assert (
        merge_folds([first, everything], evidence, samples, same_at=0.5)[0].verdict is Verdict.SAME
    )


def test_merged_turns__each_slice_takes_in_at_most_one(turns, marked):
    samples, first, second = turns
    third = marked(samples.only(samples.rows[1::2]), threshold=0.2)
    evidence = [_entry(first, 0.01), _entry(second, 0.02), _entry(third, 0.03)]
    merged = merge_folds([first, second, third], evidence, samples)
    assert sum(entry.verdict is Verdict.SAME for entry in merged) == 1


def test_merged_turns__one_of_each_other_turn_is_taken_in(turns, marked):
    samples, first, second = turns
    blind = marked(samples.only(samples.rows[:0]), threshold=0.2)
    evidence = [_entry(first, 0.02), _entry(second, 0.03), _entry(blind, 0.01)]
    merged = merge_folds([first, second, blind], evidence, samples)
    assert [entry.verdict for entry in merged] == [Verdict.SAME, Verdict.SAME, Verdict.CONFIRMED]
    assert {entry.same_as for entry in merged[:2]} == {blind.slice_id}


def test_merged_turns__values_of_a_column_stand_for_a_slice_without_words(turns):
    samples, first, second = turns
    marks = ["marked"] * 10 + ["plain"] * 10
    samples = replace(samples, dataset=samples.dataset.with_metadata({"skin": marks}))
    rule = ColumnRule(column="skin", values=("marked",))
    told = second.model_copy(update={"rule": rule, "method": "attributes"})
    evidence = [_entry(first, 0.001), _entry(told, 0.02)]
    merged = merge_folds([first, told], evidence, samples)
    assert [entry.verdict for entry in merged] == [Verdict.SAME, Verdict.CONFIRMED]
    named = first.model_copy(update={"names": (WORD,)})
    evidence = [_entry(named, 0.001), _entry(told, 0.02)]
    merged = merge_folds([named, told], evidence, samples)
    assert [entry.verdict for entry in merged] == [Verdict.CONFIRMED, Verdict.SAME]


def test_merged_turns__refuses_a_bad_setting(turns):
    with pytest.raises(ConfigError, match="same_at"):
        merge_folds([], [], turns[0], same_at=0.0)
