from dataclasses import replace

from weakspot.report.strategies import compare_strategies
from weakspot.report.strategy_plot import trade_off_plot


def test_trade_off_plot__one_point_a_strategy(compared_record):
    plot = trade_off_plot(compare_strategies(compared_record.repairs))
    assert plot.startswith("<svg")
    for name in ("slice-balanced", "group-dro", "least confident", "random choice", "baselines", "strategies"):
        assert f">{name}</text>" in plot
    assert "pool-budgeted" not in plot


def test_trade_off_plot__nothing_to_draw(compared_record):
    compared = compare_strategies(compared_record.repairs)
    assert trade_off_plot(replace(compared, rows=compared.rows[1:2])) == ""
