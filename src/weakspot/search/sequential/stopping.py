"""When to stop drawing: cheap rules that decide about cost and power, never about what is proven."""

import numpy as np

MISS_RATE = 0.1
PLANNED_GAIN = 1.5
NEARLY_NEVER = 0.005


def is_futile(failures: int, n_pictures: int, *, baseline_rate: float, smallest_gain: float, miss_rate: float = MISS_RATE) -> bool:
    """Return whether a caption hardly fails by the smallest gain more often than the baseline.

    Wald's boundary: outcomes are at most `miss_rate` times as likely if the caption gains half as much again as the smallest gain
    as if it gains nothing. Of captions with exactly the smallest gain about a third are given up, of those with twice as much 2 %.

    Args:
        failures: of the caption so far.
        n_pictures: of the caption so far.
        baseline_rate: as estimated.
        smallest_gain: what one would like to find.
        miss_rate: how often a caption with half as much again may be given up.

    >>> is_futile(3, 64, baseline_rate=0.1, smallest_gain=0.1), is_futile(2, 8, baseline_rate=0.1, smallest_gain=0.1)
    (True, False)
    """
    rate = min(max(baseline_rate, NEARLY_NEVER), 1.0 - NEARLY_NEVER)
    gained = min(rate + PLANNED_GAIN * smallest_gain, 0.5 * (1.0 + rate))
    passes = n_pictures - failures
    return bool(failures * np.log(gained / rate) + passes * np.log((1.0 - gained) / (1.0 - rate)) <= np.log(miss_rate))


def is_same(counts: tuple[int, int], other: tuple[int, int], *, margin: float, error_rate: float = MISS_RATE) -> bool | None:
    """Return whether a rate is at least another one rather than lower by the margin; None as long as pictures do not tell.

    Wald's test of "equal" against "lower by the margin" on the difference of the two observed rates.

    Args:
        counts: failures and pictures of the one.
        other: failures and pictures of the other.
        margin: by how much it would have to be lower to matter.
        error_rate: how often either answer may be wrong.

    >>> is_same((40, 50), (41, 50), margin=0.2), is_same((10, 50), (41, 50), margin=0.2), is_same((3, 4), (4, 4), margin=0.2)
    (True, False, None)
    """
    rates = [(failures + 0.5) / (n_pictures + 1.0) for failures, n_pictures in (counts, other)]
    variance = sum(rate * (1.0 - rate) / max(n, 1) for rate, (_, n) in zip(rates, (counts, other), strict=True))
    score = margin * (rates[0] - rates[1] + 0.5 * margin) / variance
    bound = np.log((1.0 - error_rate) / error_rate)
    return None if abs(score) < bound else bool(score > 0)
