"""The false discovery rate of many e-values (e-BH), whatever their dependence and whenever each of them was stopped.

All captions share the pictures of the baseline, and captions are chosen by looking at what came before; p-value procedures promise
nothing then. Of the k best e-values all are discoveries if each of them is at least m / (alpha k). A false discovery among k then
weighs 1 / k, which is at most alpha / m times its e-value, and e-values of true hypotheses are at most 1 on average.

m is the number of captions that may be tried, fixed beforehand: the number that happened to be tried depends on what was found.
"""

from collections.abc import Sequence

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
        raise InputError("There are more hypotheses than were announced.", given=(len(values), most))
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
