"""What drawing found, as pages show it: written by the work, read by routes; pictures are named by their content hash only."""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from weakspot.app.browsing.view import View
from weakspot.app.counterfactual_page import explanation, sentence
from weakspot.app.counterfactuals import CounterfactualResult, ShownDraw
from weakspot.app.search_page import finding_sentence, headline, what_it_means
from weakspot.app.searching import SearchRecord, phrase_of
from weakspot.core.evidence import Share
from weakspot.search.counterfactuals import CounterfactualRate
from weakspot.search.records import CaptionTrial
from weakspot.store import atomic
from weakspot.store.project import ProjectStore

FOLDER = "drawing-results"
MOST_KEPT = 40
MOST_PICTURES = 24
MOST_LABELS = 5

Kind = Literal["counterfactuals", "searches"]


class DrawnView(View):
    """One generated picture.

    Args:
        digest: its content hash; the picture is at `/api/drawings/pictures/{digest}`.
        answer: what the classifier says of it.
        fails: whether that is a failure.
    """

    digest: str
    answer: str
    fails: bool


class RateView(View):
    """So many of so many generated pictures fail, with the interval."""

    count: int
    total: int
    value: float
    low: float
    high: float


class TakenFor(View):
    """What failures were taken for, and how many."""

    label: str
    count: int


class CounterfactualRateView(View):
    """One caption beside the unchanged pictures.

    Args:
        caption: what was changed; empty for the unchanged pictures.
        prompt: the words the pictures were made from.
        rate: failures.
        change: of the failure rate over pairs, with its interval; None for the unchanged ones.
        change_low: lower end.
        change_high: upper end.
        p_after_looks: corrected for all captions that were ever tried here.
        taken_for: what failures were taken for, commonest first.
        words: the same in a sentence.
        note: why there is no figure, if there is none.
        pictures: the first ones, in the order of the series.
    """

    caption: str
    prompt: str
    rate: RateView
    change: float | None
    change_low: float | None
    change_high: float | None
    p_after_looks: float | None
    taken_for: tuple[TakenFor, ...]
    words: str
    note: str
    pictures: tuple[DrawnView, ...]


class CounterfactualView(View):
    """A series of captions on the same pictures; all pictures are generated."""

    result_id: str
    created: str
    class_name: str
    generator: str
    criterion: str
    n_each: int
    n_looks: int
    baseline: CounterfactualRateView
    rates: tuple[CounterfactualRateView, ...]
    explanation: tuple[str, ...]
    notes: tuple[str, ...]


class CaptionTrialView(View):
    """One caption of a search.

    Args:
        caption: what was added; empty for the baseline.
        prompt: the whole prompt.
        step: where the caption comes from.
        rate: failures that count, with an interval that holds at whatever time one stops.
        ratio: how many times as often as the baseline; None if that cannot be said.
        q_value: false discovery rate over all captions.
        is_proven: whether it is a discovery.
        stopped_because: why no more was drawn.
        taken_for: what failures were taken for.
        phrase: the caption as a phrase for real pictures.
        words: the finding in a sentence; empty if it is none.
        note: for example why the generator refused.
        digests: generated pictures that failed.
    """

    caption: str
    prompt: str
    step: str
    rate: RateView
    ratio: float | None
    q_value: float
    is_proven: bool
    stopped_because: str
    taken_for: tuple[TakenFor, ...]
    phrase: str
    words: str
    note: str
    digests: tuple[str, ...]


class SearchView(View):
    """A search for failing captions; all pictures are generated."""

    result_id: str
    created: str
    class_name: str
    target: str | None
    generator: str
    headline: str
    n_pictures: int
    baseline: CaptionTrialView
    findings: tuple[CaptionTrialView, ...]
    trials: tuple[CaptionTrialView, ...]
    meaning: tuple[str, ...]
    notes: tuple[str, ...]


Result = TypeVar("Result", CounterfactualView, SearchView)


def keep_counterfactual(store: ProjectStore, result: CounterfactualResult) -> CounterfactualView:
    """Write a series for the page."""
    series = result.series
    rates = (series.baseline, *series.rates)
    views = tuple(_rate_view(rate, row) for rate, row in zip(rates, result.rows, strict=True))
    view = CounterfactualView(
        result_id=_result_id([series.class_name, series.generator_id, *(rate.caption for rate in series.rates)]),
        created=_now(),
        class_name=series.class_name,
        generator=series.generator_id,
        criterion=series.criterion,
        n_each=series.n_each,
        n_looks=series.n_looks,
        baseline=views[0],
        rates=views[1:],
        explanation=tuple(explanation(series)),
        notes=series.notes,
    )
    _write(store, "counterfactuals", view.result_id, view)
    return view


