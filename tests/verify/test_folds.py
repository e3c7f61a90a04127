from dataclasses import replace

import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.rules import ColumnRule
from weakspot.core.slices import DataUse, SliceName
from weakspot.verify.halves import merge_folds

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
