"""A person's captions, measured at once: the same images with one thing changed, and how much more often the classifier fails on them."""

import itertools
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from pydantic import Field

from weakspot.core.arrays import BoolArray, child_seed
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError, RefusedPromptError
from weakspot.core.evidence import Interval, Share
from weakspot.core.failures import FailureCriterion, describe_criterion
from weakspot.core.generated import GenerationRequest, rejections
from weakspot.core.record import Record
from weakspot.core.roles import HasControls, ImageGenerator
from weakspot.data.charts import LabelPanel, interval_chart, label_bars
from weakspot.data.image_grid import labelled_grid
from weakspot.generate.caption_log import note_captions
from weakspot.generate.parents import ParentSeeds, parent_seeds
from weakspot.generate.project_generator import GeneratedPredictions, GenerationTools
from weakspot.generate.search.sequential import (
    change_p,
    first_pairs,
    rate_interval,
    sequential_change_interval,
)
from weakspot.report.document import figure, small_page_of
from weakspot.report.repairs import p_words
from weakspot.report.wording import CERTAIN, count, interval, percent, points
from weakspot.run.reporting import written
from weakspot.words.captions import Caption, noun_of, plain_caption

_PREPOSITIONS = re.compile(
    r"(on|in|at|by|under|over|behind|among|with|near|beside|inside|outside|against|between|upon|above|below|without)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"^(it|its|there|the|a|an)\b.*\b(is|are|has|have|lies|sits|stands)\b", re.IGNORECASE
)

PAGE, DATA, SHEET = "counterfactual.html", "counterfactual.json", "counterfactual.png"
MAX_COLUMNS = 10
CELL_SIDE = 120
FRAME = 4
WRONG, RIGHT = (196, 42, 42), (64, 140, 84)
UNCHANGED = "unchanged"


class CounterfactualRate(Record):
    """How often the classifier fails on images of one caption, beside the same images without it.

    Args:
        caption: what was asked for; empty for the unchanged images.
        prompt: the words the images were made from.
        share: failures among the pairs.
        pairs: images that passed the quality check with and without the change. An unchanged image that is a near-duplicate of another
            shows the same thing again, and does not count twice.
        gained: pairs that fail only with it.
        lost: pairs that fail only without it.
        change: of the failure rate over the pairs.
        parents: different objects among the pairs; each counts once in intervals and p-values.
        change_interval: of that; it holds however often more images are asked for.
        p_value: two-sided, that there is no change; it holds however often more images are asked for.
        p_after_looks: multiplied by what this caption costs among all that were ever put to this class with this generator.
        wrong_labels: what failures were taken for.
        rejected: images that a quality check rejected, by quality check.
        note: why there is no figure, if there is none.
    """

    caption: str
    prompt: str
    share: Share
    pairs: int = 0
    gained: int = 0
    lost: int = 0
    change: float = 0.0
    parents: int = 0
    change_interval: Interval | None = None
    p_value: float = 1.0
    p_after_looks: float = 1.0
    wrong_labels: dict[str, int] = Field(default_factory=dict)
    rejected: dict[str, int] = Field(default_factory=dict)
    note: str = ""


class CounterfactualSeries(Record):
    """A series of captions on the same images.

    Args:
        class_name: what the images show.
        criterion: what counts as a failure, in words.
        generator_id: who made the images.
        classifier_id: who was asked about them.
        seed: of the series.
        n_each: images asked for, for every caption.
        n_looks: different captions that were ever put to this class with this generator.
        baseline: the unchanged images.
        rates: one entry a caption, in the request given.
        notes: what to know about it.
    """

    class_name: str
    criterion: str
    generator_id: str
    classifier_id: str
    seed: int
    n_each: int
    n_looks: int
    baseline: CounterfactualRate
    rates: tuple[CounterfactualRate, ...]
    notes: tuple[str, ...] = ()


def counterfactual_prompt(class_name: str, words: str) -> str:
    """Return the prompt that shows a class as some words say: a place, a property, a sentence, or a whole prompt.

    >>> [counterfactual_prompt("apple", words) for words in ("on grass", "green", "it is dark", "an apple in a box")]
    ['a photo of an apple on grass', 'a photo of a green apple', 'a photo of an apple. it is dark.', 'an apple in a box']
    """
    plain, said = plain_caption(class_name), words.strip().rstrip(".")
    if not said:
        return plain.phrase
    if re.search(rf"\b{re.escape(noun_of(class_name))}", said, re.IGNORECASE):
        return said
    if _PREPOSITIONS.match(said):
        return replace(plain, place=said).phrase
    if _SENTENCE.match(said):
        return f"{plain.phrase}. {said}."
    return Caption(noun=plain.noun, adjective=said).phrase


