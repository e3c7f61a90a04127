"""The design that one would need without looking on the way: as many pictures of every caption, decided beforehand."""

from dataclasses import dataclass
from math import ceil, sqrt


@dataclass(frozen=True, kw_only=True)
class FixedDesign:
    """How many pictures to draw.

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
        """Return the pictures in all."""
        return self.baseline + self.n_captions * self.per_caption


def fixed_design(baseline_rate: float, gain: float, *, n_captions: int, alpha: float = 0.05, power: float = 0.9) -> FixedDesign:
    """Return the fixed design in which a caption with this gain is found with this power.

    The one-sided test of two proportions at level alpha / n_captions, which is what a false discovery rate asks of a single
    discovery, by its normal approximation. The baseline, which all captions share, gets the square root of the number of captions
    times as many pictures as a caption: the division with the fewest pictures in all.

    >>> fixed_design(0.1, 0.1, n_captions=20).total
    5874
    """
    from scipy.special import ndtri

    other = min(baseline_rate + gain, 1.0)
    share = sqrt(n_captions)
    pooled = (baseline_rate * share + other) / (share + 1.0)
    under_none = sqrt(pooled * (1.0 - pooled) * (1.0 + 1.0 / share))
    under_gain = sqrt(other * (1.0 - other) + baseline_rate * (1.0 - baseline_rate) / share)
    needed = (float(ndtri(1.0 - alpha / n_captions)) * under_none + float(ndtri(power)) * under_gain) / (other - baseline_rate)
    per_caption = ceil(needed**2)
    return FixedDesign(per_caption=per_caption, baseline=ceil(per_caption * share), n_captions=n_captions)
