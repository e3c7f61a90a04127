"""Tinted digits (Colored MNIST in the paper): strength, and what doubling the flagged images does."""

import numpy as np

from weakspot_lab.reproduce.directions.case import TEST, TRAIN
from weakspot_lab.reproduce.directions.digits import DigitSizes, digit_case
from weakspot_lab.reproduce.directions.probing import probe
from weakspot_lab.reproduce.protocol import Context, StepResult
from weakspot_lab.small_networks import NetworkPlan

SHARES = (0.5, 0.7, 0.9)
DOUBLE = 2.0


def measure_tint(context: Context, share: float) -> StepResult:
    """Measure strength and test accuracy at one share of tinted training images, and after doubling what the SVM flags."""
    request = context.request
    sizes = request.pick(DigitSizes(), DigitSizes(train=400, validation=200, test=200))
    strength, before, after = [], [], []
    for number in range(request.pick(2, 1)):
        seed = context.seed_of("tint", str(number))
        case = digit_case(share, sizes, seed=seed)
        plan = NetworkPlan(width=8, n_epochs=request.pick(10, 3), seed=seed)
        base = case.train(plan)
        found = probe(case, base.probabilities(case.inputs), seed=seed)
        flagged = found.flagged(case.rows(TRAIN))
        repaired = case.train(plan, weights=np.where(flagged, DOUBLE, 1.0))
        strength.append(found.mean_strength)
        before.append(case.accuracy(base, case.rows(TEST)))
        after.append(case.accuracy(repaired, case.rows(TEST)))
    return {"share": share, "strength": strength, "before": before, "after": after}
