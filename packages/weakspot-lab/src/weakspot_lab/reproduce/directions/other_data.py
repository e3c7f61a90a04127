"""Directions on tinted digits (for Colored MNIST) and on noisy scenes (for ImageNet-C)."""

from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, generator, unit_rows
from weakspot_lab.reproduce.directions.case import TEST, TRAIN, VALIDATION, Case
from weakspot_lab.reproduce.directions.probing import doubts, minority_shares, probe
from weakspot_lab.reproduce.directions.scenes import scene_case
from weakspot_lab.reproduce.directions.spurious import counts_of, plan_of, sizes_of
from weakspot_lab.reproduce.protocol import Context, StepResult
from weakspot_lab.small_networks import NetworkPlan

FLIPPED = 0.25
HALF_OF_DIGITS = 5
N_COMPONENTS = 20
EVEN = 0.5


@dataclass(frozen=True, kw_only=True)
class DigitSizes:
    """How many images there are; digits recur with other shifts and tints, but never in two splits."""

    train: int = 3000
    validation: int = 1500
    test: int = 1500


def digit_case(tinted: float, sizes: DigitSizes, *, seed: int) -> Case:
    """Return digits whose tint goes with the label in so many training images; elsewhere it says nothing.

    A label says whether the digit is at least five, and is flipped in a quarter of all images, as in the paper. The minority
    are images whose tint is that of the other label.
    """
    from sklearn.datasets import load_digits

    loaded = load_digits()
    draws = generator(seed, "digits", f"{tinted:g}")
    order = generator(0, "digits", "parts").permutation(len(loaded.target))
    parts = np.array_split(order, 4)
    sources = {TRAIN: np.concatenate(parts[:2]), VALIDATION: parts[2], TEST: parts[3]}
    wanted = {TRAIN: sizes.train, VALIDATION: sizes.validation, TEST: sizes.test}
    taken = np.concatenate([draws.choice(sources[one], wanted[one]) for one in wanted])
    splits = np.concatenate([np.full(wanted[one], one.value) for one in wanted])
    labels = (loaded.target[taken] >= HALF_OF_DIGITS).astype(np.int64)
    labels = np.where(draws.random(len(labels)) < FLIPPED, 1 - labels, labels)
    agrees = draws.random(len(labels)) < np.where(splits == TRAIN.value, tinted, EVEN)
    tints = np.where(agrees, labels, 1 - labels)
    grey = loaded.images[taken] / 16.0
    shifts = draws.integers(-1, 2, (len(grey), 2))
    grey = np.stack(
        [np.roll(one, shift, axis=(0, 1)) for one, shift in zip(grey, shifts, strict=True)]
    )
    grey = np.clip(grey + 0.1 * draws.standard_normal(grey.shape), 0, 1)
    coloured = np.zeros((*grey.shape, 3))
    coloured[np.arange(len(grey)), :, :, tints] = grey
    images = np.repeat(np.repeat(coloured, 2, axis=1), 2, axis=2)
    return Case(
        class_names=("small", "large"),
        labels=labels,
        is_minority=np.asarray(~agrees, dtype=np.bool_),
        splits=splits,
        inputs=np.asarray(255 * images, dtype=np.uint8),
        embeddings=_encoded(grey, tints, splits, draws),
    )


def _encoded(
    grey: AnyArray, tints: AnyArray, splits: AnyArray, draws: np.random.Generator
) -> FloatArray:
    """Return what an encoder that was trained on something else may see: principal components of the shape, and the tint."""
    flat = grey.reshape(len(grey), -1)
    centred = flat - flat[splits == TRAIN.value].mean(axis=0)
    _, _, axes = np.linalg.svd(centred[splits == TRAIN.value], full_matrices=False)
    shapes = centred @ axes[:N_COMPONENTS].T
    shapes /= shapes.std()
    colour = np.stack([tints == 0, tints == 1], axis=1) + 0.3 * draws.standard_normal(
        (len(tints), 2)
    )
    return unit_rows(np.concatenate([shapes, colour], axis=1).astype(np.float32))


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