def paired_rate(
    caption: str,
    prompt: str,
    before: Sequence[bool | None],
    after: Sequence[bool | None],
    *,
    price: float = 1.0,
    parents: Sequence[Hashable] | None = None,
) -> CounterfactualRate:
    """Return the rate of a caption beside the same images without it.

    Args:
        caption: what was changed.
        prompt: the words.
        before: by place of the series whether the unchanged image fails; None where there is none.
        after: the same with the change.
        price: what the p-value is multiplied by for all captions that were ever asked about.
        parents: the object at every place; None if each shows another.
    """
    first, second = _columns(first_pairs(before, after))
    own_first, own_second = _columns(first_pairs(before, after, parents))
    gained, lost = int((second & ~first).sum()), int((first & ~second).sum())
    own_gained, own_lost = (
        int((own_second & ~own_first).sum()),
        int((own_first & ~own_second).sum()),
    )
    change = (gained - lost) / len(first) if len(first) else 0.0
    low, high = sequential_change_interval(own_gained, own_lost, len(own_first))
    p_value = change_p(own_gained, own_lost, len(own_first))
    return CounterfactualRate(
        caption=caption,
        prompt=prompt,
        share=_share(second, own_second),
        pairs=len(first),
        parents=len(own_first),
        gained=gained,
        lost=lost,
        change=change,
        change_interval=Interval(low=min(low, change), high=max(high, change)),
        p_value=p_value,
        p_after_looks=min(1.0, p_value * price),
    )


def _share(failed: BoolArray, own_failed: BoolArray) -> Share:
    """Return the share of failures with an interval that counts every object once and holds at all times."""
    found = Share.of(int(failed.sum()), len(failed))
    low, high = rate_interval(int(own_failed.sum()), len(own_failed))
    interval = Interval(low=min(low, found.value), high=max(high, found.value))
    return found.model_copy(update={"interval": interval}) if len(failed) else found


def _columns(pairs: Sequence[tuple[bool, bool]]) -> tuple[BoolArray, BoolArray]:
    table = np.array(pairs, dtype=np.bool_).reshape(len(pairs), 2)
    return table[:, 0], table[:, 1]


MAX_CONTROL = 0.1
"""By how much the control of a caption may raise the failure rate; beyond that nothing is claimed of the caption."""


@dataclass(frozen=True, kw_only=True)
class CounterfactualRequest:
    """What is asked.

    Args:
        class_name: what the images show.
        captions: places ("on grass"), properties ("green"), sentences ("it is dark.") or whole prompts.
        n_each: images for every caption.
    """

    class_name: str
    captions: tuple[str, ...]
    n_each: int = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class ShownImage:
    """One place of a series: the image, if any, what the classifier says of it, its content hash, and the object it shows."""

    image: Image.Image | None
    answer: str
    fails: bool | None
    key: str = ""
    parent: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class CounterfactualResult:
    """A series and its images by row: the unchanged ones first, then one row a caption."""

    series: CounterfactualSeries
    rows: tuple[tuple[ShownImage, ...], ...]


