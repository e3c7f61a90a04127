"""Membership rules: which samples, seen or unseen, belong to a slice.

Every rule gives a score, larger is deeper inside, and members by a threshold on it. The list of rules is closed, so that records
stay readable.
"""

from typing import Annotated, Literal

import numpy as np
import pyarrow.compute as pc
from pydantic import Field

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.record import PackedArray, Record
from weakspot.core.samples import SampleSet

SMALLEST_PROBABILITY = 1e-12


class Rule(Record):
    """What all rules can be asked beside scores and members."""

    @property
    def reads_outcomes(self) -> bool:
        """Return whether membership follows from what the classifier said; such a slice cannot be proven."""
        return False

    @property
    def columns(self) -> frozenset[str]:
        """Return the metadata columns that are read."""
        return frozenset()


class LinearRule(Rule):
    """Members are the samples whose vector lies far enough along a direction.

    The score of a vector v is `direction . scaled(v) + offset`, where `scaled` subtracts `centre`, divides by `scale` and then, if
    `normalise`, makes the length one. Failure directions and phrase similarities are both of this form.

    Args:
        space: which vectors are read.
        encoder_id: the encoder that made the vectors of the rule; vectors of another encoder are refused.
        direction: [d].
        offset: added to every score.
        threshold: a sample is a member when its score is at least this.
        centre: [d] or None.
        scale: [d] or None.
        normalise: whether the scaled vector is made a unit vector.
    """

    kind: Literal["linear"] = "linear"
    space: str = "joint"
    encoder_id: str
    direction: tuple[float, ...] = Field(repr=False)
    offset: float = 0.0
    threshold: float = 0.0
    centre: tuple[float, ...] | None = Field(default=None, repr=False)
    scale: tuple[float, ...] | None = Field(default=None, repr=False)
    normalise: bool = True

    def scaled(self, vectors: FloatArray) -> FloatArray:
        """Return vectors [n, d] as the rule sees them; use it once, never on its own result."""
        values = np.asarray(vectors, dtype=np.float32)
        if self.centre is not None:
            values = np.subtract(values, np.asarray(self.centre, dtype=np.float32))
        if self.scale is not None:
            values = np.divide(values, np.asarray(self.scale, dtype=np.float32))
        return unit_rows(values) if self.normalise else values

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return how far inside the slice every row lies; larger is deeper inside."""
        _refuse_other_encoder(samples, self.space, self.encoder_id)
        direction = np.asarray(self.direction, dtype=np.float32)

        def measured(vectors: FloatArray) -> DoubleArray:
            return np.asarray(self.scaled(vectors) @ direction + self.offset, dtype=np.float64)

        return samples.by_blocks(self.space, rows, measured)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) >= self.threshold


class ColumnRule(Rule):
    """Members are the samples whose metadata column holds one of the values, or lies in [low, high)."""

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
            is_wanted = [value is not None and (value in wanted or str(value) in wanted) for value in coded.dictionary.to_pylist()]
            codes = np.asarray(coded.indices.fill_null(len(is_wanted)))
            return np.asarray(np.array([*is_wanted, False], dtype=np.float64)[codes])
        numbers = np.asarray(pc.cast(column, "double").fill_null(float("nan")).combine_chunks())
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        return np.asarray((numbers >= low) & (numbers < high), dtype=np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) > 0

    @property
    def columns(self) -> frozenset[str]:
        """Return the metadata column that is read."""
        return frozenset({self.column})


class IdRule(Rule):
    """Members are listed one by one, for example a selection made by hand; unseen samples are never members."""

    kind: Literal["ids"] = "ids"
    sample_ids: tuple[str, ...]

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return 1 for members and 0 for the others."""
        listed = set(self.sample_ids)
        return np.array([name in listed for name in samples.dataset.sample_ids(rows)], dtype=np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) > 0


