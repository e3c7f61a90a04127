"""Membership rules: which samples, seen or unseen, belong to a slice."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
import pyarrow.compute as pc
from pydantic import BeforeValidator, Field, SerializeAsAny

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.record import PackedArray, Record
from weakspot.core.registry import part_class
from weakspot.core.samples import SampleSet

# What the id of an encoder ends with; docs/results/first_minute.md measures each beside float32.
IN_INTEGERS, IN_HALVES = "+int8@", "+float16"
MAX_COMPLEX = 100


class Rule(Record):
    """Base of all rules: gives every sample a score, larger is deeper inside, and says who is a member.

    A rule of another package sets `kind` to the name it is registered under, `package/name`, and defines `scores` and `sentence`.
    Members are the samples with a positive score, or, of a `ThresholdRule`, with one that is large enough.
    """

    complexity: ClassVar[int] = MAX_COMPLEX
    """Of several slices with the same members, the one with the simplest rule is tested; smaller is simpler."""

    kind: str

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return how far inside the slice every row lies [len(rows)]; NaN where that cannot be said."""
        raise NotImplementedError

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows belong to the slice [len(rows)]."""
        return self.scores(samples, rows) > 0

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return for which rows it can be said whether they are members."""
        return np.isfinite(self.scores(samples, rows))

    @property
    def sentence(self) -> str:
        """Who belongs to the slice, in a sentence for people."""
        return f"Samples that a rule of the kind {self.kind} takes."

    @property
    def parts(self) -> "tuple[Rule, ...]":
        """The rules that this one is made of; one that is made of no others is its own only part."""
        return (self,)

    @property
    def reads_predictions(self) -> bool:
        """Whether membership follows from what the classifier answered; such a slice cannot be proven."""
        return False

    @property
    def columns(self) -> frozenset[str]:
        """Metadata columns that are read."""
        return frozenset()


class ThresholdRule(Rule):
    """Members are the samples whose score is at least `threshold`."""

    threshold: float = 0.0

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self.scores(samples, rows) >= self.threshold


AnyRule = TypeVar("AnyRule", bound=Rule)
BUILT_IN_RULES: dict[str, type[Rule]] = {}


def built_in(rule: type[AnyRule]) -> type[AnyRule]:
    """Make a rule of this package known by its kind."""
    BUILT_IN_RULES[str(rule.model_fields["kind"].default)] = rule
    return rule


def rule_class(kind: str) -> type[Rule]:
    """Return the class of a kind of rule.

    Raises:
        DataError: if the package that brings it is not installed, with its name.
    """
    known = BUILT_IN_RULES.get(kind)
    if known is not None:
        return known
    try:
        found: type[Rule] = part_class("rules", kind)
    except ConfigError as error:
        package, is_of_package, _ = kind.partition("/")
        raise DataError(
            f"A slice has a membership rule of the kind {kind!r}, which cannot be used here.",
            given=kind,
            fix=f"Install the package {package!r}, which brings it: {error.what}"
            if is_of_package
            else f"Use one of {sorted(BUILT_IN_RULES)} or of an installed package.",
        ) from error
    return found


def _read_rule(given: Any) -> Any:
    if isinstance(given, Rule) or not isinstance(given, Mapping):
        return given
    return rule_class(str(given.get("kind"))).model_validate(given)


MembershipRule = Annotated[SerializeAsAny[Rule], BeforeValidator(_read_rule)]
"""A rule of any kind, as a field of a record."""


def single_rules(rule: Rule) -> tuple[Rule, ...]:
    """Return the rules that a rule is made of, down to those that are made of no others."""
    return tuple(
        single
        for part in rule.parts
        for single in ((part,) if part is rule else single_rules(part))
    )


def refuse_other_encoder(samples: SampleSet, space: str, encoder_id: str) -> None:
    """Refuse embeddings that another encoder made than those of a rule; the same one in another precision gives the same for it."""
    given = samples.space(space).encoder_id
    if without_precision(given) != without_precision(encoder_id):
        raise DataError(
            "The slice was found with another encoder than the project's embeddings.",
            given=given,
            fix=f"Embed with {encoder_id!r}.",
        )


