"""A search for failures of one class with the generator, captioner and classifier of a project, and its page, sheet and record."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from PIL import Image
from pydantic import JsonValue

from weakspot.core.evidence import Share
from weakspot.core.record import Record
from weakspot.core.roles import Captioner
from weakspot.data.charts import LabelPanel, interval_chart, label_bars
from weakspot.data.image_grid import labelled_grid
from weakspot.generate.project_generator import GenerationTools
from weakspot.generate.sampling import StoredSampler
from weakspot.generate.search.finding import (
    CaptionFinding,
    CaptionSearch,
    ClassSearch,
    search_failures,
    shorter_wordings,
)
from weakspot.generate.search.series import CaptionTrial, Contrast
from weakspot.report.document import figure, small_page_of
from weakspot.report.wording import count, p_value, percent
from weakspot.run.assistants import assistant_parts
from weakspot.run.reporting import written
from weakspot.run.stage_clock import command_line, library_versions

N_IMAGES = 12
_CARRIED = re.compile(
    r"^(it is|there is|there are|the background is)\s+(?:a |an |the )?(.+)$", re.IGNORECASE
)

PAGE, DATA, SHEET = "search.html", "search.json", "search.png"
MAX_COLUMNS, CELL_SIDE = 8, 130
MAX_FINDINGS_SHOWN, MAX_CLUSTERS_SHOWN = 6, 6
BASELINE, ANY_LABEL = "without a caption", "any label"


class SearchRecord(Record):
    """A search with everything that it depends on.

    Args:
        command: what was asked for, as typed.
        started: ISO 8601, UTC.
        finished: the same.
        seed: of the search.
        settings: of the project.
        versions: of libraries.
        inputs: which generator, classifier, embedder and captioner.
        tally: images kept, and rejected by each quality check, over the whole generating folder of this generator.
        result: what was found.
    """

    command: str
    started: str
    finished: str
    seed: int
    settings: dict[str, JsonValue]
    versions: dict[str, str]
    inputs: dict[str, str]
    tally: dict[str, int]
    result: ClassSearch


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """What a person asks for.

    Args:
        class_name: whose failures are searched for.
        target: count only failures towards this class.
        captions: a person's own captions, measured first.
        until_target_failures: go on with a promising caption until so many failures that count; 0 to stop when it is proven.
    """

    class_name: str
    target: str = ""
    captions: tuple[str, ...] = ()
    until_target_failures: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchResult:
    """A search and the images that show what it found, by content hash."""

    record: SearchRecord
    images: Mapping[str, Image.Image]


def search_class(
    tools: GenerationTools, request: SearchRequest, captioner: Captioner | None = None
) -> SearchResult:
    """Search; images that were generated before are not generated again, so that an interrupted search goes on where it was.

    Args:
        tools: the project, and who generates.
        request: what is searched for.
        captioner: a ready captioner, instead of the configured one.

    Raises:
        ConfigError: if there is no classifier or generator, or the cost is not agreed to.
        DataError: if the class or the target does not exist.
        RefusedPromptError: if the generator cannot generate the class at all.
    """
    started, settings = _now(), tools.settings
    tools.prepared.samples.dataset.class_code(request.class_name)
    image_generator = tools.image_generator(purpose="search")
    tools.confirm_cost(image_generator, settings.search.budget)
    assistants = assistant_parts(settings, tools.store.root)
    with tools.store.writing():
        predictions = tools.predictions(image_generator)
        sampler = StoredSampler(
            predictions=predictions,
            seed=settings.seed,
            image_generator=image_generator,
            least_parents=settings.generator.least_parents,
            captioner=captioner or assistants.captioner,
            embed_texts_by=tools.prepared.assistants.embed_texts,
            class_name=request.class_name,
            folder=tools.store.generated,
        )
        search = CaptionSearch(
            class_name=request.class_name,
            target=request.target or None,
            criterion=tools.criterion,
            parents=settings.failure.parents,
            settings=settings.search,
            until_target_failures=request.until_target_failures,
            own_captions=request.captions,
            reword=None
            if assistants.language is None
            else partial(
                shorter_wordings,
                language=assistants.language,
                class_name=request.class_name,
                seed=settings.seed,
            ),
        )
        try:
            result = search_failures(sampler, search, tools.progress)
        finally:
            predictions.flush()
        images = {key: predictions.image(key) for key in _shown_keys(result)}
    made_by = {"generator": image_generator.generator_id, "captions": result.caption_source}
    record = SearchRecord(
        command=command_line(),
        started=started,
        finished=_now(),
        seed=settings.seed,
        settings=settings.model_dump(mode="json"),
        versions=library_versions(),
        inputs=tools.prepared.inputs | made_by,
        tally=predictions.tally,
        result=result,
    )
    return SearchResult(record=record, images=images)


def phrase_of(caption: str) -> str:
    """Return a caption of short sentences as a phrase that a person would put to real images.

    >>> phrase_of("it is green. the background is striped.")
    'green, striped background'
    """
    return ", ".join(_said(sentence) for sentence in caption.split(".") if sentence.strip())


def _said(sentence: str) -> str:
    carried = _CARRIED.match(sentence.strip())
    if carried is None:
        return sentence.strip()
    return f"{carried[2]} background" if "background" in carried[1].lower() else carried[2]


def _shown_keys(result: ClassSearch) -> list[str]:
    shown = [result.example_keys, *(finding.example_keys for finding in result.findings)]
    shown += [cluster.example_keys for cluster in result.clusters]
    return list(dict.fromkeys(key for keys in shown for key in keys[:N_IMAGES]))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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
