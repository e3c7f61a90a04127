"""The built-in kinds of rule that are made of no others."""

from typing import ClassVar, Literal

import numpy as np
import pyarrow.compute as pc
from pydantic import Field

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.record import PackedArray
from weakspot.core.rules.rule import Rule, ThresholdRule, built_in, refuse_other_encoder
from weakspot.core.samples import SampleSet

SMALLEST_PROBABILITY = 1e-12
MOST_VALUES_NAMED = 6


@built_in
class LinearRule(ThresholdRule):
    """Members are the samples whose embedding lies far enough along a direction.

    The score of an embedding v is `direction . scaled(v) + offset`, where `scaled` subtracts `centre`, divides by `scale` and then,
    if `normalise`, makes the length one. Failure directions and phrase similarities are both of this form.

    Args:
        space: which embeddings are read.
        encoder_id: the encoder that made the embeddings of the rule; embeddings of another encoder are refused.
        direction: [d].
        offset: added to every score.
        threshold: a sample is a member when its score is at least this.
        centre: [d] or None.
        scale: [d] or None.
        normalise: whether the scaled embedding is made a unit vector.
    """

    complexity: ClassVar[int] = 3

    kind: Literal["linear"] = "linear"
    space: str = "clip"
    encoder_id: str
    direction: tuple[float, ...] = Field(repr=False)
    offset: float = 0.0
    centre: tuple[float, ...] | None = Field(default=None, repr=False)
    scale: tuple[float, ...] | None = Field(default=None, repr=False)
    normalise: bool = True

    def scaled(self, embeddings: FloatArray) -> FloatArray:
        """Return embeddings [n, d] as the rule sees them; use it once, never on its own result."""
        values = np.asarray(embeddings, dtype=np.float32)
        if self.centre is not None:
            values = np.subtract(values, np.asarray(self.centre, dtype=np.float32))
        if self.scale is not None:
            values = np.divide(values, np.asarray(self.scale, dtype=np.float32))
        return unit_rows(values) if self.normalise else values

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return how far inside the slice every row lies; larger is deeper inside."""
        refuse_other_encoder(samples, self.space, self.encoder_id)
        direction = np.asarray(self.direction, dtype=np.float32)

        def measured(embeddings: FloatArray) -> DoubleArray:
            return np.asarray(self.scaled(embeddings) @ direction + self.offset, dtype=np.float64)

        return samples.by_blocks(self.space, rows, measured)

    @property
    def sentence(self) -> str:
        return "Samples that lie far enough along a direction."


@built_in
class ColumnRule(Rule):
    """Members are the samples whose metadata column holds one of the values, or lies in [low, high)."""

    complexity: ClassVar[int] = 0

    kind: Literal["column"] = "column"
    column: str
    values: tuple[str | int | float | bool, ...] = ()
    low: float | None = None
    high: float | None = None

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return 1 for members and 0 for the others."""
        column = samples.dataset.metadata(self.column).take(rows)
        if self.values:
            wanted = {*self.values, *map(str, self.values)}
            coded = column.combine_chunks().dictionary_encode()
            is_wanted = [
                value is not None and (value in wanted or str(value) in wanted)
                for value in coded.dictionary.to_pylist()
            ]
            codes = np.asarray(coded.indices.fill_null(len(is_wanted)))
            return np.asarray(np.array([*is_wanted, False], dtype=np.float64)[codes])
        numbers = np.asarray(pc.cast(column, "double").fill_null(float("nan")).combine_chunks())
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        return np.asarray((numbers >= low) & (numbers < high), dtype=np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self.scores(samples, rows) > 0

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column})

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        del samples
        return np.ones(len(rows), dtype=np.bool_)

    @property
    def sentence(self) -> str:
        """Who belongs to the slice.

        >>> ColumnRule(column="site", values=("a", "b")).sentence
        'Samples whose “site” is a or b.'
        """
        if self.values:
            named = " or ".join(str(value) for value in self.values[:MOST_VALUES_NAMED])
            further = len(self.values) - MOST_VALUES_NAMED
            others = f" or one of {further} others" if further > 0 else ""
            return f"Samples whose “{self.column}” is {named}{others}."
        low = "" if self.low is None else f" at least {self.low:g}"
        high = "" if self.high is None else f"{' and' if low else ''} below {self.high:g}"
        return f"Samples whose “{self.column}” is{low}{high}."


