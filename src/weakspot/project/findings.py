"""From what a data scientist has in memory to findings: one call, how far it is, and what was found as one object.

The object has a table, findings to look at with images and words, a repair, a report and the browser.
"""

import base64
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any, TextIO, TypeVar, overload

import numpy as np
import pyarrow as pa
from PIL import Image, ImageDraw, ImageFont

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.errors import (
    ConfigError,
    DataError,
    MissingExtraError,
    WeakspotError,
    tell_where,
)
from weakspot.core.evidence import Evidence, Interval
from weakspot.core.failures import ClassProblem
from weakspot.core.machine import Pace, next_pace
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.core.slices import FailureSlice, matches
from weakspot.data.image_grid import INK, PAPER, labelled_grid
from weakspot.project.given import (
    EvaluatedSamples,
    GivenSamples,
    arrow_table,
    check_enough,
    check_names,
    gather,
    is_table,
    make_project,
    with_roles,
)
from weakspot.project.given_models import answers_of, samples_of
from weakspot.project.new_settings import recommended_settings
from weakspot.project.project import Project
from weakspot.repair.stage import RepairRequest
from weakspot.report.findings import (
    ShownImage,
    SliceImages,
    SliceSentences,
    choose_images,
    slice_sentences,
)
from weakspot.report.first_answer import FirstAnswer, first_answer
from weakspot.report.wording import count, percent
from weakspot.run.halves import used_rows
from weakspot.run.settings import Settings

FAILING, REST = (178, 58, 46), (120, 130, 140)
Cell = TypeVar("Cell")
BAR_WIDTH, BAR_HEIGHT, MARGIN, LEFT = 360, 22, 14, 150


def draw_strips(
    evidence: Evidence, shown: SliceImages, thumbnails: Mapping[str, bytes], side: int
) -> Image.Image:
    """Return members in one row and the farthest of their class in the other, with what the classifier says beneath."""
    strips = [shown.hard, shown.easy] if shown.easy else [shown.hard]
    rates = [evidence.rate_inside, evidence.rate_outside]
    n_columns = max(len(strip) for strip in strips)
    return labelled_grid(
        [
            _padded([_opened(image, thumbnails) for image in strip], n_columns, None)
            for strip in strips
        ],
        row_names=[
            f"{name}: {percent(rate)} fail"
            for name, rate in zip(("the slice", "the rest"), rates, strict=True)
        ][: len(strips)],
        column_names=[""] * n_columns,
        cell_side=side,
        captions=[_padded([image.caption for image in strip], n_columns, "") for strip in strips],
    )


