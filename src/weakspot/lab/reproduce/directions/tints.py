"""Colored MNIST and ChestX-ray14 in the paper: tinted digits, and one binary problem a condition of a multi-label task."""

import numpy as np

from weakspot.backends.small_networks import NetworkPlan
from weakspot.core.dataset import Split
from weakspot.core.failures import best_f1_thresholds, class_problems
from weakspot.lab.reproduce.directions.case import TEST, TRAIN
from weakspot.lab.reproduce.directions.digits import DigitSizes, digit_case
from weakspot.lab.reproduce.directions.probing import CRITERION, PAPER_SVM, probe
from weakspot.lab.reproduce.protocol import Context, StepResult
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import spurious

SHARES = (0.5, 0.7, 0.9)
DOUBLE = 2.0
CONDITION_RHO = 0.9


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


def measure_conditions(context: Context, number: int) -> StepResult:
    """Measure a multi-label world: thresholds by F1 on validation samples, one SVM for having and one for lacking a label."""
    request, seed = context.request, context.seed_of("conditions", str(number))
    world = plant(
        spurious(CONDITION_RHO),
        request.pick(6000, 1200),
        seed=seed,
        is_multi_label=True,
        embedding_noise=0.15,
    )
    dataset, truth = world.dataset, world.slices[0]
    validation = dataset.rows_of(Split.VALIDATION)
    assert dataset.probabilities is not None
    thresholds = best_f1_thresholds(
        np.asarray(dataset.probabilities[validation]), dataset.label_matrix[validation]
    )
    dataset = dataset.with_predictions(
        probabilities=np.asarray(dataset.probabilities), thresholds=thresholds
    )
    from dataclasses import replace

    samples = replace(world.samples(Split.VALIDATION), dataset=dataset)
    found = PAPER_SVM.discover(samples, CRITERION, seed=seed)
    test = dataset.rows_of(Split.TEST)
    own = next(
        one for one in found.slices if (one.class_name, one.side) == (truth.class_name, truth.side)
    )
    problem = next(
        one
        for one in class_problems(dataset, test, CRITERION)
        if (one.class_name, one.side) == (truth.class_name, truth.side)
    )
    code = dataset.class_code(truth.class_name)
    inside = truth.inside[problem.rows]
    believed = np.asarray(dataset.probabilities)[problem.rows, code]
    doubt = -believed if truth.side is None or truth.side.value == "present" else believed
    count = request.pick(100, 20)
    orders = {"svm": own.rule.scores(samples, problem.rows), "confidence": doubt}
    return {
        "class": truth.class_name,
        "in test": float(inside.mean()),
        "strength": own.strength,
        **{
            name: float(inside[np.argsort(-scores, kind="stable")[:count]].mean())
            for name, scores in orders.items()
        },
    }
