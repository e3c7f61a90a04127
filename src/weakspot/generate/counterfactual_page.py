"""A series of counterfactual images as a page, a contact sheet and a record."""

from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageOps

from weakspot.data.charts import LabelPanel, interval_chart, label_bars
from weakspot.data.image_grid import labelled_grid
from weakspot.generate.counterfactuals import (
    CounterfactualRate,
    CounterfactualResult,
    CounterfactualSeries,
    ShownImage,
)
from weakspot.report.document import figure, small_page_of
from weakspot.report.repairs import p_words
from weakspot.report.wording import CERTAIN, count, interval, percent, points
from weakspot.run.reporting import written

PAGE, DATA, SHEET = "counterfactual.html", "counterfactual.json", "counterfactual.png"
MAX_COLUMNS = 10
CELL_SIDE = 120
FRAME = 4
WRONG, RIGHT = (196, 42, 42), (64, 140, 84)
UNCHANGED = "unchanged"


def write_counterfactuals(result: CounterfactualResult, folder: Path) -> tuple[Path, ...]:
    """Write page, contact sheet and record into a folder; the page comes first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    sheet = contact_sheet(result)
    contents: dict[str, bytes | Image.Image] = {
        PAGE: counterfactual_page(result.series, sheet).encode(),
        DATA: (result.series.model_dump_json(indent=2) + "\n").encode(),
        SHEET: sheet,
    }
    return written(folder, contents)


def contact_sheet(result: CounterfactualResult) -> Image.Image:
    """Return the first images of every caption, one row a caption, one column a seed; failures have a red frame."""
    usable = [place for place, one in enumerate(result.rows[0]) if one.image is not None][
        :MAX_COLUMNS
    ] or [0]
    rows = [[row[place] for place in usable] for row in result.rows]
    rates = (result.series.baseline, *result.series.rates)
    return labelled_grid(
        [[_framed(one) for one in row] for row in rows],
        row_names=[_row_name(rate) for rate in rates],
        column_names=[""] * max(map(len, rows)),
        cell_side=CELL_SIDE,
        captions=[[one.answer for one in row] for row in rows],
    )


def counterfactual_page(series: CounterfactualSeries, sheet: Image.Image) -> str:
    """Return the series as one HTML page without outside references."""
    measured = [rate for rate in (series.baseline, *series.rates) if rate.share.total]
    chart = [
        (
            rate.caption or UNCHANGED,
            rate.share.interval.low,
            rate.share.value,
            rate.share.interval.high,
        )
        for rate in measured
    ]
    panels = [
        LabelPanel(
            title=rate.caption or UNCHANGED, n_images=rate.share.total, counts=rate.wrong_labels
        )
        for rate in measured
    ]
    alt = "The first images of every caption; those that the classifier gets wrong have a red frame"
    reference = series.baseline.share.value
    return small_page_of(
        "counterfactual.html",
        f"{series.class_name}: what if?",
        series=series,
        explanation=explanation(series),
        unchanged=UNCHANGED,
        certain=CERTAIN,
        chart=interval_chart(chart, title="Failure rates", reference=reference),
        sheet=figure(sheet, alt=alt),
        bars=label_bars(panels[:4]),
    )


def sentence(rate: CounterfactualRate) -> str:
    if rate.note and not rate.pairs:
        return f"“{rate.caption}” cannot be generated: {rate.note}"
    if rate.change_interval is None or not rate.pairs:
        return f"“{rate.caption}”: no image passed the quality check."
    sure = "" if rate.p_after_looks <= CERTAIN else ", which may be chance"
    return (
        f"“{rate.caption}”: {percent(rate.share.value)} fail ({interval(rate.share.interval)}), {points(rate.change)} on "
        f"{count(rate.pairs, 'pair')} ({points(rate.change_interval.low)} to {points(rate.change_interval.high)}; "
        f"{p_words(rate.p_after_looks)}{sure}).{f' {rate.note}' if rate.note else ''}"
    )


def explanation(series: CounterfactualSeries) -> Iterator[str]:
    unchanged = series.baseline.share
    yield (
        f"{count(series.n_each, 'image')} of {series.class_name} by {series.generator_id}, changed as each caption says; "
        f"unchanged, {percent(unchanged.value)} of {unchanged.total} fail ({interval(unchanged.interval)}). "
        f"A failure: {series.criterion}."
    )
    yield (
        "The same place in every row has the same seed, so that rows are compared pair by pair; every object counts once. "
        "Intervals and p hold however often more images are asked for, "
        f"and p allows for {count(series.n_looks, 'caption')} ever tried here. "
        "These are generated images: what they show is a reason to look for real ones, not a proof about them."
    )


def _row_name(rate: CounterfactualRate) -> str:
    share = (
        f"{percent(rate.share.value)} of {rate.share.total} fail"
        if rate.share.total
        else "not generated"
    )
    return f"{rate.caption or UNCHANGED}: {share}"


def _framed(one: ShownImage) -> Image.Image | None:
    if one.image is None:
        return None
    inner = ImageOps.contain(
        one.image.convert("RGB"), (CELL_SIDE - 2 * FRAME, CELL_SIDE - 2 * FRAME)
    )
    return ImageOps.expand(inner, border=FRAME, fill=WRONG if one.fails else RIGHT)