def draw_bars(title: str, evidence: Evidence) -> Image.Image:
    """Return the failure rates of a slice and of the rest of its class as bars with their intervals."""
    font = ImageFont.load_default(13)
    image = Image.new("RGB", (LEFT + BAR_WIDTH + 70, 3 * (BAR_HEIGHT + MARGIN) + MARGIN), PAPER)
    draw = ImageDraw.Draw(image)
    draw.text((MARGIN, MARGIN), title, INK, font)
    rows = (
        ("the slice", evidence.rate_inside, evidence.interval_inside, FAILING),
        ("rest of the class", evidence.rate_outside, evidence.interval_outside, REST),
    )
    for number, (name, rate, interval, colour) in enumerate(rows, start=1):
        top = MARGIN + number * (BAR_HEIGHT + MARGIN)
        draw.text((MARGIN, top + 3), name, INK, font)
        draw.rectangle((LEFT, top, LEFT + BAR_WIDTH * rate, top + BAR_HEIGHT), colour)
        _draw_interval(draw, interval, top + BAR_HEIGHT // 2)
        draw.text((LEFT + BAR_WIDTH * interval.high + 6, top + 3), percent(rate), INK, font)
    return image


def _draw_interval(draw: ImageDraw.ImageDraw, interval: Interval, middle: int) -> None:
    low, high = LEFT + BAR_WIDTH * interval.low, LEFT + BAR_WIDTH * interval.high
    draw.line((low, middle, high, middle), INK, 2)
    for end in (low, high):
        draw.line((end, middle - 4, end, middle + 4), INK, 2)


def finding_html(
    title: str, said: SliceSentences, shown: SliceImages, thumbnails: Mapping[str, bytes]
) -> str:
    """Return one finding: its words, what was measured, and strips of images; everything is escaped."""
    lines = [said.sentence, said.effect, said.not_sure, *said.cause]
    strips = [
        f'<div style="margin:4px 0"><small>{escape(name)}</small><br>{_strip(images, thumbnails)}</div>'
        for name, images in (("in the slice", shown.hard), ("rest of the class", shown.easy))
        if any(image.sample_id in thumbnails for image in images)
    ]
    body = "".join(f"<p style='margin:2px 0'>{escape(line)}</p>" for line in lines if line)
    return f"<h4 style='margin:10px 0 2px'>{escape(title)}</h4>{''.join(strips)}{body}"


def first_lines_html(answer: FirstAnswer) -> list[str]:
    """Return the lines above all findings: how the classifier does, what is wrong with whole classes, and what is not proven."""
    whole = [finding.text for finding in answer.findings if not finding.slice_id]
    lines = [answer.headline, *whole, answer.findings_note, answer.not_confirmed]
    return [escape(line) for line in lines if line]


def _strip(images: Sequence[ShownImage], thumbnails: Mapping[str, bytes]) -> str:
    return "".join(
        f'<img alt="{escape(image.caption, quote=True)}" title="{escape(image.caption, quote=True)}"'
        f' style="height:96px;margin-right:4px" src="data:image/jpeg;base64,'
        f'{base64.b64encode(thumbnails[image.sample_id]).decode()}">'
        for image in images
        if image.sample_id in thumbnails
    )


def _opened(image: ShownImage, thumbnails: Mapping[str, bytes]) -> Image.Image | None:
    data = thumbnails.get(image.sample_id)
    return None if data is None else Image.open(BytesIO(data))


def _padded(cells: list[Cell], n_cells: int, empty: Cell) -> list[Cell]:
    return cells + [empty] * (n_cells - len(cells))


N_IMAGES = 8
SIDE = 112


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FoundSlice:
    """Which samples the classifier fails on, how often, how sure that is, and in which words.

    Args:
        found: the slice.
        evidence: what was measured of it on samples that did not find it.
        sentences: the same in words.
        of: the samples that were looked at.
        findings: the findings that it is one of.
    """

    found: FailureSlice
    evidence: Evidence
    sentences: SliceSentences
    of: EvaluatedSamples
    findings: "Findings"

    def __repr__(self) -> str:
        """Return one line."""
        inside, outside = self.evidence.rate_inside, self.evidence.rate_outside
        return f"<FoundSlice {self.title!r}: {inside:.0%} fail, {outside:.0%} of the rest of the class>"

    @property
    def title(self) -> str:
        return self.found.title

    @property
    def class_name(self) -> str:
        return self.found.class_name

    @property
    def words(self) -> tuple[str, ...]:
        """Words that are known to fit, best first; empty if none is."""
        return tuple(name.phrase for name in self.found.names if not name.is_unsure)

    @cached_property
    def members(self) -> IntArray:
        """Places of the members in what was given, those deepest inside first."""
        return self.of.places(self._rows)

    @cached_property
    def failed(self) -> BoolArray:
        """Whether the classifier fails on each of the members."""
        problem = self._problem
        wrong = dict(zip(problem.rows.tolist(), problem.failed.tolist(), strict=True))
        return np.array([wrong[row] for row in self._rows.tolist()], dtype=np.bool_)

    @cached_property
    def images(self) -> list[str | None]:
        """Where the images of the members are, in the same order; None for a member without one."""
        return self.of.samples.dataset.locations(self._rows)

    def shown(self, n_images: int = N_IMAGES) -> SliceImages:
        """Return the samples deepest inside, and those of the class that are farthest from them."""
        return choose_images(self.found, self.of.samples, self.of.criterion, n_images=n_images)

    def plot(self, *, n_images: int = N_IMAGES, side: int = SIDE) -> Image.Image:
        """Return one image: members above the rest of their class, or the two failure rates where there are no images."""
        shown = self.shown(n_images)
        pictures = self.of.thumbnails(shown.sample_ids, side)
        if not pictures:
            return draw_bars(self.title, self.evidence)
        return draw_strips(self.evidence, shown, pictures, side)

    def repair(self) -> "Findings":
        """Repair this slice alone."""
        return self.findings.repair(self)

    @property
    def _problem(self) -> ClassProblem:
        return next(one for one in self.of.problems if matches(self.found, one))

    @cached_property
    def _rows(self) -> IntArray:
        problem = self._problem
        scores = self.found.rule.scores(self.of.samples, problem.rows)
        inside = self.found.inside(self.of.samples, problem)
        order = np.argsort(-scores, kind="stable")
        return problem.rows[order[inside[order]]]


def finding_row(one: "FoundSlice | None") -> dict[str, object]:
    """Return the figures of a finding by name; without one, the names alone.

    Rates and sizes are of the samples that the slice was confirmed on; `gap` allows for the fact that only slices with a large one
    are confirmed, and has the interval `gap_low` to `gap_high`.
    """
    evidence = None if one is None else one.evidence
    interval = None if evidence is None else evidence.adjusted_interval
    return {
        "title": one and one.title,
        "class": one and one.class_name,
        "words": one and ", ".join(one.words),
        "samples": evidence and evidence.n_inside,
        "failures": evidence and evidence.failures_inside,
        "failure_rate": evidence and evidence.rate_inside,
        "rest_failure_rate": evidence and evidence.rate_outside,
        "gap": evidence and evidence.headline_gap,
        "gap_low": interval and interval.low,
        "gap_high": interval and interval.high,
        "p_value": evidence and evidence.p_value,
        "q_value": evidence and evidence.q_value,
        "cause": evidence and evidence.named_cause,
        "method": one and one.found.method,
        "slice_id": one and one.found.slice_id,
    }


THUMBNAIL_SIDE = 128


class Findings(Sequence[FoundSlice]):
    """Confirmed failures of a classifier, strongest first; a list of them, with everything else that the run knows.

    Args:
        project: the project, whose folder holds everything.
        record: its run.
        is_temporary: whether the project's folder goes when the findings do.
    """

    def __init__(
        self,
        project: Project,
        record: RunRecord,
        *,
        is_temporary: bool = False,
    ) -> None:
        self.project = project
        self.record = record
        self._remove = (
            weakref.finalize(self, shutil.rmtree, project.folder, ignore_errors=True)
            if is_temporary
            else None
        )

    def __len__(self) -> int:
        """Return the number of confirmed slices."""
        return len(self._found)

    @overload
    def __getitem__(self, place: int) -> FoundSlice: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[FoundSlice]: ...
    def __getitem__(self, place: int | slice) -> FoundSlice | Sequence[FoundSlice]:
        """Return one finding, or some."""
        return self._found[place]

    def __repr__(self) -> str:
        """Return one line."""
        first = f", first: {self[0].title}" if len(self) else ""
        return f"<Findings: {count(len(self), 'confirmed slice')}{first}>"

    def __str__(self) -> str:
        """Return what a busy person reads first, in a few lines."""
        answer = self.answer
        lines = [
            answer.headline,
            *(check.sentence for check in answer.problems),
            *(f"- {finding.text}" for finding in answer.findings),
            answer.findings_note,
            *(f"To do: {one.sentence}" for one in answer.to_do),
            answer.not_confirmed,
        ]
        return "\n".join(line for line in lines if line)

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with images."""
        parts = [f"<p>{line}</p>" for line in first_lines_html(self.answer)]
        for one in self:
            shown = one.shown()
            pictures = self.evaluated.thumbnails(shown.sample_ids, THUMBNAIL_SIDE)
            parts.append(finding_html(one.title, one.sentences, shown, pictures))
        return f"<div>{''.join(parts)}</div>"

    @cached_property
    def answer(self) -> FirstAnswer:
        """What `weakspot run` prints first: whole classes that fail, findings, and what to do."""
        return first_answer(self.record)

    @cached_property
    def evaluated(self) -> EvaluatedSamples:
        """The samples that failures were looked for in."""
        samples = self.project.samples(self.record)
        rows = used_rows(samples, self.project.settings)
        rows = rows[samples.dataset.is_labelled[rows]]
        return EvaluatedSamples(samples=samples.only(rows), criterion=self.project.criterion)

    @property
    def rows(self) -> list[dict[str, object]]:
        """The table as a list of rows, for those without pandas."""
        return [finding_row(one) for one in self]

    @property
    def table(self) -> Any:
        """A pandas data frame, one row a finding.

        Raises:
            MissingExtraError: if pandas is not installed; `rows` and `arrow` need nothing.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "pandas", extra="pandas", purpose="Findings as a data frame"
            ) from error
        return pd.DataFrame(self.rows, columns=list(finding_row(None)))

    @property
    def arrow(self) -> pa.Table:
        """The same as an Arrow table, which polars and others take as it is."""
        columns = list(finding_row(None))
        return pa.table({name: [row[name] for row in self.rows] for name in columns})

    def repair(self, *slices: FoundSlice) -> "Findings":
        """Repair the classifier, or say what to collect where it cannot be retrained; return findings whose record tells the outcome.

        Args:
            slices: only these; by default all.
        """
        wanted = tuple(one.found.slice_id for one in slices)
        self.record = self.project.repair(self.record.run_id, RepairRequest(slice_ids=wanted))
        self.__dict__.pop("answer", None)
        return self

    def report(self) -> Path:
        """Write the report, and return where the page is that a browser shows."""
        return self.project.report(self.record.run_id)[0]

    def open(self, *, port: int = 0) -> "subprocess.Popen[bytes]":
        """Show the project in the browser; end the process that is returned to stop it.

        Args:
            port: where the pages are served; 0: any that is free.
        """
        command = [sys.executable, "-m", "weakspot", "serve", "-p", str(self.project.folder)]
        return subprocess.Popen([*command, "--port", str(port)] if port else command)

    def close(self) -> None:
        """Remove the temporary folder; with a folder of your own, do nothing."""
        if self._remove is not None:
            self._remove()

    @cached_property
    def _found(self) -> list[FoundSlice]:
        return [
            FoundSlice(
                found=found,
                evidence=evidence,
                sentences=slice_sentences(found, evidence, self.record),
                of=self.evaluated,
                findings=self,
            )
            for found, evidence in self.record.published()
            if evidence.explained is None
        ]


