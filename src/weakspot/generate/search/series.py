"""What was generated of prompts so far, who failed, and the trials of captions that a search makes on them."""

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
from weakspot.core.errors import DataError, InputError, NotEnoughDataError, RefusedPromptError
from weakspot.core.evidence import Interval, Share
from weakspot.core.failures import FailureCriterion
from weakspot.core.record import Record
from weakspot.core.run import Progress, no_progress
from weakspot.generate.search.sequential import (
    MISS_RATE,
    contrast_intervals,
    discoveries,
    discovery_rates,
    is_futile,
    is_same,
    log_evidence,
    rate_interval,
)
from weakspot.run.settings import SearchSettings

BASELINE_PRECISION = 4.0
NOTHING_KEPT_BATCHES = 3
SAME_SHARE = 0.25


BATCH = 8
"""Images that are generated at a time."""


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


class CaptionTrials:
    """A baseline, captions that are held against it, and what was generated of each.

    Captions may be chosen by looking at everything that was generated before. What is proven holds at whatever time one stops, with
    at most `alpha` false ones among the discoveries on average.

    Args:
        sampler: where images come from; those of different prompts must be independent.
        class_name: what all images show.
        criterion: when an answer is a failure.
        settings: how much is generated, and what is promised.
        target: count only failures towards this class.
        until_target_failures: go on with a promising caption until so many failures that count, 0 to stop when it is proven.
        progress: told images generated and the budget.

    Raises:
        DataError: if the classifier does not know the class or the target.
    """

    def __init__(
        self,
        sampler: Sampler,
        *,
        class_name: str,
        criterion: FailureCriterion,
        settings: SearchSettings,
        target: str | None = None,
        until_target_failures: int = 0,
        progress: Progress = no_progress,
    ) -> None:
        for name in (class_name, *([target] if target else [])):
            if name not in sampler.class_names:
                known = ", ".join(sampler.class_names[:20])
                raise DataError(
                    f"The classifier knows no class {name!r}.",
                    given=name,
                    fix=f"Choose one of: {known}.",
                )
        if target == class_name:
            raise DataError(
                "The target must be another class than the one that is searched.", given=target
            )
        self._sampler = sampler
        self._class_name = class_name
        self._settings = settings
        self._until = until_target_failures
        self._progress = progress
        self._referee = Referee(
            class_name=class_name,
            class_names=sampler.class_names,
            criterion=criterion,
            target=target,
        )
        self._baseline: ImageSeries | None = None
        self._captions: list[ImageSeries] = []

    def baseline(self, prompt: str, *, enough_failures: int = 0) -> CaptionTrial:
        """Generate the baseline until its rate is known well enough to begin with; trials generate more of it where it pays.

        Args:
            prompt: the baseline prompt.
            enough_failures: go on until so many failures that count, if `most_baseline` allows.
        """
        if self._baseline is None:
            self._baseline = ImageSeries(caption="", prompt=prompt, step="baseline")
        elif self._baseline.prompt != prompt:
            raise InputError("A search has one baseline prompt.", given=prompt)
        series, wanted = self._baseline, max(enough_failures, self._until)
        while series.stopped is None or series.stopped is StoppedBecause.PRECISE:
            if (
                series.n_images >= 4 * BATCH
                and series.failures >= wanted
                and self._is_precise(series)
            ):
                series.stopped = StoppedBecause.PRECISE
                break
            self._generate(series)
        return self.baseline_trial

    def try_captions(
        self, captions: Sequence[tuple[str, str]], *, step: TrialStep
    ) -> tuple[CaptionTrial, ...]:
        """Generate captions in turn, a batch at a time, until each of them is decided.

        Args:
            captions: pairs of a caption and its whole prompt; a prompt that was tried before is not generated again.
            step: where they come from.

        Returns:
            One trial for each, in order.
        """
        if not self._need_baseline().n_images:
            raise NotEnoughDataError(
                "There are no images of the baseline.", given=self._need_baseline().prompt
            )
        chosen = [self._enter(caption, prompt, step) for caption, prompt in captions]
        self._decide([one for one in chosen if one is not self._baseline])
        by_prompt = {trial.prompt: trial for trial in (self.baseline_trial, *self.trials)}
        return tuple(by_prompt[one.prompt] for one in chosen)

    def same_rate(
        self,
        shorter: CaptionTrial,
        longer: CaptionTrial,
        *,
        margin: float | None = None,
        error_rate: float = MISS_RATE,
        fewest: int = 0,
    ) -> bool:
        """Return whether a shorter caption fails as often as a longer one; generates more of both while images do not tell.

        Args:
            shorter: a trial of this search.
            longer: another.
            margin: how much lower would matter; by default the smallest gain, or a quarter of what the longer one gains if that is
                more.
            error_rate: how often either answer may be wrong.
            fewest: images that both must have; a caption that was proven early looks worse than it is.
        """
        first, second = self._series(shorter), self._series(longer)
        if not first.n_images or not second.n_images:
            return False
        while True:
            gained = second.guess - self._need_baseline().guess
            usual = max(self._settings.smallest_gain, SAME_SHARE * gained)
            allowed = usual if margin is None else margin
            counts, others = (first.failures, first.n_images), (second.failures, second.n_images)
            said = is_same(counts, others, margin=allowed, error_rate=error_rate)
            if said is not None and min(first.n_images, second.n_images) >= fewest:
                return said
            can_grow = [one for one in (first, second) if self._room(one)]
            if not can_grow:
                return bool(
                    first.failures / first.n_images
                    >= second.failures / second.n_images - 0.5 * allowed
                )
            self._generate(min(can_grow, key=lambda one: one.n_asked))

    @property
    def baseline_trial(self) -> CaptionTrial:
        return self._records([])[0]

    @property
    def trials(self) -> tuple[CaptionTrial, ...]:
        """Return every caption tried so far, in order, corrected together."""
        return self._records(self._captions)[1:]

    @property
    def n_asked(self) -> int:
        return sum(one.n_asked for one in self._everyone())

    @property
    def is_spent(self) -> bool:
        return self.n_asked >= self._settings.budget

    def proven_among(self, trials: Sequence[CaptionTrial]) -> tuple[CaptionTrial, ...]:
        """Return which of some captions are still discoveries if only these are reported, as they stand now.

        The false discovery rate is that of all discoveries. Whoever reports only some of them, chosen by looking, keeps it by
        asking here: fewer captions help each other less, but the correction is still for all that may be tried.
        """
        chosen = list(dict.fromkeys(trial.prompt for trial in trials))
        records = self._records([one for one in self._captions if one.prompt in chosen])[1:]
        return tuple(
            sorted(
                (one for one in records if one.is_proven), key=lambda one: chosen.index(one.prompt)
            )
        )

    def failures_of_baseline(self) -> list[JudgedImage]:
        """Return the baseline's failures that count, in the order in which they were generated."""
        return self._need_baseline().failed

    def failed_images(self, trial: CaptionTrial) -> list[JudgedImage]:
        """Return the failures that count of one trial, in the order in which they were generated."""
        return self._series(trial).failed

    def _everyone(self) -> list[ImageSeries]:
        return ([self._baseline] if self._baseline else []) + self._captions

    def _records(self, captions: Sequence[ImageSeries]) -> tuple[CaptionTrial, ...]:
        return caption_trials(
            self._need_baseline(),
            captions,
            alpha=self._settings.alpha,
            most=self._settings.most_captions,
        )

    def _need_baseline(self) -> ImageSeries:
        if self._baseline is None:
            raise InputError("Measure the baseline first.")
        return self._baseline

    def _series(self, trial: CaptionTrial) -> ImageSeries:
        found = next((one for one in self._everyone() if one.prompt == trial.prompt), None)
        if found is None:
            raise InputError("This caption was not tried here.", given=trial.prompt)
        return found

    def _enter(self, caption: str, prompt: str, step: TrialStep) -> ImageSeries:
        known = next((one for one in self._everyone() if one.prompt == prompt), None)
        if known is not None:
            return known
        n_tried = sum(one.n_asked > 0 or one.stopped is None for one in self._captions)
        series = ImageSeries(caption=caption, prompt=prompt, step=step)
        if n_tried >= self._settings.most_captions:
            series.stopped = StoppedBecause.BUDGET
            series.note = f"{n_tried} captions were tried before; more were not announced."
        self._captions.append(series)
        return series

    def _decide(self, chosen: Sequence[ImageSeries]) -> None:
        while True:
            proven = self._prove()
            still_open = [
                one for one in chosen if self._is_open(one, is_proven=one.prompt in proven)
            ]
            if not still_open:
                return
            baseline = self._need_baseline()
            if self._room(baseline) and self._baseline_pays(still_open):
                self._generate(baseline)
            for one in still_open:
                self._generate(one)

    def _prove(self) -> set[str]:
        generated = [one for one in self._captions if one.n_images]
        found = discoveries(
            [self._log_evidence(one) for one in generated],
            alpha=self._settings.alpha,
            most=self._settings.most_captions,
        )
        return {one.prompt for one, is_found in zip(generated, found, strict=True) if is_found}

    def _is_open(self, series: ImageSeries, *, is_proven: bool) -> bool:
        """Return whether a caption needs more images, and note why if it does not."""
        if series.is_final or not series.n_asked:
            return not series.is_final
        if self._until and series.failures >= self._until:
            series.stopped = StoppedBecause.TARGET_FAILURES
        elif is_proven and not self._until:
            series.stopped = StoppedBecause.BETTER
        elif not is_proven and is_futile(
            series.failures,
            series.n_images,
            baseline_rate=self._need_baseline().guess,
            smallest_gain=self._settings.smallest_gain,
        ):
            series.stopped = StoppedBecause.NOT_BETTER
        elif not self._room(series):
            series.stopped = StoppedBecause.BUDGET if self.is_spent else StoppedBecause.MAX_IMAGES
        else:
            return True
        return False

    def _is_precise(self, series: ImageSeries) -> bool:
        error = np.sqrt(series.guess * (1.0 - series.guess) / series.n_images)
        return bool(error <= self._settings.smallest_gain / BASELINE_PRECISION)

    def _baseline_pays(self, still_open: Sequence[ImageSeries]) -> bool:
        by_baseline, by_caption = 0.0, [0.0]
        least = self._need_baseline().guess + self._settings.smallest_gain
        for one in still_open:
            if one.n_images >= 2 * BATCH and one.guess > least:
                now = self._log_evidence(one)
                by_baseline += self._log_evidence(one, more_baseline=BATCH) - now
                by_caption.append(self._log_evidence(one, more=BATCH) - now)
        return by_baseline > max(by_caption)

    def _log_evidence(self, series: ImageSeries, *, more: int = 0, more_baseline: int = 0) -> float:
        baseline = self._need_baseline()
        return log_evidence(
            series.failures + more * series.guess,
            series.n_images + more,
            baseline.failures + more_baseline * baseline.guess,
            baseline.n_images + more_baseline,
        )

    def _room(self, series: ImageSeries) -> int:
        """Return how many more images of a prompt may be generated."""
        most = (
            self._settings.most_baseline
            if series is self._baseline
            else self._settings.most_per_caption
        )
        return (
            0
            if series.is_final or series.has_ended
            else max(0, min(most - series.n_asked, self._settings.budget - self.n_asked))
        )

    def _generate(self, series: ImageSeries) -> None:
        n_images = min(self._room(series), BATCH)
        if not n_images:
            series.stopped = StoppedBecause.BUDGET if self.is_spent else StoppedBecause.MAX_IMAGES
            return
        try:
            draws = self._sampler.generate(
                series.prompt, self._class_name, first=series.n_asked, n=n_images
            )
        except RefusedPromptError as error:
            series.stopped, series.note = StoppedBecause.REFUSED, str(error)
            return
        series.take(draws, self._referee, n_asked=draws.n_asked)
        if draws.n_asked < n_images:
            series.has_ended = True
        if not series.n_images and series.n_asked >= NOTHING_KEPT_BATCHES * BATCH:
            series.stopped = StoppedBecause.REJECTED
        self._progress(self.n_asked, self._settings.budget)
