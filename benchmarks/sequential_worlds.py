"""Worlds of known failure rates, for the benchmark sequential.py."""

import json
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import generator
from weakspot.core.failures import FailureCriterion
from weakspot.generate.search.series import SampledImages
from weakspot.generate.search.trials import CaptionTrials, SequentialDesign

ALPHA, GAIN, MAX_CAPTIONS = 0.05, 0.1, 40


DESIGN = SequentialDesign(alpha=ALPHA, smallest_gain=GAIN, most_captions=MAX_CAPTIONS)


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
    design: SequentialDesign = DESIGN

    @property
    def rates(self):
        """Return the rate of every caption."""
        return (*self.planted, *[self.baseline] * (self.n_captions - len(self.planted)))

    def played(self):
        """Return the share of planted ones found, that of false ones among the found, and the images of every kind."""
        captions = [f"caption {place}" for place in range(self.n_captions)]
        rates = {BASELINE: self.baseline, **dict(zip(captions, self.rates, strict=True))}
        group_objective = CaptionTrials(
            KnownRates(rates, self.seed),
            class_name="fly",
            criterion=FailureCriterion(),
            design=self.design,
        )
        group_objective.baseline(BASELINE)
        group_objective.try_captions([(caption, caption) for caption in captions], step="user")
        trials, n_planted = group_objective.trials, len(self.planted)
        found = np.array([trial.is_proven for trial in trials])
        drawn = np.array([trial.n_asked for trial in trials])
        return {
            "found": found[:n_planted].mean() if n_planted else 0.0,
            "false": found[n_planted:].sum() / max(1, found.sum()),
            "images": float(group_objective.n_asked),
            "of_baseline": group_objective.baseline_trial.n_asked,
            "of_each_planted": drawn[:n_planted].mean() if n_planted else 0.0,
            "of_each_other": drawn[n_planted:].mean() if n_planted < self.n_captions else 0.0,
        }


def mean_of(worlds):
    """Return the mean of what is measured over worlds."""
    played = [world.played() for world in worlds]
    return {name: float(np.mean([one[name] for one in played])) for name in played[0]}
