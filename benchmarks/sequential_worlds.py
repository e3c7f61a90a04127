"""Worlds of known failure rates, for the benchmark sequential.py."""

import json
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from weakspot.core.arrays import generator
from weakspot.core.failures import FailureCriterion
from weakspot.generate.search.series import CaptionTrials, SampledImages
from weakspot.run.settings import SearchSettings

ALPHA, GAIN, MAX_CAPTIONS = 0.05, 0.1, 40


SETTINGS = SearchSettings(alpha=ALPHA, smallest_gain=GAIN, most_captions=MAX_CAPTIONS)


KNOWN_GAIN = 0.3


BASELINE = "baseline"


def show(figure, **values):
    """Print one figure."""
    print(
        json.dumps({"figure": figure, **{name: _short(value) for name, value in values.items()}}),
        flush=True,
    )


def _short(value):
    return round(float(value), 4) if isinstance(value, float | np.floating) else value


class KnownRates:
    """A sampler whose images fail with known rates."""

    class_names = ("fly", "bee")
    caption_source = "nobody"

    def __init__(self, rates, seed):
        self._predictions = {
            prompt: generator(seed, prompt).random(4000) < rate for prompt, rate in rates.items()
        }

    def generate(self, prompt, class_name, *, first, n):
        """Return the next predictions of a prompt."""
        failed = self._predictions[prompt][first : first + n].astype(np.float32)
        keys = tuple(f"{class_name} {prompt} {place}" for place in range(first, first + n))
        return SampledImages(
            keys=keys, probabilities=np.stack([1 - failed, failed], axis=1), n_asked=n, rejected={}
        )


@dataclass(frozen=True, kw_only=True)
class World:
    """A baseline and captions, the planted ones first."""

    baseline: float
    planted: tuple[float, ...]
    n_captions: int
    seed: int
    settings: SearchSettings = SETTINGS

    @property
    def rates(self):
        """Return the rate of every caption."""
        return (*self.planted, *[self.baseline] * (self.n_captions - len(self.planted)))

    def played(self):
        """Return the share of planted ones found, that of false ones among the found, and the images of every kind."""
        captions = [f"caption {place}" for place in range(self.n_captions)]
        rates = {BASELINE: self.baseline, **dict(zip(captions, self.rates, strict=True))}
        tried = CaptionTrials(
            KnownRates(rates, self.seed),
            class_name="fly",
            criterion=FailureCriterion(),
            settings=self.settings,
        )
        tried.baseline(BASELINE)
        tried.try_captions([(caption, caption) for caption in captions], step="user")
        trials, n_planted = tried.trials, len(self.planted)
        found = np.array([trial.is_proven for trial in trials])
        drawn = np.array([trial.n_asked for trial in trials])
        return {
            "found": found[:n_planted].mean() if n_planted else 0.0,
            "false": found[n_planted:].sum() / max(1, found.sum()),
            "images": float(tried.n_asked),
            "of_baseline": tried.baseline_trial.n_asked,
            "of_each_planted": drawn[:n_planted].mean() if n_planted else 0.0,
            "of_each_other": drawn[n_planted:].mean() if n_planted < self.n_captions else 0.0,
        }


@dataclass(frozen=True, kw_only=True)
class FixedDesign:
    """How many images to generate.

    Args:
        per_caption: of every caption.
        baseline: of the baseline.
        n_captions: how many captions.
    """

    per_caption: int
    baseline: int
    n_captions: int

    @property
    def total(self):
        """Return the images of the whole design."""
        return self.baseline + self.n_captions * self.per_caption


def fixed_design(baseline_rate, gain, *, n_captions, alpha=0.05, power=0.9):
    """Return the fixed design in which a caption with this gain is found with this power.

    The one-sided test of two proportions at level alpha / n_captions, which is what a false discovery rate asks of a single
    discovery, by its normal approximation. The baseline, which all captions share, gets the square root of the number of captions
    times as many images as a caption: the division with the fewest images in all.
    """
    from scipy.special import ndtri

    other = min(baseline_rate + gain, 1.0)
    share = sqrt(n_captions)
    pooled = (baseline_rate * share + other) / (share + 1.0)
    under_none = sqrt(pooled * (1.0 - pooled) * (1.0 + 1.0 / share))
    under_gain = sqrt(other * (1.0 - other) + baseline_rate * (1.0 - baseline_rate) / share)
    needed = (
        float(ndtri(1.0 - alpha / n_captions)) * under_none + float(ndtri(power)) * under_gain
    ) / (other - baseline_rate)
    per_caption = ceil(needed**2)
    return FixedDesign(
        per_caption=per_caption, baseline=ceil(per_caption * share), n_captions=n_captions
    )


def mean_of(worlds):
    """Return the mean of what is measured over worlds."""
    played = [world.played() for world in worlds]
    return {name: float(np.mean([one[name] for one in played])) for name in played[0]}