def keep_search(store: ProjectStore, record: SearchRecord) -> SearchView:
    """Write a search for the page."""
    result = record.result
    view = SearchView(
        result_id=_result_id([result.class_name, result.target or "", record.started]),
        created=record.finished,
        class_name=result.class_name,
        target=result.target,
        generator=record.inputs.get("generator", ""),
        headline=headline(result),
        n_pictures=result.n_pictures,
        baseline=_trial_view(result.baseline, result.example_keys),
        findings=tuple(_trial_view(found.trial, found.example_keys, words=finding_sentence(found)) for found in result.findings),
        trials=tuple(_trial_view(trial, ()) for trial in result.trials),
        meaning=tuple(what_it_means(result, record.inputs))[:2],
        notes=result.notes,
    )
    _write(store, "searches", view.result_id, view)
    return view


def counterfactuals(store: ProjectStore) -> list[CounterfactualView]:
    """Return the series that were kept, newest first."""
    return _kept(store, "counterfactuals", CounterfactualView)


def searches(store: ProjectStore) -> list[SearchView]:
    """Return the searches that were kept, newest first."""
    return _kept(store, "searches", SearchView)


def _kept(store: ProjectStore, kind: Kind, model: type[Result]) -> list[Result]:
    """Return results of a kind, newest first; files of another version of the program are left out."""
    found = []
    for path in _files(store, kind):
        try:
            found.append(model.model_validate_json(path.read_bytes()))
        except (OSError, ValidationError):
            continue
    return sorted(found, key=lambda one: (one.created, one.result_id), reverse=True)


def _files(store: ProjectStore, kind: Kind) -> list[Path]:
    return sorted((store.data / FOLDER / kind).glob("*.json"))


def _write(store: ProjectStore, kind: Kind, result_id: str, view: View) -> None:
    """Write a result, and forget the oldest ones beyond what is kept."""
    folder = store.data / FOLDER / kind
    with store.writing(patience=30.0):
        folder.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(folder / f"{result_id}.json", view.model_dump_json().encode())
        by_age = sorted(_files(store, kind), key=lambda path: path.stat().st_mtime)
        for path in by_age[: max(0, len(by_age) - MOST_KEPT)]:
            path.unlink(missing_ok=True)


def _rate_view(rate: CounterfactualRate, row: Sequence[ShownDraw]) -> CounterfactualRateView:
    change = rate.change_interval if rate.caption else None
    shown = [DrawnView(digest=one.key, answer=one.answer, fails=one.fails) for one in row if one.key and one.fails is not None]
    return CounterfactualRateView(
        caption=rate.caption,
        prompt=rate.prompt,
        rate=_share(rate.share),
        change=rate.change if change is not None else None,
        change_low=change.low if change is not None else None,
        change_high=change.high if change is not None else None,
        p_after_looks=rate.p_after_looks if change is not None else None,
        taken_for=_labels(rate.wrong_labels.items()),
        words=sentence(rate) if rate.caption else "",
        note=rate.note,
        pictures=tuple(shown[:MOST_PICTURES]),
    )


def _trial_view(trial: CaptionTrial, keys: Sequence[str], *, words: str = "") -> CaptionTrialView:
    return CaptionTrialView(
        caption=trial.caption,
        prompt=trial.prompt,
        step=trial.step,
        rate=_share(trial.rate),
        ratio=trial.ratio.value if trial.ratio is not None else None,
        q_value=trial.q_value,
        is_proven=trial.is_proven,
        stopped_because=trial.stopped_because.value,
        taken_for=_labels(trial.wrong_labels.items()),
        phrase=phrase_of(trial.caption),
        words=words,
        note=trial.note,
        digests=tuple(keys[:MOST_PICTURES]),
    )


def _share(share: Share) -> RateView:
    return RateView(count=share.count, total=share.total, value=share.value, low=share.interval.low, high=share.interval.high)


def _labels(counts: Iterable[tuple[str, int]]) -> tuple[TakenFor, ...]:
    return tuple(TakenFor(label=label, count=count) for label, count in list(counts)[:MOST_LABELS])


def _result_id(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
