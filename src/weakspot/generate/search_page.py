"""A search as a page, a contact sheet and a record."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from PIL import Image

from weakspot.core.evidence import Share
from weakspot.data.charts import LabelPanel, interval_chart, label_bars
from weakspot.data.image_grid import labelled_grid
from weakspot.generate.search.finding import CaptionFinding, ClassSearch
from weakspot.generate.search.series import CaptionTrial, Contrast
from weakspot.generate.search_run import SearchResult, phrase_of
from weakspot.report.document import figure, small_page_of
from weakspot.report.wording import count, p_value, percent
from weakspot.run.reporting import written

PAGE, DATA, SHEET = "search.html", "search.json", "search.png"
MAX_COLUMNS, CELL_SIDE = 8, 130
MAX_FINDINGS_SHOWN, MAX_CLUSTERS_SHOWN = 6, 6
BASELINE, ANY_LABEL = "without a caption", "any label"


def write_search(search: SearchResult, folder: Path) -> tuple[Path, ...]:
    """Write page, contact sheet and record into a folder; the page comes first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    result = search.record.result
    sheet = contact_sheet(result, search.images)
    contents: dict[str, bytes | Image.Image] = {
        PAGE: search_page(result, sheet, search.record.inputs).encode(),
        DATA: (search.record.model_dump_json(indent=1) + "\n").encode(),
    }
    return written(folder, contents | ({SHEET: sheet} if sheet is not None else {}))


def headline(result: ClassSearch) -> str:
    towards = f" towards {result.target}" if result.target else ""
    base = result.baseline.rate
    found = len(result.findings)
    before = f"Images of “{result.baseline.prompt}” fail{towards} in {percent(base.value)} of {base.total} cases ({_interval(base)})."
    tried = f"{count(len(result.trials), 'caption')} tried with {result.n_images:,} images"
    if not found:
        return f"{before} {tried}: none is proven to make it fail more often."
    return f"{before} {tried}: {count(found, 'caption')} proven to make it fail more often."


def finding_sentence(finding: CaptionFinding) -> str:
    trial = finding.trial
    shortened = f" (shortened from “{finding.whole.caption}”)" if finding.is_shortened else ""
    return (
        f"“{trial.caption}”{shortened}: {percent(trial.rate.value)} of {trial.rate.total} fail ({_interval(trial.rate)}), "
        f"{_ratio(trial.ratio)}; false discovery rate {p_value(trial.q_value)}."
    )


def search_page(result: ClassSearch, sheet: Image.Image | None, inputs: Mapping[str, str]) -> str:
    """Return the search as one HTML page without outside references."""
    shown = [finding.trial for finding in result.findings[:MAX_FINDINGS_SHOWN]]
    chart = [
        _chart_row(BASELINE, result.baseline),
        *(_chart_row(trial.caption, trial) for trial in shown),
    ]
    panels = [
        LabelPanel(title=title, n_images=trial.n_images, counts=trial.wrong_labels)
        for title, trial in [
            (BASELINE, result.baseline),
            *((trial.caption, trial) for trial in shown[:3]),
        ]
    ]
    alt = "Images that the classifier gets wrong, without a caption and with each caption"
    reference = result.baseline.rate.value
    return small_page_of(
        "search.html",
        f"{result.class_name}: searched for failures",
        result=result,
        first=[headline(result), *map(finding_sentence, result.findings)],
        chart=interval_chart(chart, title="Failure rates", reference=reference),
        sheet=figure(sheet, alt=alt) if sheet else "",
        bars=label_bars(panels, target=result.target),
        baseline=BASELINE,
        any_label=ANY_LABEL,
        meaning=what_it_means(result, inputs),
    )


def what_it_means(result: ClassSearch, inputs: Mapping[str, str]) -> Iterator[str]:
    made = inputs.get("generator", "the generator")
    yield (
        f"A failure: {result.criterion}. Images were made by {made}. "
        "Intervals hold at whatever time one stops; the false discovery rate is over every caption that was tried, shortened ones "
        "included (e-values, e-BH)."
    )
    yield (
        "These are generated images. They show that the classifier can fail so, not how often it does on your own images; "
        "what was not found is not proven to be absent."
    )
    for finding in result.findings[:1]:
        phrase = phrase_of(finding.trial.caption)
        yield (
            f'Next: put it to your own images with `weakspot search --class "{result.class_name}" --prove` or '
            f'`weakspot ask --class "{result.class_name}" "{phrase}"`, and generate images to train on with '
            f'`weakspot generate --class "{result.class_name}" "{phrase}" --to FOLDER`.'
        )


def contact_sheet(result: ClassSearch, images: Mapping[str, Image.Image]) -> Image.Image | None:
    """Return failing images without a caption, with each finding, and of the largest clusters; None if there is no failure."""
    rows = [(BASELINE, result.example_keys)]
    rows += [
        (finding.trial.caption, finding.example_keys)
        for finding in result.findings[:MAX_FINDINGS_SHOWN]
    ]
    rows += [
        (
            f"{count(cluster.size, 'failure')} taken for {cluster.predicted or ANY_LABEL}",
            cluster.example_keys,
        )
        for cluster in result.clusters[:MAX_CLUSTERS_SHOWN]
    ]
    filled = [
        (name, [images.get(key) for key in keys[:MAX_COLUMNS]]) for name, keys in rows if keys
    ]
    if not filled:
        return None
    width = max(len(row) for _, row in filled)
    return labelled_grid(
        [[*row, *[None] * (width - len(row))] for _, row in filled],
        row_names=[name for name, _ in filled],
        column_names=[""] * width,
        cell_side=CELL_SIDE,
    )


def _chart_row(name: str, trial: CaptionTrial) -> tuple[str, float, float, float]:
    return name, trial.rate.interval.low, trial.rate.value, trial.rate.interval.high


def _ratio_ends(contrast: Contrast) -> str:
    return (
        f"at least {contrast.low:.2g}"
        if contrast.high is None
        else f"{contrast.low:.2g} to {contrast.high:.2g}"
    )


def _interval(share: Share) -> str:
    """Return the ends of an interval; what it promises is said once, beneath."""
    return f"{100 * share.interval.low:.0f}–{100 * share.interval.high:.0f} %"


def _ratio(contrast: Contrast | None) -> str:
    if contrast is None:
        return "–"
    value = (
        "never without a caption"
        if contrast.value is None
        else f"{contrast.value:.2g} times as often"
    )
    return f"{value} ({_ratio_ends(contrast)})"
