"""What generating found, as pages show it: written by the work, read by routes; images are named by their content hash only."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from weakspot.core.evidence import Share
from weakspot.generation.counterfactual_page import explanation, sentence
from weakspot.generation.counterfactuals import CounterfactualResult, ShownImage
from weakspot.generation.search.counterfactuals import CounterfactualRate, CounterfactualSeries
from weakspot.generation.search.records import CaptionTrial, Contrast
from weakspot.generation.search_page import finding_sentence, headline, what_it_means
from weakspot.generation.search_run import SearchRecord, phrase_of
from weakspot.store import atomic
from weakspot.store.project import ProjectStore
from weakspot.web.services.view import View

FOLDER = "generation-results"
MOST_KEPT = 40
MOST_IMAGES = 24

Kind = Literal["counterfactuals", "searches"]


class GeneratedImageView(View):
    """One generated image.

    Args:
        digest: its content hash; the image is at `/api/generation/images/{digest}`.
        answer: what the classifier says of it.
        fails: whether that is a failure.
    """

    digest: str
    answer: str
    fails: bool


def _with_interval(kept: object) -> object:
    """Read shares also as they were written before they had an interval of their own."""
    if isinstance(kept, dict) and "low" in kept:
        return {
            "count": kept["count"],
            "total": kept["total"],
            "value": kept["value"],
            "interval": {"low": kept["low"], "high": kept["high"]},
        }
    return kept


def _counts(kept: object) -> object:
    """Read labels also as they were written before they were counts by name."""
    return {one["label"]: one["count"] for one in kept} if isinstance(kept, list) else kept


def _contrast(kept: object) -> object:
    """Read ratios also as they were written before they had an interval."""
    return {"value": kept, "low": 0.0, "high": None} if isinstance(kept, float) else kept


KeptShare = Annotated[Share, BeforeValidator(_with_interval)]
Counts = Annotated[dict[str, int], BeforeValidator(_counts)]


class CounterfactualRateView(CounterfactualRate, View):
    """One caption beside the unchanged images, in figures and words.

    Args:
        words: the same in a sentence; empty for the unchanged images.
        images: the first ones, in the order of the series.
    """

    earlier_names: ClassVar[Mapping[str, str]] = {
        "pictures": "images",
        "rate": "share",
        "taken_for": "wrong_labels",
    }

    share: KeptShare
    wrong_labels: Counts = Field(default_factory=dict)
    words: str
    images: tuple[GeneratedImageView, ...]

    @model_validator(mode="before")
    @classmethod
    def _read_change(cls, given: Any) -> Any:
        """Read a change also as it was written before it had an interval of its own."""
        if not isinstance(given, dict) or "change_low" not in given:
            return given
        today = {name: value for name, value in given.items() if value is not None}
        low, high = today.pop("change_low", None), today.pop("change_high", None)
        if low is not None and high is not None:
            today["change_interval"] = {"low": low, "high": high}
        return today


class CounterfactualView(CounterfactualSeries, View):
    """A series of captions on the same images; all images are generated."""

    earlier_names: ClassVar[Mapping[str, str]] = {"generator": "generator_id"}

    result_id: str
    created: str
    classifier_id: str = ""
    seed: int = 0
    baseline: CounterfactualRateView
    rates: tuple[CounterfactualRateView, ...]
    explanation: tuple[str, ...]


class CaptionTrialView(CaptionTrial, View):
    """One caption of a search, in figures and words.

    Args:
        phrase: the caption as a phrase for real images.
        words: the finding in a sentence; empty if it is none.
        digests: generated images that failed.
    """

    earlier_names: ClassVar[Mapping[str, str]] = {"taken_for": "wrong_labels"}

    rate: KeptShare
    ratio: Annotated[Contrast | None, BeforeValidator(_contrast)] = None
    wrong_labels: Counts = Field(default_factory=dict)
    phrase: str
    words: str
    digests: tuple[str, ...]


class SearchView(View):
    """A search for failing captions; all images are generated."""

    earlier_names: ClassVar[Mapping[str, str]] = {"n_pictures": "n_images"}

    result_id: str
    created: str
    class_name: str
    target: str | None
    generator: str
    headline: str
    n_images: int
    baseline: CaptionTrialView
    findings: tuple[CaptionTrialView, ...]
    trials: tuple[CaptionTrialView, ...]
    meaning: tuple[str, ...]
    notes: tuple[str, ...]


Result = TypeVar("Result", CounterfactualView, SearchView)


def keep_counterfactual(store: ProjectStore, result: CounterfactualResult) -> CounterfactualView:
    series = result.series
    views = [
        _rate_view(rate, row)
        for rate, row in zip((series.baseline, *series.rates), result.rows, strict=True)
    ]
    view = CounterfactualView(
        **{**dict(series), "baseline": views[0], "rates": tuple(views[1:])},
        result_id=_result_id(
            [series.class_name, series.generator_id, *(rate.caption for rate in series.rates)]
        ),
        created=_now(),
        explanation=tuple(explanation(series)),
    )
    _write(store, "counterfactuals", view.result_id, view)
    return view


def keep_search(store: ProjectStore, record: SearchRecord) -> SearchView:
    result = record.result
    view = SearchView(
        result_id=_result_id([result.class_name, result.target or "", record.started]),
        created=record.finished,
        class_name=result.class_name,
        target=result.target,
        generator=record.inputs.get("generator", ""),
        headline=headline(result),
        n_images=result.n_images,
        baseline=_trial_view(result.baseline, result.example_keys),
        findings=tuple(
            _trial_view(found.trial, found.example_keys, words=finding_sentence(found))
            for found in result.findings
        ),
        trials=tuple(_trial_view(trial, ()) for trial in result.trials),
        meaning=tuple(what_it_means(result, record.inputs))[:2],
        notes=result.notes,
    )
    _write(store, "searches", view.result_id, view)
    return view


def counterfactuals(store: ProjectStore) -> list[CounterfactualView]:
    return _kept(store, "counterfactuals", CounterfactualView)


def searches(store: ProjectStore) -> list[SearchView]:
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
    folder = store.data / FOLDER / kind
    with store.writing(patience=30.0):
        folder.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(folder / f"{result_id}.json", view.model_dump_json().encode())
        by_age = sorted(_files(store, kind), key=lambda path: path.stat().st_mtime)
        for path in by_age[: max(0, len(by_age) - MOST_KEPT)]:
            path.unlink(missing_ok=True)


def _rate_view(rate: CounterfactualRate, row: Sequence[ShownImage]) -> CounterfactualRateView:
    shown = [
        GeneratedImageView(digest=one.key, answer=one.answer, fails=one.fails)
        for one in row
        if one.key and one.fails is not None
    ]
    return CounterfactualRateView(
        **dict(rate),
        words=sentence(rate) if rate.caption else "",
        images=tuple(shown[:MOST_IMAGES]),
    )


def _trial_view(trial: CaptionTrial, keys: Sequence[str], *, words: str = "") -> CaptionTrialView:
    return CaptionTrialView(
        **dict(trial),
        phrase=phrase_of(trial.caption),
        words=words,
        digests=tuple(keys[:MOST_IMAGES]),
    )


def _result_id(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
