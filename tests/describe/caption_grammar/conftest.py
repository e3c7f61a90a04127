"""Apples of a toy space: every word on an axis of its own."""

from dataclasses import dataclass

import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.rules import LinearRule
from weakspot.core.samples import SampleSet, VectorSpace
from weakspot.core.slices import DataUse, FailureSlice

WORDS = ("apple", "green", "red", "blurry", "shelf", "photo", "golden", "crate")


@dataclass(frozen=True)
class ToyApples:
    """Apples; every fourth is green, the others red, and green ones are taken for pears."""

    def embed_texts(self, texts):
        """Put every known word on an axis of its own; text lies far from pictures, as it does in real joint spaces."""
        vectors = np.full((len(texts), 12), 0.0)
        for place, text in enumerate(texts):
            for axis, word in enumerate(WORDS):
                vectors[place, axis] = float(word in text.split())
            vectors[place, 10] = 2.0
            vectors[place, 11] = 0.05 * len(text.split())
        return unit_rows(vectors)

    def samples(self, n_samples=40, *, has_text=True, noise=0.1, metadata=None):
        """Return the apples as methods see them."""
        draws = np.random.default_rng(0)
        is_green = np.arange(n_samples) % 4 == 0
        vectors = noise * draws.normal(size=(n_samples, 12))
        vectors[:, 0] += 1.0
        vectors[is_green, 1] += 0.5
        vectors[~is_green, 2] += 0.5
        vectors[:, 9] += 3.0
        dataset = dataset_from_columns(
            class_names=["apple", "pear"],
            labels=[0] * n_samples,
            predictions=is_green.astype(np.int64),
            metadata={"is_green": is_green.tolist()} if metadata is None else metadata,
        )
        space = VectorSpace(encoder_id="toy", vectors=unit_rows(vectors), has_text=has_text)
        return SampleSet(dataset=dataset, rows=np.arange(n_samples), spaces={"joint": space}, name="toy")

    def green_slice(self, samples, **changes):
        """Return the slice along the line from red to green."""
        vectors = samples.vectors("joint").astype(np.float64)
        direction = np.zeros(12)
        direction[1], direction[2] = np.sqrt(0.5), -np.sqrt(0.5)
        rule = LinearRule(
            encoder_id="toy",
            direction=tuple(direction),
            centre=tuple(vectors.mean(axis=0)),
            scale=tuple(vectors.std(axis=0)),
        )
        use = DataUse(name="toy", n_samples=len(samples), digest=samples.digest())
        return FailureSlice(**{"class_name": "apple", "rule": rule, "method": "directions", "found_on": use, **changes})


@pytest.fixture
def toy():
    return ToyApples()
