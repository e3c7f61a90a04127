from dataclasses import replace

import numpy as np
import pytest
from tests.build import evidence_of, slice_of

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.heads import RepairMaterial
from weakspot.core.rules import LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet

LABELS = [0, 0, 1, 1, 2, 2, 0, 0, 0, 1, 1, 0, 0, 0]
DEPTHS = [0.6, -0.5, 0.2, -0.1, -0.3, -0.4, 0.9, 0.7, 0.5, 0.3, 0.8, -0.2, -0.6, np.nan]
PROBABILITIES = [
    *[
        [0.90, 0.05, 0.05],
        [0.80, 0.10, 0.10],
        [0.02, 0.90, 0.08],
        [0.03, 0.90, 0.07],
        [0.02, 0.08, 0.90],
        [0.03, 0.07, 0.90],
    ],
    *[[0.30, 0.60, 0.10], [0.45, 0.50, 0.05], [0.80, 0.15, 0.05], [0.05, 0.55, 0.40]],
    *[[0.20, 0.75, 0.05], [0.90, 0.08, 0.02], [0.34, 0.33, 0.33], [0.50, 0.30, 0.20]],
]


def _material(*, labels=None, budget=3, seed=0, order=None, **changes):
    """Rows 0 to 5 are trained on, rows 6 to 13 are the pool; row 13 has no embedding. `order` puts the rows in another order."""
    places = np.arange(14) if order is None else np.asarray(order)
    given = np.array(LABELS if labels is None else labels)
    embeddings = np.array([[depth, 1.0] for depth in DEPTHS], dtype=np.float32)
    embeddings[13] = np.nan
    dataset = dataset_from_columns(
        class_names=["apple", "pear", "plum"],
        labels=given[places],
        splits=list(np.array(["train"] * 6 + ["pool"] * 8)[places]),
        sample_ids=list(np.array(list("uvwxyzabcdefgh"))[places]),
        probabilities=np.array(PROBABILITIES, dtype=np.float32)[places],
    )
    spaces = {
        name: EmbeddingSpace(encoder_id="hand", embeddings=embeddings[places])
        for name in ("clip", "features")
    }
    samples = SampleSet(
        dataset=dataset,
        rows=np.flatnonzero(np.isin(places, range(6))),
        spaces=spaces,
        name="training",
    )
    pool = samples.only(np.flatnonzero(np.isin(places, range(6, 14))), name="pool")
    return RepairMaterial(
        **{"training": samples, "pool": pool, "budget": budget, "seed": seed, **changes}
    )


@pytest.fixture
def make_material():
    return _material


@pytest.fixture
def hidden():
    """Labels with those of the pool taken away."""
    return [*LABELS[:6], *[-1] * 8]


@pytest.fixture
def make_slice():
    def build(class_name="apple", *, threshold=0.0, sign=1.0, **changes):
        rule = LinearRule(
            encoder_id="hand", direction=(sign, 0.0), threshold=threshold, normalise=False
        )
        return slice_of(rule, class_name=class_name, **changes)

    return build


@pytest.fixture
def make_evidence():
    def build(found, failures, total):
        return evidence_of(found, inside=(failures, total), outside=(0, 10))

    return build


@pytest.fixture
def added():
    """Return what a selection adds to the training rows 0 to 5, by sample id."""

    def told(selection, material):
        rows = np.setdiff1d(selection.rows, material.labelled)
        assert np.isin(material.labelled, selection.rows).all()
        return "".join(sorted(material.training.dataset.sample_ids(rows)))

    return told


@pytest.fixture
def without_probabilities():
    def build(material):
        dataset = material.training.dataset.with_predictions(
            predictions=np.zeros(14, dtype=np.int64)
        )
        return replace(
            material, training=replace(material.training, dataset=dataset), pool=replace(material.pool, dataset=dataset)
        )  # fmt: skip

    return build
