"""The trade-off of repairs as a picture: what strategies do to slices against what they do overall."""

from weakspot.media.charts import ChartPoint, scatter
from weakspot.report.strategies import Move, StrategyComparison


def trade_off_plot(compared: StrategyComparison) -> str:
    """Return the plot as SVG text, empty if no strategy has a place in it."""
    points = [
        ChartPoint(
            name=row.title,
            across=100 * row.overall.change,
            up=100 * row.on_slices.change,
            across_interval=_span(row.overall),
            up_interval=_span(row.on_slices),
            series="baselines" if row.is_baseline else "strategies",
            is_marked=row.is_chosen,
        )
        for row in compared.points
        if row.overall is not None and row.on_slices is not None
    ]
    if not points:
        return ""
    return scatter(
        points,
        title="What repairs do to slices, against what they do overall",
        x_label="change of overall accuracy, points",
        y_label="change on slices, points",
    )


def _span(move: Move) -> tuple[float, float]:
    return 100 * move.interval.low, 100 * move.interval.high