REDRAW_SECONDS = 0.2
CLEARED = "\r\x1b[K"
"""The start of the line, and nothing on it."""


class NotebookProgress:
    """Draws a bar for every stage that has something to do.

    Args:
        show: shows HTML and returns the output, whose `update` shows something else in its place.
        clock: tells seconds.
    """

    def __init__(
        self, show: Callable[[str], Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._show = show
        self._clock = clock
        self._stages: dict[str, Pace] = {}
        self._shown: Any = None
        self._drawn = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show how far a stage is; not more often than eyes can follow."""
        if total == 0 and stage not in self._stages:
            return
        is_new = stage not in self._stages
        now = self._clock()
        self._stages[stage] = next_pace(self._stages.get(stage), stage, done, total, now)
        if is_new or done == total or now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            self._draw()

    def _draw(self) -> None:
        page = HtmlPage("".join(_bar(pace) for pace in self._stages.values()))
        if self._shown is None:
            self._shown = self._show(page)
        else:
            self._shown.update(page)


class HtmlPage(str):
    """HTML that a notebook shows as such."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


class TerminalProgress:
    """Writes one line a stage, over and over.

    Args:
        stream: the terminal.
        clock: tells seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._pace: Pace | None = None
        self._written = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Write how far a stage is; not more often than eyes can follow."""
        if total == 0:
            return
        before, now = self._pace, self._clock()
        is_new = before is None or before.stage != stage
        self._pace = next_pace(before, stage, done, total, now)
        is_over = done == total and (is_new or before is None or before.done != done)
        if is_new or is_over or now - self._written >= REDRAW_SECONDS:
            self._written = now
            self._stream.write(f"{CLEARED}{how_far(self._pace)}" + ("\n" if is_over else ""))
            self._stream.flush()


def how_far(pace: Pace) -> str:
    """Return in words how far a stage is.

    >>> how_far(Pace(stage="embed", started=0, done_first=0, done=30, total=90, told=10))
    'embed: 30 of 90, 20 s left'
    """
    if pace.total is None:
        return f"{pace.stage}: {pace.done:,}"
    left = pace.seconds_left(pace.told)
    return f"{pace.stage}: {pace.done:,} of {pace.total:,}" + (
        "" if left is None else f", {left:,} s left"
    )


def _bar(pace: Pace) -> str:
    """Return one line of HTML."""
    known = "" if pace.total is None else f' value="{pace.done}" max="{max(pace.total, 1)}"'
    return f"<div><progress{known}></progress> {escape(how_far(pace))}</div>"


def usual_progress() -> StageProgress:
    """Return bars where this runs in a notebook, a line where the error stream is a terminal, and silence elsewhere."""
    if "ipykernel" in sys.modules:
        from IPython.core.getipython import get_ipython
        from IPython.display import display

        if get_ipython() is not None:
            return NotebookProgress(lambda page: display(page, display_id=True))
    return TerminalProgress(sys.stderr) if sys.stderr.isatty() else no_stage_progress


def find(
    data: object = None,
    *,
    model: object = None,
    labels: object = None,
    predictions: object = None,
    probabilities: object = None,
    class_names: Sequence[object] | None = None,
    images: object = None,
    embeddings: object = None,
    metadata: object = None,
    groups: object = None,
    splits: object = None,
    train: object = None,
    folder: Path | str | None = None,
    settings: Settings | None = None,
    progress: StageProgress | None = None,
) -> Findings:
    """Find, name and prove what a classifier systematically gets wrong.

    Labels, predictions and one of images, embeddings and metadata are enough. Everything is one for every sample, in one order.

    Args:
        data: a data frame, an Arrow table, a dict of columns or a list of rows, whose columns are called as in a manifest (`label`,
            `prediction`, `path` ...); or a data set of PyTorch or Hugging Face.
        model: a PyTorch module, an estimator of scikit-learn, or a function (such as a pipeline of transformers) that is asked for
            the predictions that were not given.
        labels: true labels: names or codes; lists of them for a multi-label task.
        predictions: what the classifier says.
        probabilities: [n, c], with columns in the order of `class_names`.
        class_names: the classes, if labels are codes or there are probabilities.
        images: paths, addresses, Pillow images or arrays.
        embeddings: [n, d], of any encoder.
        metadata: further columns of any kind: a data frame or a dict of columns.
        groups: what belongs together, such as the patient or the video.
        splits: `train`, `validation` or `test`; without it all samples are validation samples.
        train: what the classifier learnt from, from which causes are told: a dict with labels and some of images, embeddings,
            metadata and groups, or a table or data set as `data`.
        folder: where the project is kept; by default it is gone when the findings are.
        settings: of the project; by default those of `weakspot init`.
        progress: told how far every stage is; by default bars in a notebook, a line on a terminal, and nothing elsewhere.

    Raises:
        DataError: if what was given does not fit together, or is not enough.
    """
    parts = {
        "labels": labels,
        "predictions": predictions,
        "probabilities": probabilities,
        "class_names": class_names,
        "images": images,
        "embeddings": embeddings,
        "metadata": metadata,
        "groups": groups,
        "splits": splits,
    }
    given = {name: part for name, part in parts.items() if part is not None}
    samples = _samples(data, model, given)
    check_enough(samples)
    learnt = None if train is None else _learnt(train, samples)
    check_names(
        [*samples.labels, *([] if learnt is None else learnt.labels)],
        samples.predictions,
        samples.class_names or (),
    )
    if settings is not None and not isinstance(settings, Settings):
        raise ConfigError(
            "'settings' are no settings.",
            given=type(settings).__name__,
            fix="Give weakspot.Settings(...), or leave them out.",
        )
    home = Path(tempfile.mkdtemp(prefix="weakspot-") if folder is None else folder)
    try:
        project = make_project(
            home,
            samples,
            learnt,
            settings or recommended_settings(),
            progress=progress or usual_progress(),
        )
        return Findings(project, project.run(writes_report=False), is_temporary=folder is None)
    except BaseException as error:
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)
            if isinstance(error, WeakspotError) and str(home) in (error.where or ""):
                tell_where(error, "what was given to weakspot.find")
        raise


def _samples(data: object, model: object, given: dict[str, object]) -> GivenSamples:
    if data is None:
        if "labels" not in given:
            raise DataError("There are no labels.", fix="Give labels, or a table that has them.")
    elif isinstance(data, Mapping) and any(hasattr(part, "features") for part in data.values()):
        raise DataError(
            "This is several data sets.",
            given=list(data),
            fix="Give one of them, and the one that the classifier learnt from as train.",
        )
    elif is_table(data):
        given = with_roles(arrow_table(data), given)
    else:
        given = samples_of(data, model, given)
    if model is not None and not {"predictions", "probabilities"} & set(given):
        given = answers_of(model, given)
    return gather(**given)  # type: ignore[arg-type]


def _learnt(train: object, samples: GivenSamples) -> GivenSamples:
    if isinstance(train, Mapping):
        given = _parts_of(train)
    elif is_table(train):
        given = with_roles(arrow_table(train), {})
        given.pop("splits", None)
    else:
        given = samples_of(train, None, {})
    return gather(**{**given, "class_names": samples.class_names or None})  # type: ignore[arg-type]


def _parts_of(train: Mapping[str, object]) -> dict[str, object]:
    known = ("labels", "predictions", "probabilities", "images", "embeddings", "metadata", "groups")
    unknown = [name for name in train if name not in known]
    if unknown or "labels" not in train:
        raise DataError(
            f"'train' has no part {unknown[0]!r}." if unknown else "'train' has no labels.",
            given=list(train),
            fix=f"Give a dict with labels and some of: {', '.join(known[1:])}.",
        )
    return dict(train)