class NearestRule(Rule):
    """Members are the samples that are nearer to one phrase than to every other, for example to `a dog on a beach` among places.

    The score is the similarity to the chosen prototype minus the largest similarity to another one, after the offset of each
    prototype was subtracted. Vectors are made unit vectors first.

    Args:
        space: which vectors are read.
        encoder_id: the encoder that made the prototypes; vectors of another encoder are refused.
        prototypes: unit vectors [m, d], m at least 2.
        chosen: which of them.
        offsets: [m] usual similarity of each prototype, subtracted so that none of them attracts everything.
        threshold: a sample is a member when its score is at least this.
    """

    kind: Literal["nearest"] = "nearest"
    space: str = "joint"
    encoder_id: str
    prototypes: PackedArray
    chosen: int
    offsets: tuple[float, ...] = ()
    threshold: float = 0.0

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return by how much the chosen prototype is the nearest."""
        _refuse_other_encoder(samples, self.space, self.encoder_id)
        return samples.by_blocks(self.space, rows, self._leads)

    def _leads(self, vectors: FloatArray) -> DoubleArray:
        similarities = unit_rows(vectors) @ self.prototypes.values.T
        if self.offsets:
            similarities = similarities - np.asarray(self.offsets, dtype=np.float32)
        others = np.delete(similarities, self.chosen, axis=1).max(axis=1)
        return np.asarray(similarities[:, self.chosen] - others, dtype=np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) >= self.threshold


class BallRule(Rule):
    """Members are the samples whose vector lies near a centre; the score is minus the squared distance.

    Args:
        space: which vectors are read.
        encoder_id: the encoder that made the vectors of the rule; vectors of another encoder are refused.
        centre: [d].
        threshold: a sample is a member when its score is at least this.
        normalise: whether vectors are made unit vectors first.
    """

    kind: Literal["ball"] = "ball"
    space: str = "joint"
    encoder_id: str
    centre: PackedArray
    threshold: float
    normalise: bool = True

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return minus the squared distance to the centre."""
        _refuse_other_encoder(samples, self.space, self.encoder_id)

        def measured(vectors: FloatArray) -> DoubleArray:
            placed = unit_rows(vectors) if self.normalise else vectors
            return np.asarray(-np.square(placed - self.centre.values).sum(axis=1), dtype=np.float64)

        return samples.by_blocks(self.space, rows, measured)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) >= self.threshold


class MixtureRule(Rule):
    """Members are the samples that one component of a Gaussian mixture claims, judged by their vector alone.

    The score is the logarithm of the odds of the component against all others together: it orders samples as the posterior does,
    and goes on doing so where posteriors are all but one.

    Args:
        space: which vectors are read.
        encoder_id: the encoder that made the vectors of the rule; vectors of another encoder are refused.
        centre: [d] subtracted from unit vectors before they are projected.
        projection: [k, d].
        means: [m, k] of the components.
        variances: [m, k] of the components, diagonal.
        log_weights: [m] logarithms of the components' shares.
        chosen: which component.
        threshold: a sample is a member when its score is at least this.
    """

    kind: Literal["mixture"] = "mixture"
    space: str = "joint"
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
        _refuse_other_encoder(samples, self.space, self.encoder_id)
        return samples.by_blocks(self.space, rows, self._log_odds)

    def _log_odds(self, vectors: FloatArray) -> DoubleArray:
        reduced = (unit_rows(vectors) - self.centre.values) @ self.projection.values.T
        precisions = 1.0 / self.variances.values
        distances = np.square(reduced) @ precisions.T - 2.0 * reduced @ (self.means.values * precisions).T
        constants = (np.square(self.means.values) * precisions + np.log(self.variances.values)).sum(axis=1)
        logs = np.asarray(self.log_weights, dtype=np.float64) - 0.5 * (distances + constants)
        others = np.delete(logs, self.chosen, axis=1)
        if not others.shape[1]:
            return np.where(np.isfinite(logs[:, 0]), 0.0, np.nan)
        largest = others.max(axis=1)
        return np.asarray(logs[:, self.chosen] - largest - np.log(np.exp(others - largest[:, None]).sum(axis=1)), dtype=np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) >= self.threshold


