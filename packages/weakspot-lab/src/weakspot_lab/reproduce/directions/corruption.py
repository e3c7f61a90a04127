"""Corrupted images (ImageNet-C in the paper): a tenth of training and half of validation and test is noisy; who is put first?"""

from dataclasses import replace

import numpy as np

from weakspot.core.arrays import generator, unit_rows
from weakspot_lab.reproduce.directions.case import TEST, TRAIN, Case
from weakspot_lab.reproduce.directions.probing import doubts, minority_shares, probe
from weakspot_lab.reproduce.directions.scenes import scene_case
from weakspot_lab.reproduce.directions.spurious import counts_of, plan_of, sizes_of
from weakspot_lab.reproduce.protocol import Context, StepResult

TRAINING_SHARE, EVALUATION_SHARE = 0.1, 0.5
NOISE = 45.0
SEEN = 0.5
"""How far noise moves an embedding, beside errors of the same size as in every other direction."""


def corrupted_case(context: Context, number: int) -> Case:
    """Return scenes without a spurious cue, some of them noisy; the minority are the noisy ones."""
    seed = context.seed_of("corruption", str(number))
    case = scene_case(1.0, sizes_of(context.request), seed=seed)
    draws = generator(seed, "corruption")
    share = np.where(case.splits == TRAIN.value, TRAINING_SHARE, EVALUATION_SHARE)
    noisy = draws.random(len(share)) < share
    inputs = case.inputs.astype(np.float64)
    inputs[noisy] += NOISE * draws.standard_normal(inputs[noisy].shape)
    axis = SEEN * noisy + 0.12 * draws.standard_normal(len(noisy))
    embeddings = np.concatenate([case.embeddings, axis[:, None]], axis=1)
    return replace(
        case,
        inputs=np.asarray(np.clip(inputs, 0, 255), dtype=np.uint8),
        embeddings=unit_rows(embeddings.astype(np.float32)),
        is_minority=np.asarray(noisy, dtype=np.bool_),
        embed_texts=None,
    )


def measure_corruption(context: Context, number: int) -> StepResult:
    """Measure the share of noisy images among the first ones, by the SVM and by confidence."""
    request = context.request
    case = corrupted_case(context, number)
    seed = context.seed_of("corruption", str(number))
    network = case.train(plan_of(request, seed))
    probabilities = network.probabilities(case.inputs)
    found = probe(case, probabilities, seed=seed)
    test = case.rows(TEST)
    noisy = case.is_minority[test]
    orders = {
        "svm": found.scores(test),
        "confidence": doubts(probabilities[test], case.labels[test]),
    }
    return {
        "accuracy on clean": case.accuracy(network, test[~noisy]),
        "accuracy on noisy": case.accuracy(network, test[noisy]),
        **{
            name: float(np.mean(minority_shares(case, one, test, counts_of(request))))
            for name, one in orders.items()
        },
    }