def without_precision(encoder_id: str) -> str:
    """Return the id of an encoder whatever the precision that it computes in.

    >>> without_precision("encoder@1+int8@2"), without_precision("encoder@1+float16")
    ('encoder@1', 'encoder@1')
    """
    return encoder_id.partition(IN_INTEGERS)[0].removesuffix(IN_HALVES)


MIN_PROBABILITY = 1e-12
MAX_VALUES_NAMED = 6


class EmbeddingRule(ThresholdRule):
    """Reads one embedding of a sample.

    Args:
        space: which embeddings are read.
        encoder_id: the encoder that the rule was made with; embeddings of another encoder are refused.
    """

    space: str = "clip"
    encoder_id: str

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        refuse_other_encoder(samples, self.space, self.encoder_id)
        return samples.by_blocks(self.space, rows, self.embedding_scores)

    def embedding_scores(self, embeddings: FloatArray) -> DoubleArray:
        """Return how far inside the slice every embedding [n, d] lies [n]."""
        raise NotImplementedError


@built_in
class LinearRule(EmbeddingRule):
    """Members are the samples whose embedding lies far enough along a direction.

    The score of an embedding v is `direction . scaled(v) + offset`, where `scaled` subtracts `centre`, divides by `scale` and then,
    if `normalise`, makes the length one. Failure directions and phrase similarities are both of this form.

    Args:
        direction: [d].
        offset: added to every score.
        threshold: a sample is a member when its score is at least this.
        centre: [d] or None.
        scale: [d] or None.
        normalise: whether the scaled embedding is made a unit vector.
    """

    complexity = 3

    kind: Literal["linear"] = "linear"
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

    def embedding_scores(self, embeddings: FloatArray) -> DoubleArray:
        direction = np.asarray(self.direction, dtype=np.float32)
        return np.asarray(self.scaled(embeddings) @ direction + self.offset, dtype=np.float64)

    @property
    def sentence(self) -> str:
        return "Samples that lie far enough along a direction."


@built_in
class ColumnRule(Rule):
    """Members are the samples whose metadata column holds one of the values, or lies in [low, high)."""

    complexity = 0

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
            named = " or ".join(str(value) for value in self.values[:MAX_VALUES_NAMED])
            further = len(self.values) - MAX_VALUES_NAMED
            others = f" or one of {further} others" if further > 0 else ""
            return f"Samples whose “{self.column}” is {named}{others}."
        low = "" if self.low is None else f" at least {self.low:g}"
        high = "" if self.high is None else f"{' and' if low else ''} below {self.high:g}"
        return f"Samples whose “{self.column}” is{low}{high}."


