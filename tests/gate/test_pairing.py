import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.core.rules import IdRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.gate.baseline import (
    Baseline,
    ClassPredictions,
    HeldOutPredictions,
    Packed,
)
from weakspot.gate.figures import SubjectKind, pair_samples

RECORD = RunRecord(run_id="r", command="", started="2026-01-01", seed=0)


def _predictions(numbers, labels, failed):
    """Return predictions of samples by number, with class `a` or `b` and whether they failed."""
    bits = {name: np.array([label == name for label in labels]) for name in ("a", "b")}
    wrong = np.array(failed)
    return HeldOutPredictions(
        keys=Packed.of_hashes([f"{number:016x}" for number in numbers]),
        classes=tuple(
            ClassPredictions(
                class_name=name, members=Packed.of_bits(own), failed=Packed.of_bits(own & wrong)
            )
            for name, own in bits.items()
        ),
    )


def _baseline(predictions):
    return Baseline(run=RECORD, class_names=("a", "b"), predictions=predictions)


def test_paired__only_shared_samples_count_whatever_their_order():
    before = _predictions([1, 2, 3, 4], "aabb", [False, True, False, False])
    now = _predictions([9, 4, 3, 2], "abba", [True, True, False, False])
    (overall, a, b), notes = pair_samples(_baseline(before), now)
    assert notes[0].startswith("3 of 4 held-out samples are in the baseline too")
    assert (a.n_samples, a.right_before, a.right_now, a.gained, a.lost) == (1, 0, 1, 1, 0)
    assert (b.n_samples, b.right_before, b.right_now, b.gained, b.lost) == (2, 2, 1, 0, 1)
    assert (overall.n_samples, overall.gained, overall.lost) == (3, 1, 1)


def test_paired__samples_with_another_label_are_left_out_and_counted():
    before, now = (
        _predictions([1, 2], "ab", [False, False]),
        _predictions([1, 2], "bb", [True, True]),
    )
    pairs, notes = pair_samples(_baseline(before), now)
    assert notes[1] == "1 of them have another label now and are left out."
    assert pairs[0].n_samples == 1


def test_paired__named_slices_are_compared_within_their_class():
    before, now = (
        _predictions([1, 2, 3], "aab", [False] * 3),
        _predictions([1, 2, 3], "aab", [True] * 3),
    )
    name = SliceName(phrase="mine", contrast="mine", score=0.0, describer="policy")
    found = FailureSlice(
        class_name="a",
        rule=IdRule(sample_ids=()),
        method="policy",
        found_on=DataUse(name="", n_samples=0, digest=""),
        names=(name,),
    )
    named = (found, np.array([False, True, True]))
    own = pair_samples(_baseline(before), now, (named,))[0][-1]
    assert (own.subject, own.kind, own.n_samples, own.lost) == ("mine", SubjectKind.NAMED, 1, 1)


def test_paired__without_a_shared_sample_nothing_can_be_said():
    with pytest.raises(DataError, match="no sample in common"):
        pair_samples(_baseline(_predictions([1], "a", [False])), _predictions([2], "a", [False]))


def test_paired__a_mere_record_cannot_be_compared():
    with pytest.raises(DataError, match="no predictions"):
        pair_samples(Baseline(run=RECORD), _predictions([2], "a", [False]))


def test_paired__samples_of_a_group_are_one_unit():
    before, now = (
        _predictions([1, 2, 3, 4], "aaab", [False] * 4),
        _predictions([1, 2, 3, 4], "aaab", [True, True, False, True]),
    )
    (overall, own, _), _ = pair_samples(_baseline(before), now, groups=np.array([7, 7, 8, 9]))
    assert (own.units.tolist(), own.nets.tolist()) == ([7], [2])
    assert (overall.units.tolist(), overall.nets.tolist()) == ([7, 9], [2, 1])
