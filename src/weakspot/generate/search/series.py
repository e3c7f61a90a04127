"""What was generated of one prompt so far, who failed, and what a search asks of the world for it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import isfinite
from typing import Literal, Protocol

import numpy as np
from numpy import log
from pydantic import Field

from weakspot.core.arrays import FloatArray, child_seed
from weakspot.core.evidence import Interval, Share
from weakspot.core.failures import FailureCriterion
from weakspot.core.record import Record
from weakspot.generate.search.sequential import (
    contrast_intervals,
    discoveries,
    discovery_rates,
    log_evidence,
    rate_interval,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledImages:
    """Some images of one prompt that passed the quality check, in the order of the series.

    Args:
        keys: the images, by content hash.
        probabilities: what the classifier says of them [n, c], columns in the order of the sampler's class names.
        n_asked: how many were ordered; the others were rejected. Fewer than were wanted: the series is at its end.
        rejected: how many each quality check rejected.
        parents: the sample whose object each image shows, where it was composed from a user's own; empty: nothing is known.
    """

    keys: tuple[str, ...]
    probabilities: FloatArray
    n_asked: int
    rejected: Mapping[str, int]
    parents: tuple[str, ...] = ()


def place_seed(seed: int, class_name: str, prompt: str, place: int) -> int:
    """Return the seed of a place in the series of a prompt; other prompts have other seeds, so that their images are independent.

    >>> place_seed(0, "fly", "a fly.", 1) == place_seed(0, "fly", "a fly. it is dark.", 1)
    False
    """
    return child_seed(seed, "search", class_name, prompt, str(place))


class Sampler(Protocol):
    """Generates from the series of images that every prompt has: the same place in it is always the same image.

    What was generated is kept, so that asking again costs nothing and a search that was interrupted goes on where it was.
    """

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of the probability columns."""

    @property
    def caption_source(self) -> str:
        """Who captions: the id of a captioner, or that captions are assembled from words ranked by the embedder."""

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        """Return places `first` to `first + n` of the series of a prompt; fewer where it ends.

        Raises:
            RefusedPromptError: if the generator cannot generate what the prompt says.
            ModelError: if it can generate nothing at all any more.
        """

    def embeddings(self, keys: Sequence[str]) -> FloatArray:
        """Return unit vectors [n, d] of images that were generated."""

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases in the same space."""

    def completions(self, keys: Sequence[str], *, beginning: str) -> list[str]:
        """Return what follows the beginning in a caption of each image, in short sentences; empty where nothing is known."""

    def likelihoods(self, keys: Sequence[str], captions: Sequence[str]) -> FloatArray | None:
        """Return log P(caption | image) [n, m], or None when the captioner cannot say."""

    def control_for(self, prompt: str) -> str:
        """Return what to say to draw all that a change does to an image but the change itself; empty if there is nothing to control."""


TrialStep = Literal["baseline", "cluster", "sentence", "adjective", "user", "control", "reworded"]
"""Where a caption comes from: the prompt without any, a cluster of failures, one of its sentences, fewer adjectives, a person, the
generator, which says what to compare a change with, or a language model."""


class StoppedBecause(StrEnum):
    """Why no more images of a caption were generated."""

    BETTER = "better"
    NOT_BETTER = "not better"
    TARGET_FAILURES = "enough target failures"
    MAX_IMAGES = "most images"
    BUDGET = "budget"
    REFUSED = "refused"
    REJECTED = "rejected"
    PRECISE = "known well enough"


class Contrast(Record):
    """How much a caption differs from the baseline.

    Args:
        value: the difference of the two rates, or their ratio; None for a ratio to a baseline that never failed.
        low: lower end of its interval, which holds at whatever time one looks.
        high: upper end; None where a ratio has none because the baseline may never fail.
        level: of the interval.
    """

    value: float | None
    low: float
    high: float | None
    level: float = 0.95


class CaptionTrial(Record):
    """One caption and everything that its images say.

    Args:
        caption: what was added to the baseline prompt; empty for the baseline.
        prompt: the whole prompt.
        step: where the caption comes from.
        n_asked: images ordered.
        rejected: how many each quality check rejected.
        n_views: images that passed but do not count, because they show an object of the user's own that an earlier one shows.
        rate: failures that count among the images that were judged, towards the target if there is one; its interval holds at
            whatever time one looks. Of images composed from a user's own the first of every object is judged.
        all_failures: failures of any kind among the same images.
        target_failures: images taken for the target; 0 without a target.
        difference: rate minus the baseline's, None for the baseline itself and before anything was judged.
        ratio: rate over the baseline's, likewise.
        log10_e_value: evidence that the caption fails more often than the baseline, as a power of ten; 0 says nothing.
        q_value: the false discovery rate over all captions at which this one would just be a discovery.
        is_proven: whether it is a discovery at the rate that was asked for, corrected for every caption tried.
        stopped_because: why no more was generated.
        wrong_labels: what failures of any kind were taken for, most frequent first.
        note: for example why the generator refused.
    """

    caption: str
    prompt: str
    step: TrialStep
    n_asked: int = 0
    rejected: dict[str, int] = Field(default_factory=dict)
    n_views: int = 0
    rate: Share
    all_failures: int = 0
    target_failures: int = 0
    difference: Contrast | None = None
    ratio: Contrast | None = None
    log10_e_value: float = 0.0
    q_value: float = 1.0
    is_proven: bool = False
    stopped_because: StoppedBecause
    wrong_labels: dict[str, int] = Field(default_factory=dict)
    note: str = ""

    @property
    def n_images(self) -> int:
        return self.rate.total

    @property
    def failures(self) -> int:
        return self.rate.count

    @property
    def can_be_generated(self) -> bool:
        return self.rate.total > 0


FINAL = (StoppedBecause.REFUSED, StoppedBecause.REJECTED)


@dataclass(frozen=True, kw_only=True)
class JudgedImage:
    """One image and what the classifier made of it.

    Args:
        key: by content hash.
        label: what it was taken for.
        is_failure: whether it failed in the way that counts.
        is_any_failure: whether it failed in any way.
        parent: the sample whose object it shows; empty if none is known.
    """

    key: str
    label: str
    is_failure: bool
    is_any_failure: bool
    parent: str = ""


class Referee:
    """Says of generated images which failed.

    Args:
        class_name: what they show.
        class_names: the classifier's classes.
        criterion: when an answer is a failure of any kind.
        target: count only failures towards this class.
    """

    def __init__(
        self,
        *,
        class_name: str,
        class_names: Sequence[str],
        criterion: FailureCriterion,
        target: str | None,
    ) -> None:
        self.target = target or (criterion.target if criterion.kind == "target" else None)
        self._names, self._code = tuple(class_names), list(class_names).index(class_name)
        self._any = replace(criterion, kind="top-1") if criterion.kind == "target" else criterion
        self._counted = (
            FailureCriterion(kind="target", target=self.target) if self.target else self._any
        )

    def judged(self, draws: SampledImages) -> tuple[JudgedImage, ...]:
        """Judge every image, in order."""
        labels = np.full(len(draws.keys), self._code, dtype=np.int64)
        if not len(labels):
            return ()
        counts = self._counted.failed_predictions(draws.probabilities, labels, self._names)
        fails = self._any.failed_predictions(draws.probabilities, labels, self._names)
        said = np.argmax(draws.probabilities, axis=1)
        return tuple(
            JudgedImage(
                key=key,
                label=self._names[int(code)],
                is_failure=bool(one),
                is_any_failure=bool(other or one),
                parent=parent,
            )
            for key, code, one, other, parent in zip(
                draws.keys,
                said,
                counts,
                fails,
                draws.parents or [""] * len(draws.keys),
                strict=True,
            )
        )

    def is_wrong(self, image: JudgedImage) -> bool:
        return image.label != self._names[self._code]


@dataclass(kw_only=True, eq=False)
class ImageSeries:
    """The images of one prompt, from the first place of its series on.

    Args:
        caption: what was added to the baseline prompt.
        prompt: the whole prompt.
        step: where the caption comes from.
        n_asked: places of the series that were generated.
        rejected: how many each quality check rejected.
        images: those that were judged and count: of every object of the user's own the first.
        further: other views of the same objects, to be looked at only.
        wrong_labels: what failures of any kind were taken for.
        target_failures: images taken for the target.
        failures: failures that count.
        stopped: why nothing more was generated, None while it goes on.
        note: anything to tell.
        has_ended: whether there is no further image of the prompt.
    """

    caption: str
    prompt: str
    step: TrialStep
    n_asked: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    images: list[JudgedImage] = field(default_factory=list)
    further: list[JudgedImage] = field(default_factory=list)
    wrong_labels: Counter[str] = field(default_factory=Counter)
    target_failures: int = 0
    failures: int = 0
    stopped: StoppedBecause | None = None
    note: str = ""
    has_ended: bool = False

    @property
    def n_images(self) -> int:
        return len(self.images)

    @property
    def guess(self) -> float:
        """Return the rate, a little towards one half so that it is never 0 or 1."""
        return (self.failures + 0.5) / (self.n_images + 1.0)

    @property
    def is_final(self) -> bool:
        """Return whether nothing more can be generated, whatever the budget."""
        return self.stopped in FINAL or (self.stopped is StoppedBecause.BUDGET and not self.n_asked)

    @property
    def failed(self) -> list[JudgedImage]:
        """Return the failures that count, in order, then those among other views of the same objects."""
        return [image for image in (*self.images, *self.further) if image.is_failure]

    def take(self, draws: SampledImages, referee: Referee, *, n_asked: int) -> None:
        self.n_asked += n_asked
        self.rejected.update(dict(draws.rejected))
        judged: list[JudgedImage] = []
        shown = {one.parent for one in self.images if one.parent}
        for one in referee.judged(draws):
            (self.further if one.parent in shown else judged).append(one)
            shown |= {one.parent} if one.parent else set()
        self.images.extend(judged)
        self.failures += sum(one.is_failure for one in judged)
        self.wrong_labels.update(
            one.label for one in judged if one.is_any_failure and referee.is_wrong(one)
        )
        if referee.target:
            self.target_failures += sum(one.is_failure for one in judged)


def caption_trials(
    baseline: ImageSeries, captions: Sequence[ImageSeries], *, alpha: float, most: int
) -> tuple[CaptionTrial, ...]:
    """Return the baseline and every caption as records.

    The intervals of proven captions are wider than those of others: of all proven captions, at most a share of `alpha` is missed
    by the lower ends on average, and as many by the upper ones (e-BY). A caption is proven exactly if the lower end of its
    difference is above 0 there.

    Args:
        baseline: the prompt without a caption.
        captions: what was tried.
        alpha: false discovery rate.
        most: how many captions could have been tried.
    """
    generated = [one for one in captions if one.n_images]
    counts = (baseline.failures, baseline.n_images)
    logs = {one.prompt: log_evidence(one.failures, one.n_images, *counts) for one in generated}
    rates = dict(zip(logs, discovery_rates(list(logs.values()), most=most), strict=True))
    proven = dict(zip(logs, discoveries(list(logs.values()), alpha=alpha, most=most), strict=True))
    n_proven = sum(proven.values())
    trials = [_record(baseline, level=1.0 - alpha)]
    for one in captions:
        is_proven = bool(proven.get(one.prompt, False))
        record = _record(
            one,
            level=1.0 - 2.0 * alpha * n_proven / most if is_proven else 1.0 - alpha,
            baseline=baseline,
        )
        q_value, log10_e_value = (
            float(rates.get(one.prompt, 1.0)),
            logs.get(one.prompt, 0.0) / float(log(10.0)),
        )
        update = {"log10_e_value": log10_e_value, "q_value": q_value, "is_proven": is_proven}
        trials.append(record.model_copy(update=update))
    return tuple(trials)


def _record(
    series: ImageSeries, *, level: float, baseline: ImageSeries | None = None
) -> CaptionTrial:
    low, high = rate_interval(series.failures, series.n_images, level=level)
    value = series.failures / series.n_images if series.n_images else 0.0
    difference, ratio = _contrasts(series, baseline, level=level)
    return CaptionTrial(
        caption=series.caption,
        prompt=series.prompt,
        step=series.step,
        n_asked=series.n_asked,
        rejected=dict(series.rejected.most_common()),
        n_views=len(series.further),
        rate=Share(
            count=series.failures,
            total=series.n_images,
            value=value,
            interval=Interval(low=low, high=high, level=level),
        ),
        all_failures=sum(one.is_any_failure for one in series.images),
        target_failures=series.target_failures,
        difference=difference,
        ratio=ratio,
        stopped_because=series.stopped or StoppedBecause.BUDGET,
        wrong_labels=dict(series.wrong_labels.most_common()),
        note=series.note,
    )


def _contrasts(
    series: ImageSeries, baseline: ImageSeries | None, *, level: float
) -> tuple[Contrast | None, Contrast | None]:
    if baseline is None or not series.n_images or not baseline.n_images:
        return None, None
    rate, other = series.failures / series.n_images, baseline.failures / baseline.n_images
    (low, high), (least, largest) = contrast_intervals(
        (series.failures, series.n_images), (baseline.failures, baseline.n_images), level=level
    )
    return (
        Contrast(value=rate - other, low=low, high=high, level=level),
        Contrast(
            value=rate / other if other else None,
            low=least,
            high=largest if isfinite(largest) else None,
            level=level,
        ),
    )
