"""Samples that fail together: the slice, the rule that decides membership of unseen samples, and its names."""

import hashlib
import json
from typing import Annotated, Literal

import numpy as np
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.failures import ClassProblem, Side
from weakspot.core.samples import SampleSet


class Record(BaseModel):
    """Base of stored records: frozen, closed, the same in JSON and in memory."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class LinearRule(Record):
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
        found = samples.space(self.space).encoder_id
        if found != self.encoder_id:
            raise DataError(
                "The slice was found with another encoder than the project's vectors.",
                given=found,
                fix=f"Embed with {self.encoder_id!r}.",
            )
        vectors = self.scaled(samples.vectors(self.space, rows))
        return np.asarray(vectors @ np.asarray(self.direction, dtype=np.float32) + self.offset, dtype=np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) >= self.threshold


class ColumnRule(Record):
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
            found = [value is not None and (value in wanted or str(value) in wanted) for value in column.to_pylist()]
            return np.array(found, dtype=np.float64)
        numbers = np.asarray(pc.cast(column, "double").fill_null(float("nan")).combine_chunks())
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        return ((numbers >= low) & (numbers < high)).astype(np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) > 0


class IdRule(Record):
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


class AllOfRule(Record):
    """Members satisfy every one of several rules."""

    kind: Literal["all-of"] = "all-of"
    rules: tuple[Annotated["LinearRule | ColumnRule | IdRule", Field(discriminator="kind")], ...]

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return the number of rules that a row satisfies."""
        return np.asarray(np.sum([rule.members(samples, rows) for rule in self.rules], axis=0), dtype=np.float64)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows are inside."""
        return self.scores(samples, rows) >= len(self.rules)


MembershipRule = Annotated[LinearRule | ColumnRule | IdRule | AllOfRule, Field(discriminator="kind")]


class SliceName(Record):
    """Words for a slice.

    Args:
        phrase: the name itself, for example `a photo of a green apple`.
        contrast: what sets it apart from the class, for example `green`; shown to people.
        score: how well the words fit, larger is better; comparable only within one describer.
        describer: who found it.
        accuracy_nearest: accuracy of the class's samples nearest to the phrase, None when not measured.
        is_doubtful: whether a second witness disagrees.
    """

    phrase: str
    contrast: str
    score: float
    describer: str
    accuracy_nearest: float | None = None
    is_doubtful: bool = False


class DataUse(Record):
    """Which samples a step looked at."""

    name: str
    n_samples: int
    digest: str


class FailureSlice(Record):
    """A kind of sample on which the classifier fails more often than on the rest of the class.

    Args:
        class_name: the true class.
        side: for multi-label tasks, whether members have or lack the label.
        rule: decides membership of any sample of the class, seen or unseen.
        method: registered name of the discoverer.
        parameters: what the discoverer was set to.
        found_on: the data that was looked at.
        strength: how consistent the failure is on the data it was found on, in the method's own measure.
        strength_p: chance of at least this strength when there is nothing to find, or None.
        n_found: members among the samples it was found on.
        names: words, best first.
        easy_names: words for the samples at the other end, best first.
    """

    class_name: str
    side: Side | None = None
    rule: MembershipRule
    method: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    found_on: DataUse
    strength: float | None = None
    strength_p: float | None = None
    n_found: int = 0
    names: tuple[SliceName, ...] = ()
    easy_names: tuple[SliceName, ...] = ()

    @property
    def slice_id(self) -> str:
        """Return a stable id: the same class, rule and method give the same id, whatever the names."""
        content = [self.class_name, self.side, self.method, self.rule.model_dump(mode="json")]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def title(self) -> str:
        """Return the slice as people read it."""
        label = f"no {self.class_name}" if self.side is Side.ABSENT else self.class_name
        return f"{label}: {self.names[0].contrast}" if self.names else f"{label}: unnamed ({self.method})"

    def members(self, samples: SampleSet, rows: IntArray | None = None) -> IntArray:
        """Return the member rows among the given rows (the set's own by default), whatever their class."""
        wanted = samples.rows if rows is None else rows
        return wanted[self.rule.members(samples, wanted)]

    def class_rows(self, samples: SampleSet) -> IntArray:
        """Return the labelled rows of the set that belong to the class and side of the slice."""
        dataset = samples.dataset
        code = dataset.class_code(self.class_name)
        labelled = samples.rows[dataset.is_labelled[samples.rows]]
        if dataset.task is Task.SINGLE_LABEL:
            return np.asarray(labelled[dataset.labels[labelled] == code], dtype=np.int64)
        has_label = dataset.label_matrix[labelled, code]
        return np.asarray(labelled[~has_label if self.side is Side.ABSENT else has_label], dtype=np.int64)

    def inside(self, samples: SampleSet, problem: ClassProblem) -> BoolArray:
        """Return which rows of a class problem are members."""
        return self.rule.members(samples, problem.rows)


def matches(found: FailureSlice, problem: ClassProblem) -> bool:
    """Return whether a slice belongs to the class and side of a problem."""
    return found.class_name == problem.class_name and found.side == problem.side
