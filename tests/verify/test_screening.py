import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import ColumnRule, PredictionRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.verify import screening
from weakspot.verify.screening import screened

TOP_1 = FailureCriterion()


@pytest.fixture
def samples():
    """Forty apples of which the first ten fail; columns mark nine, eight, five or none of the failures."""
    places = np.arange(40)
    columns = {
        "nine": (places < 9).tolist(),
        "nine_and_one": ((places < 9) | (places == 20)).tolist(),
        "five": (places < 5).tolist(),
        "others": (places >= 30).tolist(),
    }
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 40,
        predictions=(places < 10).astype(np.int64),
        metadata=columns,
    )
    return SampleSet(dataset=dataset, rows=places)


def _slice(column, method="attributes", class_name="apple"):
    rule = ColumnRule(column=column, values=(True,))
    use = DataUse(name="discovery", n_samples=40, digest="d")
    return FailureSlice(class_name=class_name, rule=rule, method=method, found_on=use)


def _screened(slices, samples, **limits):
    return screened(slices, samples, TOP_1, **{"largest_p": 0.05, "most": 10, **limits})


def test_screened__what_does_not_stand_out_is_dropped(samples):
    slices = [_slice("others"), _slice("five"), _slice("nine")]
    screen = _screened(slices, samples)
    assert screen.kept == (slices[1], slices[2])
    assert (screen.n_dropped, screen.n_repeated) == (1, 0)


def test_screened__the_best_are_kept_in_the_order_given(samples):
    slices = [_slice("five"), _slice("nine")]
    assert _screened(slices, samples, most=1).kept == (slices[1],)
    assert _screened(slices, samples, most=2).kept == tuple(slices)


def test_screened__near_repetitions_of_one_method_are_dropped(samples):
    # Nine of ten members in common: only the better one stays.
    slices = [_slice("nine_and_one"), _slice("nine"), _slice("nine")]
    screen = _screened(slices, samples)
    assert screen.kept == (slices[1],)
    assert screen.n_repeated == 2
    assert _screened(slices[:2], samples, same_at=0.95).n_repeated == 0


def test_screened__repetitions_by_other_methods_are_kept(samples):
    slices = [_slice("nine"), _slice("nine", method="keywords")]
    assert _screened(slices, samples).kept == tuple(slices)


def test_screened__methods_take_turns(samples):
    # By p-value alone both places would go to the first method.
    slices = [
        _slice("nine", method="fitted"),
        _slice("nine_and_one", method="fitted"),
        _slice("five", method="honest"),
    ]
    assert _screened(slices, samples, most=2, same_at=1.0).kept == (slices[0], slices[2])


def test_screened__what_can_never_be_tested_is_dropped(samples):
    by_loss = _slice("nine").model_copy(
        update={"rule": PredictionRule(measure="loss", threshold=0.1)}
    )
    assert _screened([by_loss, _slice("nine", class_name="pear")], samples).kept == ()
    assert _screened([_slice("nine")], samples.only(samples.rows[:0])).kept == ()
    assert _screened([], samples).n_dropped == 0


def test_screened__what_stands_out_by_far_is_not_cut(monkeypatch):
    places = np.arange(400)
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 400,
        predictions=(places < 60).astype(np.int64),
        metadata={f"from{start}": (places >= start) & (places < start + 20) for start in (0, 20)}
        | {"weak": (places % 60 == 0).tolist()},
    )
    many = SampleSet(dataset=dataset, rows=places)
    slices = [_slice("weak"), _slice("from0"), _slice("from20")]
    # Half of the places, rounded down, is left to the weak one.
    assert len(_screened(slices, many, most=1, largest_p=1.0).kept) == 1
    assert slices[0] in _screened(slices, many, most=2, largest_p=1.0).kept
    monkeypatch.setattr(screening, "MOST_OTHERS", 0)
    assert _screened(slices, many, most=3, largest_p=1.0).kept == (slices[1], slices[2])