class OutcomeRule(Rule):
    """Members are the samples of which the classifier is unsure, or on which its loss is high.

    Such a slice explains nothing and cannot be proven: that samples with a high loss fail is true by definition. It serves as a
    baseline of discovery.

    Args:
        measure: `doubt` is one minus the largest probability; `loss` is minus the logarithm of the true label's probability.
        threshold: a sample is a member when its score is at least this.
    """

    kind: Literal["outcome"] = "outcome"
    measure: Literal["doubt", "loss"]
    threshold: float

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return doubt or loss; NaN where the true label is not known."""
        dataset = samples.dataset
        if dataset.probabilities is None or dataset.task is not Task.SINGLE_LABEL:
            raise DataError("Doubt and loss need the probabilities of a single-label task.", given=dataset.task.value)
        probabilities = np.asarray(dataset.probabilities[rows], dtype=np.float64)
        if self.measure == "doubt":
            return np.asarray(1.0 - probabilities.max(axis=1))
        labels = dataset.labels[rows]
        losses = -np.log(np.maximum(probabilities[np.arange(len(rows)), labels], SMALLEST_PROBABILITY))
        return np.where(labels >= 0, losses, np.nan)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) >= self.threshold

    @property
    def reads_outcomes(self) -> bool:
        """Return True: membership follows from what the classifier said."""
        return True


SingleRule = Annotated[
    LinearRule | ColumnRule | IdRule | NearestRule | BallRule | MixtureRule | OutcomeRule, Field(discriminator="kind")
]


class AllOfRule(Rule):
    """Members satisfy every one of several rules."""

    kind: Literal["all-of"] = "all-of"
    rules: tuple[SingleRule, ...]

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return the number of rules that a row satisfies."""
        return np.asarray(np.sum([rule.members(samples, rows) for rule in self.rules], axis=0), dtype=np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) >= len(self.rules)

    @property
    def reads_outcomes(self) -> bool:
        """Return whether one of the rules reads outcomes."""
        return any(rule.reads_outcomes for rule in self.rules)

    @property
    def columns(self) -> frozenset[str]:
        """Return the metadata columns that any of the rules reads."""
        return frozenset(name for rule in self.rules for name in rule.columns)


PartRule = Annotated[
    LinearRule | ColumnRule | IdRule | NearestRule | BallRule | MixtureRule | OutcomeRule | AllOfRule, Field(discriminator="kind")
]


class AnyOfRule(Rule):
    """Members satisfy at least one of several rules, for example of slices that people found to be the same thing."""

    kind: Literal["any-of"] = "any-of"
    rules: tuple[PartRule, ...]

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return the number of rules that a row satisfies."""
        return np.asarray(np.sum([rule.members(samples, rows) for rule in self.rules], axis=0), dtype=np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) > 0

    @property
    def reads_outcomes(self) -> bool:
        """Return whether one of the rules reads outcomes."""
        return any(rule.reads_outcomes for rule in self.rules)

    @property
    def columns(self) -> frozenset[str]:
        """Return the metadata columns that any of the rules reads."""
        return frozenset(name for rule in self.rules for name in rule.columns)


MembershipRule = Annotated[
    LinearRule | ColumnRule | IdRule | NearestRule | BallRule | MixtureRule | OutcomeRule | AllOfRule | AnyOfRule,
    Field(discriminator="kind"),
]


def single_rules(rule: MembershipRule) -> tuple[SingleRule, ...]:
    """Return the rules that a rule is made of; one that is made of no others is its own only part."""
    if rule.kind == "any-of":
        return tuple(single for part in rule.rules for single in single_rules(part))
    return rule.rules if rule.kind == "all-of" else (rule,)


def _refuse_other_encoder(samples: SampleSet, space: str, encoder_id: str) -> None:
    found = samples.space(space).encoder_id
    if found != encoder_id:
        raise DataError(
            "The slice was found with another encoder than the project's vectors.",
            given=found,
            fix=f"Embed with {encoder_id!r}.",
        )
