"""What failures of training samples say about rules, before any failure of the samples that test them is looked at.

After Genovese, Roeder and Wasserman, *False Discovery Control with p-Value Weighting* (2006): weights that the tested samples have no
part in keep every error rate, good or bad as they are.
"""

from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray, even_part
from weakspot.core.failures import ClassProblem
from weakspot.core.likelihood import log_ratios
from weakspot.core.rules import Rule
from weakspot.core.samples import SampleSet

UNMOVED = 0.5
"""Part of all weight that training does not move: where its failures mislead, every rule keeps half of what it had."""
LARGEST_ODDS = 20.0
MOST_SAMPLES = 5_000


def weighed_by_training(
    weights: DoubleArray,
    rules: Sequence[Rule],
    training: ClassProblem,
    samples: SampleSet,
    *,
    failure_rate: float,
) -> DoubleArray:
    """Return weights [m], together 1, of which half go to rules whose training members fail more often than others.

    A classifier that fails less in training than elsewhere has learnt these samples by heart, and which of them it still fails on
    says little: odds are taken to the power of the quotient of both rates.

    Args:
        weights: of the rules without training, together 1 [m].
        rules: made without predictions.
        training: samples of their class that share no group with those that will be tested.
        samples: all samples.
        failure_rate: of the class among those that will be tested.
    """
    some = training.only(even_part(np.arange(len(training.rows)), MOST_SAMPLES))
    if not some.n_failed or not some.n_right:
        return weights
    trust = min(1.0, float(some.failed.mean()) / failure_rate) * some.worth
    members = [rule.members(samples, some.rows) for rule in rules]
    odds = np.exp(np.minimum(trust * _log_odds(members, some.failed), np.log(LARGEST_ODDS)))
    moved = weights * odds
    return np.asarray(UNMOVED * weights + (1.0 - UNMOVED) * moved / moved.sum())


def _log_odds(members: Sequence[BoolArray], failed: BoolArray) -> DoubleArray:
    sizes: IntArray = np.array([int(inside.sum()) for inside in members])
    failures = np.array([int((inside & failed).sum()) for inside in members])
    ratios = log_ratios(sizes, len(failed), int(failed.sum()))
    return np.asarray(ratios[np.arange(len(sizes)), failures])
