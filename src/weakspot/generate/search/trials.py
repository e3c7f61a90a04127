"""Captions against the baseline: generates images where they decide something, and stops as soon as they do."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.errors import DataError, InputError, NotEnoughDataError, RefusedPromptError
from weakspot.core.failures import FailureCriterion
from weakspot.core.run import Progress, no_progress
from weakspot.generate.search.sequential import (
    MISS_RATE,
    discoveries,
    is_futile,
    is_same,
    log_evidence,
)
from weakspot.generate.search.series import (
    CaptionTrial,
    ImageSeries,
    JudgedImage,
    Referee,
    Sampler,
    StoppedBecause,
    TrialStep,
    caption_trials,
)
from weakspot.run.settings import SearchSettings

BASELINE_PRECISION = 4.0
NOTHING_KEPT_BATCHES = 3
SAME_SHARE = 0.25


BATCH = 8
"""Images that are generated at a time."""


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
