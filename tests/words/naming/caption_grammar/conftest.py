"""Apples of a toy space: every word on an axis of its own."""

from dataclasses import dataclass

import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.rules import LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice

WORDS = ("apple", "green", "red", "blurry", "shelf", "photo", "golden", "crate")


@dataclass(frozen=True)
class ToyApples:
    """Apples; every fourth is green, the others red, and green ones are taken for pears."""

    def embed_texts(self, texts):
        """Put every known word on an axis of its own; text lies far from images, as it does in real joint spaces."""
        embeddings = np.full((len(texts), 12), 0.0)
        for place, text in enumerate(texts):
            for axis, word in enumerate(WORDS):
                embeddings[place, axis] = float(word in text.split())
            embeddings[place, 10] = 2.0
            embeddings[place, 11] = 0.05 * len(text.split())
        return unit_rows(embeddings)

    def samples(self, n_samples=40, *, has_text=True, noise=0.1, metadata=None):
        """Return the apples as methods see them."""
        draws = np.random.default_rng(0)
        is_green = np.arange(n_samples) % 4 == 0
        embeddings = noise * draws.normal(size=(n_samples, 12))
        embeddings[:, 0] += 1.0
        embeddings[is_green, 1] += 0.5
        embeddings[~is_green, 2] += 0.5
        embeddings[:, 9] += 3.0
        dataset = dataset_from_columns(
            class_names=["apple", "pear"],
            labels=[0] * n_samples,
            predictions=is_green.astype(np.int64),
            metadata={"is_green": is_green.tolist()} if metadata is None else metadata,
        )
        space = EmbeddingSpace(
            encoder_id="toy", embeddings=unit_rows(embeddings), has_text=has_text
        )
        return SampleSet(
            dataset=dataset, rows=np.arange(n_samples), spaces={"clip": space}, name="toy"
        )

    def green_slice(self, samples, **changes):
        """Return the slice along the line from red to green."""
        embeddings = samples.embeddings("clip").astype(np.float64)
        direction = np.zeros(12)
        direction[1], direction[2] = np.sqrt(0.5), -np.sqrt(0.5)
        rule = LinearRule(
            encoder_id="toy",
            direction=tuple(direction),
            centre=tuple(embeddings.mean(axis=0)),
            scale=tuple(embeddings.std(axis=0)),
        )
        use = DataUse(name="toy", n_samples=len(samples), digest=samples.digest())
        return FailureSlice(
            **{
                "class_name": "apple",
                "rule": rule,
                "method": "directions",
                "found_on": use,
                **changes,
            }
        )


@pytest.fixture
def toy():
    return ToyApples()
