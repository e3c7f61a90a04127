import csv
import io
import json
from xml.etree import ElementTree

from weakspot.app.sweep_pages import sweep_files, trade_off_plots
from weakspot.app.sweep_table import SweepPoint, SweepTable
from weakspot.core.evidence import Interval
from weakspot.core.repairs import GroupChange, GroupKind

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
    assert (last["held_out_failures"], last["held_out_resolved"], last["held_out_accuracy"]) == ("40", "0.5", "0.8")
    assert (last["test_resolved"], last["test_accuracy_before"], last["test_accuracy"]) == ("0.25", "0.84", "0.85")


def test_sweep_files__json_says_what_was_chosen_on_what():
    found = json.loads(sweep_files(TABLE)["sweep.json"])
    assert found["chosen"] == {"debug_weight": 1.0, "n_names": 3}
    assert found["chosen_on"] == "validation, <confirmation half>"
    assert found["measured_on"] == "test samples"
    assert len(found["points"]) == 4


def test_sweep_files__the_page_is_whole_and_escaped():
    page = sweep_files(TABLE)["sweep.html"].decode()
    assert "weight 1 and 3 names a class, resolves 50.0 % of the failures in “validation, &lt;confirmation half&gt;”" in page
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
    assert files["sweep.csv"].decode().splitlines()[1] == "0.5,1,3,,,,,,,,,false"
