"""From what a data scientist has in memory to findings: one call, and how far it is."""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TextIO

from weakspot.core.errors import ConfigError, DataError, WeakspotError, tell_where
from weakspot.core.machine import Pace, next_pace
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.project.findings import Findings
from weakspot.project.given import (
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
from weakspot.run.settings import Settings

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