def measure_counterfactuals(
    tools: GenerationTools, request: CounterfactualRequest
) -> CounterfactualResult:
    """Generate, classify and compare; what was generated before is not generated again.

    Raises:
        ConfigError: if nothing is asked for.
        DataError: if there is no such class.
        RefusedPromptError: if the generator can generate not one of the captions.
    """
    captions = tuple(
        dict.fromkeys(caption.strip() for caption in request.captions if caption.strip())
    )
    if not captions or request.n_each < 1:
        raise ConfigError(
            "There is nothing to measure.",
            given={"captions": list(request.captions), "n_each": request.n_each},
            fix='Name what is changed, for example "on grass" or "it is dark".',
        )
    name, seed, dataset = request.class_name, tools.settings.seed, tools.prepared.samples.dataset
    dataset.class_code(name)
    image_generator = tools.image_generator()
    classifier_id = tools.prepared.summary.classifier_id
    prompts = {caption: counterfactual_prompt(name, caption) for caption in ("", *captions)}
    with tools.store.writing():
        controls = _controls(image_generator, prompts)
        prompts |= {words: counterfactual_prompt(name, words) for words in controls.values()}
        tools.confirm_cost(image_generator, request.n_each * len(prompts))
        places = (
            child_seed(seed, "counterfactual", name, str(place)) for place in itertools.count()
        )
        chosen = parent_seeds(
            image_generator,
            list(prompts.values()),
            places,
            n=request.n_each,
            least=tools.settings.generator.least_parents,
            class_name=name,
        )
        work = _Work(
            predictions=tools.predictions(image_generator, progress=tools.progress),
            criterion=tools.criterion,
            class_name=name,
            chosen=chosen,
        )
        rows = work.rows(prompts)
        prices, n_looks = note_captions(
            tools.store,
            captions,
            generator_id=image_generator.generator_id,
            class_name=name,
            classifier_id=classifier_id,
            seed=seed,
        )
    parents = _parents(rows[""], dataset)
    rates = [
        _rate(caption, prompts[caption], (rows[""], row), parents, prices.get(caption, 1.0))
        for caption, row in rows.items()
    ]
    rates = _against_controls(rates, controls)
    series = CounterfactualSeries(
        class_name=name,
        criterion=describe_criterion(tools.criterion),
        generator_id=image_generator.generator_id,
        classifier_id=classifier_id,
        seed=seed,
        n_each=request.n_each,
        n_looks=n_looks,
        baseline=rates[0],
        rates=tuple(rates[1:]),
        notes=_notes(rates[0], len(chosen.seeds), request.n_each),
    )
    return CounterfactualResult(series=series, rows=tuple(row.shown for row in rows.values()))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Row:
    """The images of one prompt, by place of the series."""

    shown: tuple[ShownImage, ...]
    rejected: dict[str, int] = field(default_factory=dict)
    refusal: str = ""

    @property
    def wrong_labels(self) -> dict[str, int]:
        """Return what failures were taken for, commonest first."""
        return dict(Counter(one.answer for one in self.shown if one.fails).most_common())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Work:
    """Generates and judges the rows of one series."""

    predictions: GeneratedPredictions
    criterion: FailureCriterion
    class_name: str
    chosen: ParentSeeds

    def rows(self, prompts: Mapping[str, str]) -> dict[str, _Row]:
        """Return the images of every prompt, by caption; the unchanged ones have the empty caption.

        A place of the series whose unchanged image did not pass the quality check is generated with no caption either.
        """
        try:
            unchanged = self._row(prompts[""], [True] * len(self.chosen.seeds))
            is_usable = [one.fails is not None for one in unchanged.shown]
            rows = {"": unchanged} | {
                caption: self._row(prompt, is_usable)
                for caption, prompt in prompts.items()
                if caption
            }
        finally:
            self.predictions.flush()
        _refuse_all(rows)
        return rows

    def _row(self, prompt: str, is_wanted: Sequence[bool]) -> _Row:
        """Return the images of a prompt; the same place of every prompt has the same seed, so that only the words differ."""
        seeds = [seed for seed, wanted in zip(self.chosen.seeds, is_wanted, strict=True) if wanted]
        nothing = ShownImage(image=None, answer="", fails=None)
        empty = (nothing,) * len(self.chosen.seeds)
        if prompt in self.chosen.short:
            return _Row(shown=empty, refusal=self.chosen.short[prompt])
        try:
            generated = self.predictions.generate(
                [
                    GenerationRequest(class_name=self.class_name, prompt=prompt, seed=seed)
                    for seed in seeds
                ]
            )
        except RefusedPromptError as error:
            return _Row(shown=empty, refusal=f"{error.what} {error.fix or ''}".strip())
        said = iter(self._said([one.content_hash for one in generated if one.is_kept]))
        shown = iter(
            [
                replace(next(said), parent=next(iter(one.parents), ""))
                if one.is_kept
                else replace(nothing, answer=one.rejected_by)
                for one in generated
            ]
        )
        return _Row(
            shown=tuple(next(shown) if wanted else nothing for wanted in is_wanted),
            rejected=rejections(generated),
        )

    def _said(self, keys: Sequence[str]) -> Iterator[ShownImage]:
        names = self.predictions.class_names
        probabilities = self.predictions.probabilities(keys)
        labels = np.full(len(keys), names.index(self.class_name))
        fails = self.criterion.failed_predictions(probabilities, labels, names).tolist()
        for key, row, has_failed in zip(keys, probabilities, fails, strict=True):
            yield ShownImage(
                image=self.predictions.image(key),
                answer=names[int(row.argmax())],
                fails=has_failed,
                key=key,
            )


