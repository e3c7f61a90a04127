import pytest

from weakspot.core.evidence import Interval
from weakspot.core.repairs import GroupChange, GroupKind
from weakspot.core.statistics import mcnemar_p
from weakspot.report.repairs import Move, compare_strategies


def _change(gained, lost, n_samples):
    return GroupChange(
        group="g", kind=GroupKind.SLICE, n_samples=n_samples, right_before=lost, right_after=gained, gained=gained, lost=lost,
        interval_before=Interval(low=0.0, high=1.0), interval_after=Interval(low=0.0, high=1.0), p_value=mcnemar_p(gained, lost),
    )  # fmt: skip


def test_move__over_several_groups():
    move = Move.over([_change(5, 0, 10), _change(1, 0, 10)])
    assert (move.gained, move.lost, move.n_samples) == (6, 0, 20)
    assert move.change == pytest.approx(0.3)
    # Means of (0.0545, 0.7788) and (-0.1956, 0.3623); twice the p-value of 5 gained and none lost.
    assert (move.interval.low, move.interval.high) == pytest.approx((-0.0706, 0.5706), abs=5e-4)
    assert move.p_value == pytest.approx(2 * 0.0625)
    assert not move.is_certain
    assert Move.over([_change(0, 0, 0)]) is None
    assert Move.over([]) is None


def test_move__over_one_group():
    move = Move.over([_change(6, 0, 20), _change(0, 0, 0)])
    assert (move.interval.low, move.interval.high) == pytest.approx((0.048, 0.497), abs=5e-4)
    assert move.p_value == pytest.approx(0.03125)
    assert move.is_certain


def test_move__a_group_that_moved_the_other_way_proves_nothing():
    move = Move.over([_change(0, 8, 20), _change(9, 2, 40)])
    assert (move.gained, move.lost) == (9, 10)
    assert move.p_value == pytest.approx(2 * 0.0078125)
    assert not move.is_certain
    even = Move.over([_change(0, 8, 20), _change(8, 0, 40)])
    assert (even.change, even.p_value) == (0.0, 1.0)


def test_compare_strategies__chosen_first_baselines_last(compared_record):
    compared = compare_strategies(compared_record.repairs)
    assert [row.strategy for row in compared.rows] == [
        "slice-balanced",
        "pool-budgeted",
        "group-dro",
        "confidence",
        "random",
    ]
    assert [row.is_baseline for row in compared.rows] == [False, False, True, True, True]
    chosen = compared.rows[0]
    assert chosen.is_chosen
    assert chosen.on_slices.change == pytest.approx(9 / 15)
    assert chosen.on_rest is None
    assert chosen.overall.change == pytest.approx(6 / 92)
    assert chosen.rival[0] == "confidence"
    assert (chosen.got_worse, chosen.n_lower) == ((), 1)
    assert (compared.measured_on, compared.n_samples, compared.n_slices) == ("test split", 92, 1)


def test_compare_strategies__one_prediction_is_no_comparison(record):
    assert compare_strategies(record.repairs) is None
    assert compare_strategies(()) is None


def test_compare_strategies__references_are_seen_but_not_rivals(compared_record):
    first, *others = compared_record.repairs
    best = next(arm for arm in first.arms if arm.arm == "confidence")
    words = best.model_copy(update={"arm": "zero-shot-classes", "is_reference": True})
    only_words = first.model_copy(update={"arms": (first.arms[0], words)})
    compared = compare_strategies([only_words, *others])
    assert compared.rows[0].rival is None
    assert "zero-shot-classes" in [row.strategy for row in compared.rows]


def test_compare_strategies__certainty_allows_for_all_arms(compared_record):
    compared = compare_strategies(compared_record.repairs)
    measured = [row for row in compared.rows if row.on_slices is not None]
    alone = [
        Move.over([one for one in row.arm.changes if one.kind is GroupKind.SLICE]).p_value
        for row in measured
    ]
    together = [row.on_slices.p_value for row in measured]
    assert min(together) == pytest.approx(min(1.0, len(measured) * min(alone)))
    assert len(measured) > 1


def test_move__groups_of_samples_count_as_they_were_measured():
    told = _change(6, 0, 20).model_copy(
        update={
            "n_groups": 4,
            "p_value": 0.5,
            "interval_of_groups": Interval(low=-0.2, high=0.7),
        }
    )
    move = Move.over([told])
    assert (move.interval.low, move.interval.high) == pytest.approx((-0.2, 0.7))
    assert move.p_value == 0.5
    assert not move.is_certain
