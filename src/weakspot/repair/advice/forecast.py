"""What labelling n more images will bring, with an interval, read off a learning curve."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import DoubleArray
from weakspot.core.evidence import Interval
from weakspot.core.seeding import generator
from weakspot.repair.advice.learning_curve import CurvePoint, LearningCurve

LEVEL = 0.9
ENOUGH = 0.8
N_DRAWS = 4_000
PRIOR = 0.5
LEAST_KEPT = 0.3
MOST_SHARED = 0.8


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What is expected of so many more labelled images of a kind.

    Args:
        n_wanted: images of the kind to add.
        gain: expected change of accuracy on the kind.
        interval: of the change that will be measured on `n_measured` images of the kind.
        reachable: the gain with the most images that could be tried out.
        n_most: how many these were.
        elsewhere: expected change of accuracy on all other evaluation images.
        is_rising: whether the curve still rose at its end, so that more may bring more.
    """

    n_wanted: int
    gain: float
    interval: Interval
    reachable: float
    n_most: int
    elsewhere: float
    is_rising: bool

    @property
    def helps(self) -> bool:
        """Return whether a gain is to be expected, chance allowed for."""
        return self.interval.low > 0.0


def forecast_gain(curve: LearningCurve, *, n_measured: int, seed: int) -> Forecast:
    """Return the smallest number of images that brings `ENOUGH` of what the most that were tried bring, and its gain.

    Args:
        curve: drawn on the discovery half.
        n_measured: images of the kind on which the gain will be measured.
        seed: of the draws.
    """
    last = curve.points[-1]
    wanted = next(
        (point for point in curve.points[1:] if last.gain > 0 and point.gain >= ENOUGH * last.gain),
        last,
    )
    return Forecast(
        n_wanted=wanted.n_added,
        gain=wanted.gain,
        interval=gain_interval(wanted, curve.n_units, n_measured=n_measured, seed=seed),
        reachable=last.gain,
        n_most=last.n_added,
        elsewhere=wanted.elsewhere,
        is_rising=wanted is last and len(curve.points) > 2 and _rises(curve),  # noqa: PLR2004
    )


def _rises(curve: LearningCurve) -> bool:
    return curve.points[-1].gain > curve.points[-2].gain / ENOUGH > 0


def gain_interval(point: CurvePoint, n_units: int, *, n_measured: int, seed: int) -> Interval:
    """Return an interval of the gain that will be measured, by drawing what can happen.

    Three things are not known: how the kind does in general (it is seen on few images), which images will be labelled (it matters
    which ones were added), and on which images the gain will be measured.
    """
    rng = generator(seed, "gain of labels")
    shares = _shares(point)
    likely = rng.dirichlet(shares * n_units + PRIOR / len(shares), size=N_DRAWS)
    counts = rng.multinomial(max(n_measured, 1), likely)
    measured = (counts[:, 2] - counts[:, 0]) / max(n_measured, 1)
    draws = np.clip(measured + rng.choice(_deviations(point), size=N_DRAWS), -1.0, 1.0)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(low=float(low), high=float(high), level=LEVEL)


def _shares(point: CurvePoint) -> DoubleArray:
    """Return the shares of samples that are lost, stay and are gained, every sample counting once."""
    seen = ~np.isnan(point.changes)
    counts = seen.sum(axis=0)
    per_sample = [
        (point.changes == change).sum(axis=0)[counts > 0] / counts[counts > 0]
        for change in (-1, 0, 1)
    ]
    return np.asarray(np.mean(per_sample, axis=1), dtype=np.float64)


def _deviations(point: CurvePoint) -> DoubleArray:
    """Return by how much each repeat did better than its held-out samples usually do: what depends on which ones were added.

    Few are held out, so that most of it is chance, which is taken away. Few can be added, so that any two repeats share some of them:
    by that it is widened.
    """
    seen = ~np.isnan(point.changes)
    counts = np.maximum(seen.sum(axis=0), 1)
    usual = np.where(seen, point.changes, 0.0).sum(axis=0) / counts
    differences = np.where(seen, point.changes - usual, 0.0)
    n_out = np.maximum(seen.sum(axis=1), 1)
    own = differences.sum(axis=1) / n_out
    total = float(np.mean(own**2))
    by_chance = float(np.mean((differences**2).sum(axis=1) / n_out**2))
    kept = np.sqrt(max(total - by_chance, 0.0) / total) if total > 0 else 0.0
    shared = min(point.n_added / point.changes.shape[1], MOST_SHARED)
    return np.asarray(own * max(kept, LEAST_KEPT) / np.sqrt(1.0 - shared), dtype=np.float64)
