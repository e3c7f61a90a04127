from repair_results.figures import Average, Figures
from repair_results.table import change_table, markdown, notes, percent, points, with_error


def _one(unit, arm, before, after, note=""):
    values = {"slice before": before, "slice after": after, "slice change": after - before}
    return Figures(unit=unit, part="true slice", arm=arm, values={} if note else values, note=note)


def test_numbers__as_people_read_them():
    found = Average(mean=0.125, low=-0.01, high=0.26, error=0.03, n_units=4)
    assert points(found) == "+12.5 (-1.0 to +26.0)"
    assert with_error(found) == "12.5 ± 3.0"
    assert percent(0.5) == "50.0"
    assert (points(None), percent(None), with_error(None)) == ("", "", "")


def test_with_error__one_unit_has_no_error():
    assert with_error(Average(mean=0.5, low=0.5, high=0.5, error=float("nan"), n_units=1)) == "50.0"


def test_markdown__rows_and_columns():
    assert markdown(["arm", "n"], [["plain", "3"]]) == "| arm | n |\n|---|---:|\n| plain | 3 |"


def test_change_table__means_over_units():
    figures = [
        _one("a", "plain", 0.5, 0.5),
        _one("b", "plain", 0.5, 0.7),
        _one("a", "worst-slice", 0.5, 0.9, note="no"),
    ]
    text = change_table(figures, "true slice", {"slice change": "slice, points"})
    assert "| plain | 2 | 50.0 | 60.0 | +10.0 (+0.0 to +20.0) |" in text
    assert "worst-slice" not in text


def test_notes__each_reason_once():
    figures = [_one(unit, "pool-random", 0, 0, note="needs a pool") for unit in "ab"]
    assert notes(figures, "true slice") == "- pool-random: needs a pool (2 of the units)"
    assert notes(figures, "other") == ""