@built_in
class IdRule(Rule):
    """Members are listed one by one, for example a selection made by hand; unseen samples are never members."""

    complexity: ClassVar[int] = 1

    kind: Literal["ids"] = "ids"
    sample_ids: tuple[str, ...]

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return 1 for members and 0 for the others."""
        listed = set(self.sample_ids)
        return np.array(
            [name in listed for name in samples.dataset.sample_ids(rows)], dtype=np.float64
        )

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self.scores(samples, rows) > 0

    @property
    def sentence(self) -> str:
        return "Samples that were listed one by one."

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        del samples
        return np.ones(len(rows), dtype=np.bool_)


@built_in
class NearestRule(ThresholdRule):
    """Members are the samples that are nearer to one phrase than to every other, for example to `a dog on a beach` among places.

    The score is the similarity to the chosen prototype minus the largest similarity to another one, after the offset of each
    prototype was subtracted. Embeddings are made unit vectors first.

    Args:
        space: which embeddings are read.
        encoder_id: the encoder that made the prototypes; embeddings of another encoder are refused.
        prototypes: unit vectors [m, d], m at least 2.
        chosen: which of them.
        offsets: [m] usual similarity of each prototype, subtracted so that none of them attracts everything.
        threshold: a sample is a member when its score is at least this.
    """

    complexity: ClassVar[int] = 2

    kind: Literal["nearest"] = "nearest"
    space: str = "clip"
    encoder_id: str
    prototypes: PackedArray
    chosen: int
    offsets: tuple[float, ...] = ()

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        refuse_other_encoder(samples, self.space, self.encoder_id)
        return samples.by_blocks(self.space, rows, self._leads)

    def _leads(self, embeddings: FloatArray) -> DoubleArray:
        similarities = unit_rows(embeddings) @ self.prototypes.values.T
        if self.offsets:
            similarities = similarities - np.asarray(self.offsets, dtype=np.float32)
        others = np.delete(similarities, self.chosen, axis=1).max(axis=1)
        return np.asarray(similarities[:, self.chosen] - others, dtype=np.float64)

    @property
    def sentence(self) -> str:
        return "Samples that are nearer to one phrase than to all others."


@built_in
class BallRule(ThresholdRule):
    """Members are the samples whose embedding lies near a centre; the score is minus the squared distance.

    Args:
        space: which embeddings are read.
        encoder_id: the encoder that made the embeddings of the rule; embeddings of another encoder are refused.
        centre: [d].
        threshold: a sample is a member when its score is at least this.
        normalise: whether embeddings are made unit vectors first.
    """

    complexity: ClassVar[int] = 4

    kind: Literal["ball"] = "ball"
    space: str = "clip"
    encoder_id: str
    centre: PackedArray
    threshold: float
    normalise: bool = True

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        refuse_other_encoder(samples, self.space, self.encoder_id)

        def measured(embeddings: FloatArray) -> DoubleArray:
            placed = unit_rows(embeddings) if self.normalise else embeddings
            return np.asarray(-np.square(placed - self.centre.values).sum(axis=1), dtype=np.float64)

        return samples.by_blocks(self.space, rows, measured)

    @property
    def sentence(self) -> str:
        return "Samples that lie near a centre."


@built_in
class MixtureRule(ThresholdRule):
    """Members are the samples that one component of a Gaussian mixture claims, judged by their embedding alone.

    The score is the logarithm of the odds of the component against all others together: it orders samples as the posterior does,
    and goes on doing so where posteriors are all but one.

    Args:
        space: which embeddings are read.
        encoder_id: the encoder that made the embeddings of the rule; embeddings of another encoder are refused.
        centre: [d] subtracted from unit vectors before they are projected.
        projection: [k, d].
        means: [m, k] of the components.
        variances: [m, k] of the components, diagonal.
        log_weights: [m] logarithms of the components' shares.
        chosen: which component.
        threshold: a sample is a member when its score is at least this.
    """

    complexity: ClassVar[int] = 5

    kind: Literal["mixture"] = "mixture"
    space: str = "clip"
    encoder_id: str
    centre: PackedArray
    projection: PackedArray
    means: PackedArray
    variances: PackedArray
    log_weights: tuple[float, ...]
    chosen: int
    threshold: float

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return the log-odds of the chosen component; 0 when there is no other."""
        refuse_other_encoder(samples, self.space, self.encoder_id)
        return samples.by_blocks(self.space, rows, self._log_odds)

    def _log_odds(self, embeddings: FloatArray) -> DoubleArray:
        reduced = (unit_rows(embeddings) - self.centre.values) @ self.projection.values.T
        precisions = 1.0 / self.variances.values
        distances = (
            np.square(reduced) @ precisions.T - 2.0 * reduced @ (self.means.values * precisions).T
        )
        constants = (np.square(self.means.values) * precisions + np.log(self.variances.values)).sum(
            axis=1
        )
        logs = np.asarray(self.log_weights, dtype=np.float64) - 0.5 * (distances + constants)
        others = np.delete(logs, self.chosen, axis=1)
        if not others.shape[1]:
            return np.where(np.isfinite(logs[:, 0]), 0.0, np.nan)
        largest = others.max(axis=1)
        return np.asarray(
            logs[:, self.chosen] - largest - np.log(np.exp(others - largest[:, None]).sum(axis=1)),
            dtype=np.float64,
        )

    @property
    def sentence(self) -> str:
        return "Samples that one group of look-alikes claims."


@built_in
class PredictionRule(ThresholdRule):
    """Members are the samples of which the classifier is unsure, or on which its loss is high.

    Such a slice explains nothing and cannot be proven: that samples with a high loss fail is true by definition. It serves as a
    baseline of discovery.

    Args:
        measure: `doubt` is one minus the largest probability; `loss` is minus the logarithm of the true label's probability.
        threshold: a sample is a member when its score is at least this.
    """

    complexity: ClassVar[int] = 6

    kind: Literal["prediction"] = "prediction"
    measure: Literal["doubt", "loss"]
    threshold: float

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return doubt or loss; NaN where the true label is not known."""
        dataset = samples.dataset
        if dataset.probabilities is None or dataset.task is not Task.SINGLE_LABEL:
            raise DataError(
                "Doubt and loss need the probabilities of a single-label task.",
                given=dataset.task.value,
            )
        probabilities = np.asarray(dataset.probabilities[rows], dtype=np.float64)
        if self.measure == "doubt":
            return np.asarray(1.0 - probabilities.max(axis=1))
        labels = dataset.labels[rows]
        losses = -np.log(
            np.maximum(probabilities[np.arange(len(rows)), labels], SMALLEST_PROBABILITY)
        )
        return np.where(labels >= 0, losses, np.nan)

    @property
    def reads_predictions(self) -> bool:
        """Return True: membership follows from what the classifier said."""
        return True

    @property
    def sentence(self) -> str:
        if self.measure == "doubt":
            return "Samples of which the classifier is unsure."
        return "Samples whose true label got little probability."
