import pytest

from weakspot.app.sweep_table import SweepPoint, SweepTable
from weakspot.core.evidence import Interval
from weakspot.core.repairs import GroupChange, GroupKind


def change(before, after, n_samples=100, kind=GroupKind.OVERALL):
    interval = Interval(low=0.0, high=1.0)
    return GroupChange(
        group="g", kind=kind, n_samples=n_samples, right_before=before, right_after=after, gained=0, lost=0,
        interval_before=interval, interval_after=interval, p_value=1.0,
    )  # fmt: skip


def point(weight, names, resolved, overall, test=90):
    return SweepPoint(
        debug_weight=weight,
        n_names=names,
        n_synthetic=10,
        held_out="confirmation half",
        held_out_wrong=change(0, resolved, 50, GroupKind.FORMERLY_WRONG),
        held_out_overall=change(90, overall),
        test_overall=change(90, test),
    )


def test_chosen__most_resolved_without_losing_more_than_one_point():
    points = (point(0.5, 3, 10, 90), point(1.0, 3, 20, 89), point(4.0, 3, 40, 88))
    assert SweepTable(points=points).chosen == points[1]


def test_chosen__the_test_split_has_no_say():
    points = (point(0.5, 3, 10, 90, test=99), point(1.0, 3, 20, 90, test=1))
    assert SweepTable(points=points).chosen == points[1]


def test_chosen__equals_go_to_less():
    points = (point(1.0, 1, 20, 90), point(0.5, 3, 20, 90), point(0.5, 2, 20, 90))
    assert SweepTable(points=points).chosen == points[2]


def test_chosen__if_all_lose_the_one_that_loses_least():
    points = (point(1.0, 1, 40, 80), point(0.5, 1, 20, 85))
    assert SweepTable(points=points).chosen == points[1]


def test_chosen__nothing_held_out_nothing_chosen():
    alone = SweepPoint(debug_weight=0.5, n_names=3, n_synthetic=1, test_overall=change(90, 95))
    assert SweepTable(points=(alone,)).chosen is None
    assert alone.test_accuracy == pytest.approx(0.95)
    assert alone.resolved != alone.resolved


def test_table__same_in_json():
    table = SweepTable(points=(point(0.5, 3, 10, 90),), notes=("a note",)).with_measured(test="test samples (2 left out)")
    assert SweepTable.model_validate_json(table.model_dump_json()) == table
    assert table.measured_on == "test samples (2 left out)"
