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
"""Part of every weight that training does not move: where its failures mislead, a rule has at least half of its weight."""
LARGEST_ODDS = 20.0
MOST_SAMPLES = 5_000


def training_odds(
    rules: Sequence[Rule], training: ClassProblem, samples: SampleSet, failure_rate: float
) -> DoubleArray:
    """Return for every rule how much more it is worth trying, as its training members fail more often than others.

    A classifier that fails less often in training than elsewhere has learnt these samples by heart, and which of them it still fails
    on says little: the odds are taken to the power of the quotient of both rates.

    Args:
        rules: made without predictions.
        training: samples of their class that share no group with those that will be tested.
        samples: all samples.
        failure_rate: of the class among those that will be tested.
    """
    places = even_part(np.arange(len(training.rows)), MOST_SAMPLES)
    training = training.only(places)
    if not training.n_failed or not training.n_right:
        return np.ones(len(rules))
    trust = min(1.0, float(training.failed.mean()) / failure_rate) * training.worth
    members = [rule.members(samples, training.rows) for rule in rules]
    logs = _log_odds(members, training.failed)
    odds = np.exp(np.minimum(trust * logs, np.log(LARGEST_ODDS)))
    return np.asarray(UNMOVED + (1.0 - UNMOVED) * odds)


def _log_odds(members: Sequence[BoolArray], failed: BoolArray) -> DoubleArray:
    sizes: IntArray = np.array([int(inside.sum()) for inside in members])
    failures = np.array([int((inside & failed).sum()) for inside in members])
    ratios = log_ratios(sizes, len(failed), int(failed.sum()))
    return np.asarray(ratios[np.arange(len(sizes)), failures])
