"""Stand-in for Colored MNIST: the handwritten digits that scikit-learn carries, small or large, tinted red or green."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, generator, unit_rows
from weakspot_lab.reproduce.directions.case import TEST, TRAIN, VALIDATION, Case

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
