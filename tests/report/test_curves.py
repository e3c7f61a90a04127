from weakspot.core.slices import SliceName
from weakspot.report.curves import curve_chart


def _name(contrast, curve):
    return SliceName(phrase=f"a {contrast} apple", contrast=contrast, score=1.0, describer="hand", curve=curve)


def test_curve_chart__both_ends_share_their_axes():
    chart = curve_chart([_name("green", ((10, 0.0), (40, 1.0)))], [_name("red", ((20, 0.5), (40, 0.5)))])
    assert (chart.fewest, chart.most) == (10, 40)
    assert [line.points for line in chart.lines] == ["24.0,96.0 296.0,24.0", "160.0,60.0 296.0,60.0"]
    assert [(line.label, line.is_hard) for line in chart.lines] == [("green", True), ("red", False)]


def test_curve_chart__first_name_that_has_a_curve():
    chart = curve_chart([_name("old", ()), _name("green", ((5, 0.1), (9, 0.2)))], [])
    assert [line.label for line in chart.lines] == ["green"]


def test_curve_chart__nothing_to_draw():
    assert curve_chart([_name("old", ((5, 0.1),))], []) is None
    assert curve_chart([], []) is None