def _parents(unchanged: _Row, dataset: Dataset) -> list[Hashable]:
    """Return what every place shows: the group of the object, the object, or the place itself where nothing was cut out."""
    wanted = {one.parent for one in unchanged.shown if one.parent}
    known = (
        {
            name: group
            for name, group in zip(dataset.sample_ids(), dataset.groups.tolist(), strict=True)
            if name in wanted
        }
        if wanted
        else {}
    )
    return [
        ("group", known[one.parent])
        if one.parent in known
        else ("object", one.parent)
        if one.parent
        else ("place", place)
        for place, one in enumerate(unchanged.shown)
    ]


def _rate(
    caption: str,
    prompt: str,
    rows: tuple[_Row, _Row],
    parents: Sequence[Hashable],
    price: float,
) -> CounterfactualRate:
    unchanged, row = rows
    before, after = [one.fails for one in unchanged.shown], [one.fails for one in row.shown]
    if row.refusal:
        return CounterfactualRate(
            caption=caption, prompt=prompt, share=Share.of(0, 0), note=row.refusal
        )
    found = paired_rate(caption, prompt, before, after, price=price, parents=parents)
    return found.model_copy(update={"wrong_labels": row.wrong_labels, "rejected": row.rejected})


def _controls(image_generator: ImageGenerator, prompts: Mapping[str, str]) -> dict[str, str]:
    """Return for each caption what its images are to be compared with: all that is done to them but the change itself."""
    controls: dict[str, str] = {}
    if not isinstance(image_generator, HasControls):
        return controls
    for caption, prompt in prompts.items():
        with suppress(RefusedPromptError):
            controls[caption] = image_generator.control_for(prompt) if caption else ""
    return {caption: words for caption, words in controls.items() if words and words != caption}


def _against_controls(
    rates: Sequence[CounterfactualRate], controls: Mapping[str, str]
) -> list[CounterfactualRate]:
    """Return rates without a claim where the control alone makes the classifier fail more often than MAX_CONTROL."""
    named = {rate.caption: rate for rate in rates if rate.caption}
    kept = []
    for rate in rates:
        control = named.get(controls.get(rate.caption, ""))
        if control is not None and not rate.note and (control.note or control.change > MAX_CONTROL):
            rate = rate.model_copy(update={"p_after_looks": 1.0, "note": _no_claim(control)})  # noqa: PLW2901
        kept.append(rate)
    return kept


def _no_claim(control: CounterfactualRate) -> str:
    if control.note:
        return f"No claim: the control “{control.caption}” cannot be drawn. {control.note}"
    return (
        f"No claim: the control “{control.caption}” alone changes failures by {100 * control.change:+.0f} points "
        f"on {control.pairs} pairs, more than {100 * MAX_CONTROL:.0f}."
    )


def _notes(unchanged: CounterfactualRate, n_drawn: int, n_asked: int) -> tuple[str, ...]:
    notes = []
    if n_drawn < n_asked:
        notes.append(
            f"{n_drawn} images instead of {n_asked}: every object is shown once, and no more can be cut out and used for all captions."
        )
    if unchanged.rejected:
        why = ", ".join(f"{number} {quality}" for quality, number in unchanged.rejected.items())
        notes.append(
            f"Of {n_drawn} unchanged images {unchanged.share.total} count; the quality check rejected the others: {why}."
        )
    return tuple(notes)


def _refuse_all(rows: Mapping[str, _Row]) -> None:
    if rows[""].refusal:
        raise RefusedPromptError(
            f"Not even the unchanged images can be generated. {rows[''].refusal}"
        )
    refusals = {caption: row.refusal for caption, row in rows.items() if caption}
    if all(refusals.values()):
        raise RefusedPromptError(
            f"The generator can generate none of the captions. {next(iter(refusals.values()))}",
            given=[*refusals],
        )


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