@built_in
class IdRule(Rule):
    """Members are listed one by one, for example a selection made by hand; unseen samples are never members."""

    complexity = 1

    kind: Literal["ids"] = "ids"
    sample_ids: tuple[str, ...]

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return 1 for members and 0 for the others."""
        listed = set(self.sample_ids)
        return np.array(
            [name in listed for name in samples.dataset.sample_ids(rows)], dtype=np.float64
        )

    @property
    def sentence(self) -> str:
        return "Samples that were listed one by one."

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        del samples
        return np.ones(len(rows), dtype=np.bool_)


@built_in
class NearestRule(EmbeddingRule):
    """Members are the samples that are nearer to one phrase than to every other, for example to `a dog on a beach` among places.

    The score is the similarity to the chosen prototype minus the largest similarity to another one, after the offset of each
    prototype was subtracted. Embeddings are made unit vectors first.

    Args:
        prototypes: unit vectors [m, d], m at least 2.
        chosen: which of them.
        offsets: [m] usual similarity of each prototype, subtracted so that none of them attracts everything.
        threshold: a sample is a member when its score is at least this.
    """

    complexity = 2

    kind: Literal["nearest"] = "nearest"
    prototypes: PackedArray
    chosen: int
    offsets: tuple[float, ...] = ()

    def embedding_scores(self, embeddings: FloatArray) -> DoubleArray:
        similarities = unit_rows(embeddings) @ self.prototypes.values.T
        if self.offsets:
            similarities = similarities - np.asarray(self.offsets, dtype=np.float32)
        others = np.delete(similarities, self.chosen, axis=1).max(axis=1)
        return np.asarray(similarities[:, self.chosen] - others, dtype=np.float64)

    @property
    def sentence(self) -> str:
        return "Samples that are nearer to one phrase than to all others."


@built_in
class BallRule(EmbeddingRule):
    """Members are the samples whose embedding lies near a centre; the score is minus the squared distance.

    Args:
        centre: [d].
        threshold: a sample is a member when its score is at least this.
        normalise: whether embeddings are made unit vectors first.
    """

    complexity = 4

    kind: Literal["ball"] = "ball"
    centre: PackedArray
    threshold: float
    normalise: bool = True

    def embedding_scores(self, embeddings: FloatArray) -> DoubleArray:
        placed = unit_rows(embeddings) if self.normalise else embeddings
        return np.asarray(-np.square(placed - self.centre.values).sum(axis=1), dtype=np.float64)

    @property
    def sentence(self) -> str:
        return "Samples that lie near a centre."


@built_in
class MixtureRule(EmbeddingRule):
    """Members are the samples that one component of a Gaussian mixture claims, judged by their embedding alone.

    The score is the logarithm of the odds of the component against all others together: it orders samples as the posterior does,
    and goes on doing so where posteriors are all but one.

    Args:
        centre: [d] subtracted from unit vectors before they are projected.
        projection: [k, d].
        means: [m, k] of the components.
        variances: [m, k] of the components, diagonal.
        log_weights: [m] logarithms of the components' shares.
        chosen: which component.
        threshold: a sample is a member when its score is at least this.
    """

    complexity = 5

    kind: Literal["mixture"] = "mixture"
    centre: PackedArray
    projection: PackedArray
    means: PackedArray
    variances: PackedArray
    log_weights: tuple[float, ...]
    chosen: int
    threshold: float

    def embedding_scores(self, embeddings: FloatArray) -> DoubleArray:
        """Return the log-odds of the chosen component; 0 when there is no other."""
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

    complexity = 6

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
        losses = -np.log(np.maximum(probabilities[np.arange(len(rows)), labels], MIN_PROBABILITY))
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


class _CombinedRule(Rule):
    """Several rules; the score is how many of them a sample satisfies."""

    rules: tuple[MembershipRule, ...]

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        if not self.rules:
            return np.zeros(len(rows), dtype=np.float64)
        inside = [rule.members(samples, rows) for rule in self.rules]
        return np.asarray(np.sum(inside, axis=0), dtype=np.float64)

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        if not self.rules:
            return np.ones(len(rows), dtype=np.bool_)
        known = [rule.is_known(samples, rows) for rule in self.rules]
        return np.asarray(np.all(known, axis=0), dtype=np.bool_)

    @property
    def parts(self) -> tuple[Rule, ...]:
        return self.rules

    @property
    def reads_predictions(self) -> bool:
        return any(rule.reads_predictions for rule in self.rules)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name for rule in self.rules for name in rule.columns)


@built_in
class AllOfRule(_CombinedRule):
    """Members satisfy every one of several rules."""

    kind: Literal["all-of"] = "all-of"

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self.scores(samples, rows) >= len(self.rules)

    @property
    def sentence(self) -> str:
        return " And: ".join(rule.sentence for rule in self.rules)


@built_in
class AnyOfRule(_CombinedRule):
    """Members satisfy at least one of several rules, for example of slices that people found to be the same thing."""

    kind: Literal["any-of"] = "any-of"

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return where every rule can say, or one of them says yes."""
        return super().is_known(samples, rows) | self.members(samples, rows)

    @property
    def sentence(self) -> str:
        return " Or: ".join(rule.sentence for rule in self.rules)
