from dataclasses import replace

from weakspot.core.slices import SliceName
from weakspot.report.findings import curve_chart, trade_off_plot
from weakspot.report.repairs import compare_strategies


def _name(contrast, curve):
    return SliceName(
        phrase=f"a {contrast} apple", contrast=contrast, score=1.0, describer="hand", curve=curve
    )


def test_curve_chart__both_ends_share_their_axes():
    chart = curve_chart(
        [_name("green", ((10, 0.0), (40, 1.0)))], [_name("red", ((20, 0.5), (40, 0.5)))]
    )
    assert (chart.fewest, chart.most) == (10, 40)
    assert [chart.points(name) for name, _ in chart.lines] == [
        "24.0,96.0 296.0,24.0",
        "160.0,60.0 296.0,60.0",
    ]
    assert [(name.contrast, is_hard) for name, is_hard in chart.lines] == [
        ("green", True),
        ("red", False),
    ]


def test_curve_chart__nothing_to_draw():
    assert curve_chart([_name("old", ((5, 0.1),))], []) is None
    assert curve_chart([], []) is None


def test_trade_off_plot__one_point_a_strategy(compared_record):
    plot = trade_off_plot(compare_strategies(compared_record.repairs))
    assert plot.startswith("<svg")
    for name in (
        "slice-balanced",
        "group-dro",
        "least confident",
        "random choice",
        "baselines",
        "strategies",
    ):
        assert f">{name}</text>" in plot
    assert "pool-budgeted" not in plot


def test_trade_off_plot__nothing_to_draw(compared_record):
    compared = compare_strategies(compared_record.repairs)
    assert trade_off_plot(replace(compared, rows=compared.rows[1:2])) == ""
