"""One problem of the Directions paper: inputs of a network, embeddings of an encoder that knows nothing of it, and a known minority."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot_lab.small_networks import NetworkPlan, SmallNetwork, train_network

CLIP = "clip"
TRAIN, VALIDATION, TEST, POOL = Split.TRAIN, Split.VALIDATION, Split.TEST, Split.POOL


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Samples whose hard minority is known.

    Args:
        class_names: the classes.
        labels: [n].
        is_minority: which samples belong to the subpopulation that training has too few of [n].
        splits: train, validation, test or pool [n].
        inputs: what networks see: images [n, h, w, 3] or vectors [n, d].
        embeddings: of the encoder [n, e].
        embed_texts: its text side; None if it has none.
    """

    class_names: tuple[str, ...]
    labels: IntArray
    is_minority: BoolArray
    splits: AnyArray
    inputs: AnyArray
    embeddings: FloatArray
    embed_texts: Callable[[Sequence[str]], FloatArray] | None = None

    def rows(self, split: Split) -> IntArray:
        return np.flatnonzero(self.splits == split.value)

    def only(self, rows: IntArray) -> "Case":
        """Return the same with fewer samples."""
        return replace(
            self,
            labels=self.labels[rows],
            is_minority=self.is_minority[rows],
            splits=self.splits[rows],
            inputs=self.inputs[rows],
            embeddings=self.embeddings[rows],
        )

    def train(
        self,
        plan: NetworkPlan,
        *,
        rows: IntArray | None = None,
        weights: DoubleArray | None = None,
        keep_epochs: tuple[int, ...] = (),
    ) -> SmallNetwork:
        """Train a network from scratch on the training split, or on given rows."""
        chosen = self.rows(TRAIN) if rows is None else rows
        return train_network(
            self.inputs[chosen],
            self.labels[chosen],
            n_classes=len(self.class_names),
            plan=plan,
            weights=weights,
            keep_epochs=keep_epochs,
        )

    def samples(self, probabilities: FloatArray, split: Split) -> SampleSet:
        """Return the samples of a split with a network's probabilities [n, c], as methods of discovery take them."""
        dataset = dataset_from_columns(
            class_names=self.class_names,
            labels=self.labels,
            splits=list(self.splits),
            probabilities=np.asarray(probabilities, dtype=np.float32),
        )
        space = EmbeddingSpace(encoder_id="stand-in", embeddings=self.embeddings, has_text=True)
        return SampleSet(
            dataset=dataset,
            rows=dataset.rows_of(split),
            spaces={CLIP: space},
            name=split.value,
            reference_rows=dataset.rows_of(TRAIN),
        )

    def accuracy(self, network: SmallNetwork, rows: IntArray) -> float:
        """Return the share of rows that a network gets right; NaN without rows."""
        if not len(rows):
            return float("nan")
        return float(np.mean(predicted(network, self.inputs[rows]) == self.labels[rows]))

    def minority_accuracy(self, network: SmallNetwork) -> float:
        """Return the accuracy on test samples of the minority, the mean over classes."""
        rows = self.rows(TEST)[self.is_minority[self.rows(TEST)]]
        return float(
            np.mean(
                [
                    self.accuracy(network, rows[self.labels[rows] == code])
                    for code in self._known(rows)
                ]
            )
        )

    def _known(self, rows: IntArray) -> list[int]:
        return [int(one) for one in np.unique(self.labels[rows])]


def predicted(network: SmallNetwork, inputs: AnyArray) -> IntArray:
    return np.asarray(network.probabilities(inputs).argmax(axis=1), dtype=np.int64)
