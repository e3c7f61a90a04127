"""When to stop generating: cheap rules that decide about cost and power, never about what is proven.

The false discovery rate of many e-values (e-BH), whatever their dependence and whenever each of them was stopped.

All captions share the images of the baseline, and captions are chosen by looking at what came before; p-value procedures promise
nothing then. Of the k best e-values all are discoveries if each of them is at least m / (alpha k). A false discovery among k then
weighs 1 / k, which is at most alpha / m times its e-value, and e-values of true hypotheses are at most 1 on average.

m is the number of captions that may be tried, fixed beforehand: the number that happened to be tried depends on what was found.

The design that one would need without looking on the way: as many images of every caption, decided beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray
from weakspot.core.errors import InputError


def discovery_rates(log_e_values: Sequence[float] | AnyArray, *, most: int) -> DoubleArray:
    """Return for every e-value the false discovery rate at which it would just be a discovery.

    Args:
        log_e_values: natural logarithms [k].
        most: how many hypotheses there may be, fixed beforehand, at least k.

    >>> discovery_rates([np.log(400.0), np.log(100.0), 0.0], most=10).round(3).tolist()
    [0.025, 0.05, 1.0]
    """
    values = np.asarray(log_e_values, dtype=np.float64)
    if len(values) > most:
        raise InputError(
            "There are more hypotheses than were announced.", given=(len(values), most)
        )
    order = np.argsort(-values, kind="stable")
    with np.errstate(over="ignore"):
        stepped = np.exp(np.log(most) - np.log(np.arange(1, len(values) + 1)) - values[order])
    rates = np.empty_like(values)
    rates[order] = np.minimum.accumulate(stepped[::-1])[::-1]
    return np.asarray(np.minimum(rates, 1.0))


def discoveries(log_e_values: Sequence[float] | AnyArray, *, alpha: float, most: int) -> BoolArray:
    """Return which hypotheses are discoveries when the false discovery rate is held at `alpha`.

    >>> discoveries([np.log(400.0), np.log(100.0), 0.0], alpha=0.05, most=10).tolist()
    [True, True, False]
    """
    return np.less_equal(discovery_rates(log_e_values, most=most), alpha * (1 + 1e-12))


MISS_RATE = 0.1
PLANNED_GAIN = 1.5
NEARLY_NEVER = 0.005


def is_futile(
    failures: int,
    n_images: int,
    *,
    baseline_rate: float,
    smallest_gain: float,
    miss_rate: float = MISS_RATE,
) -> bool:
    """Return whether a caption hardly fails by the smallest gain more often than the baseline.

    Wald's boundary: predictions are at most `miss_rate` times as likely if the caption gains half as much again as the smallest gain
    as if it gains nothing. Of captions with exactly the smallest gain about a third are given up, of those with twice as much 2 %.

    Args:
        failures: of the caption so far.
        n_images: of the caption so far.
        baseline_rate: as estimated.
        smallest_gain: what one would like to find.
        miss_rate: how often a caption with half as much again may be given up.

    >>> is_futile(3, 64, baseline_rate=0.1, smallest_gain=0.1), is_futile(2, 8, baseline_rate=0.1, smallest_gain=0.1)
    (True, False)
    """
    rate = min(max(baseline_rate, NEARLY_NEVER), 1.0 - NEARLY_NEVER)
    gained = min(rate + PLANNED_GAIN * smallest_gain, 0.5 * (1.0 + rate))
    passes = n_images - failures
    return bool(
        failures * np.log(gained / rate) + passes * np.log((1.0 - gained) / (1.0 - rate))
        <= np.log(miss_rate)
    )


def is_same(
    counts: tuple[int, int], other: tuple[int, int], *, margin: float, error_rate: float = MISS_RATE
) -> bool | None:
    """Return whether a rate is at least another one rather than lower by the margin; None as long as images do not tell.

    Wald's test of "equal" against "lower by the margin" on the difference of the two observed rates.

    Args:
        counts: failures and images of the one.
        other: failures and images of the other.
        margin: by how much it would have to be lower to matter.
        error_rate: how often either answer may be wrong.

    >>> is_same((40, 50), (41, 50), margin=0.2), is_same((10, 50), (41, 50), margin=0.2), is_same((3, 4), (4, 4), margin=0.2)
    (True, False, None)
    """
    rates = [(failures + 0.5) / (n_images + 1.0) for failures, n_images in (counts, other)]
    variance = sum(
        rate * (1.0 - rate) / max(n, 1) for rate, (_, n) in zip(rates, (counts, other), strict=True)
    )
    score = margin * (rates[0] - rates[1] + 0.5 * margin) / variance
    bound = np.log((1.0 - error_rate) / error_rate)
    return None if abs(score) < bound else bool(score > 0)


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
    def total(self) -> int:
        return self.baseline + self.n_captions * self.per_caption


def fixed_design(
    baseline_rate: float, gain: float, *, n_captions: int, alpha: float = 0.05, power: float = 0.9
) -> FixedDesign:
    """Return the fixed design in which a caption with this gain is found with this power.

    The one-sided test of two proportions at level alpha / n_captions, which is what a false discovery rate asks of a single
    discovery, by its normal approximation. The baseline, which all captions share, gets the square root of the number of captions
    times as many images as a caption: the division with the fewest images in all.

    >>> fixed_design(0.1, 0.1, n_captions=20).total
    5874
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
