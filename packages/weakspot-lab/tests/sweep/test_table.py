import csv
import io
import json
from xml.etree import ElementTree

import pytest

from weakspot.core.evidence import Interval
from weakspot.core.repairs import GroupChange, GroupKind
from weakspot_lab.sweep.sweeping import SweepPoint, SweepTable, sweep_files, trade_off_plots


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
    table = SweepTable(points=(point(0.5, 3, 10, 90),), notes=("a note",)).with_measured(
        test="test samples (2 left out)"
    )
    assert SweepTable.model_validate_json(table.model_dump_json()) == table
    assert table.measured_on == "test samples (2 left out)"


SVG = "{http://www.w3.org/2000/svg}"


def _change(before, after, n_samples, kind):
    interval = Interval(low=0.1, high=0.9)
    return GroupChange(
        group="g", kind=kind, n_samples=n_samples, right_before=before, right_after=after, gained=0, lost=0,
        interval_before=interval, interval_after=interval, p_value=1.0,
    )  # fmt: skip


def _point(weight, names, resolved):
    return SweepPoint(
        debug_weight=weight,
        n_names=names,
        n_synthetic=5 * names,
        held_out="validation, <confirmation half>",
        held_out_wrong=_change(0, resolved, 40, GroupKind.FORMERLY_WRONG),
        held_out_overall=_change(160, 160, 200, GroupKind.OVERALL),
        test_wrong=_change(0, 8, 32, GroupKind.FORMERLY_WRONG),
        test_overall=_change(168, 170, 200, GroupKind.OVERALL),
    )


TABLE = SweepTable(
    points=(_point(0.5, 1, 4), _point(1.0, 1, 10), _point(0.5, 3, 12), _point(1.0, 3, 20)),
    measured_on="test samples",
    notes=("Nothing <fits> five names.",),
)


def test_sweep_files__csv_has_a_row_a_setting():
    rows = list(csv.DictReader(io.StringIO(sweep_files(TABLE)["sweep.csv"].decode())))
    assert [(row["debug_weight"], row["n_names"], row["is_chosen"]) for row in rows] == [
        ("0.5", "1", "false"),
        ("1.0", "1", "false"),
        ("0.5", "3", "false"),
        ("1.0", "3", "true"),
    ]
    # 20 of 40 held-out failures, 8 of 32 test failures, 170 of 200 test samples.
    last = rows[-1]
    assert (last["held_out_failures"], last["held_out_resolved"], last["held_out_accuracy"]) == (
        "40",
        "0.5",
        "0.8",
    )
    assert (last["test_resolved"], last["test_accuracy_before"], last["test_accuracy"]) == (
        "0.25",
        "0.84",
        "0.85",
    )


def test_sweep_files__json_says_what_was_chosen_on_what():
    found = json.loads(sweep_files(TABLE)["sweep.json"])
    assert found["chosen"] == {"debug_weight": 1.0, "n_names": 3}
    assert found["chosen_on"] == "validation, <confirmation half>"
    assert found["measured_on"] == "test samples"
    assert len(found["points"]) == 4


def test_sweep_files__the_page_is_whole_and_escaped():
    page = sweep_files(TABLE)["sweep.html"].decode()
    assert (
        "weight 1 and 3 names a class, resolves 50.0 % of the failures in “validation, &lt;confirmation half&gt;”"
        in page
    )
    assert "the test split (“test samples”) had no say and gives 85.0 % accuracy" in page
    assert "Nothing &lt;fits&gt; five names." in page
    assert page.count("<svg") == 3
    assert page.count('<tr class="chosen">') == 1
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_trade_off_plots__one_point_a_setting_and_a_ring_on_the_chosen():
    drawing = ElementTree.fromstring(trade_off_plots(TABLE)["trade-off"])
    circles = list(drawing.iter(f"{SVG}circle"))
    assert sum(node.get("class") == "ring" for node in circles) == 1
    assert sum(node.get("class") is None for node in circles) == 4
    assert sum(node.get("class") == "bar" for node in drawing.iter(f"{SVG}line")) == 2
    lines = list(ElementTree.fromstring(trade_off_plots(TABLE)["resolved"]).iter(f"{SVG}polyline"))
    assert len(lines) == 2


def test_sweep_files__without_held_out_samples_nothing_is_marked():
    bare = SweepTable(points=(SweepPoint(debug_weight=0.5, n_names=1, n_synthetic=3),))
    files = sweep_files(bare)
    assert "the test split must not choose" in files["sweep.html"].decode()
    assert json.loads(files["sweep.json"])["chosen"] is None
    assert files["sweep.csv"].decode().splitlines()[1] == "0.5,1,3,,,,,,,,,,,,false"
