"""The last linear layer of a classifier, and what it is retrained on: chosen samples, how much each counts, and groups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import Side
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice


@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """The last linear layer of a classifier.

    Args:
        weights: [c, d].
        bias: [c].
        task: softmax for single-label, one sigmoid per label for multi-label.
    """

    weights: FloatArray
    bias: FloatArray
    task: Task = Task.SINGLE_LABEL

    def logits(self, features: FloatArray) -> FloatArray:
        """Return logits [n, c] of features [n, d]."""
        return np.asarray(features @ self.weights.T + self.bias, dtype=np.float32)

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Return probabilities [n, c] of features [n, d]."""
        logits = self.logits(features).astype(np.float64)
        if self.task is Task.MULTI_LABEL:
            return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -60, 60))), dtype=np.float32)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float32)

    def reordered(self, class_names: Sequence[str], wanted: Sequence[str] | None) -> "Head":
        """Return the layer with its rows in another order of the same classes.

        Args:
            class_names: the classes in the order of its rows.
            wanted: the classes in the order wanted; None: as they are.

        Raises:
            ModelError: if the two do not name the same classes.
        """
        if wanted is None or tuple(wanted) == tuple(class_names):
            return self
        if sorted(wanted) != sorted(class_names):
            raise ModelError(
                "The head and the classifier do not have the same classes.",
                given=(list(class_names)[:10], list(wanted)[:10]),
            )
        place = {name: row for row, name in enumerate(class_names)}
        order = np.array([place[name] for name in wanted])
        return replace(self, weights=self.weights[order], bias=self.bias[order])

    def moved(self, towards: "Head", share: float) -> "Head":
        """Return the layer a share of the way, from 0 to 1, to another one."""
        return replace(
            self,
            weights=np.float32(1.0 - share) * self.weights + np.float32(share) * towards.weights,
            bias=np.float32(1.0 - share) * self.bias + np.float32(share) * towards.bias,
        )

    def cooled(self, temperature: float) -> "Head":
        """Return the layer whose logits are divided by a temperature; what it predicts stays the same."""
        if not temperature > 0:
            raise ConfigError("A temperature must be positive.", given=temperature)
        divided = np.float32(temperature)
        return replace(self, weights=self.weights / divided, bias=self.bias / divided)


MAX_PASSES = 100
TOLERANCE = 1e-6
MAX_VALUES = 100
MAX_NAMED = 5

WorstGroupObjective = tuple[IntArray, ...]
"""Groups of positions in a selection, no position in two of them; what counts is the loss of the group that has the largest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingSelection:
    """Which samples the last layer is retrained on and how much each counts.

    Args:
        rows: rows of the data set, no row twice.
        weights: weight of each of them; their mean is one.
        note: one sentence for the report on what was done.
        group_objectives: groups of which only the worst served counts, in place of their mean; positions in `rows`.
            No position is in two objectives. An objective counts as much as the weights of all its positions; what is in
            none counts by its own weight.
    """

    rows: IntArray
    weights: DoubleArray
    note: str
    group_objectives: tuple[WorstGroupObjective, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class RepairMaterial:
    """What a repairer may choose from and look at; never validation or test samples.

    Args:
        training: the samples the classifier was trained on; those without a label are never trained on.
        pool: further samples, labelled or not, that may be added; None if there are none.
        synthetic: generated samples, labelled, that may be added; None if there are none.
        budget: how many pool samples may be added.
        evidence: what was measured of each slice on confirmation samples, by slice id; for how bad it is and how many it touches.
        n_failures: failures among all samples that the evidence was measured on.
        seed: the only source of chance.
        assistants: who can be asked, for example to embed the name of a class.
    """

    training: SampleSet
    pool: SampleSet | None = None
    synthetic: SampleSet | None = None
    budget: int = 0
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    n_failures: int = 0
    seed: int = 0
    assistants: Assistants = NO_ASSISTANTS

    @property
    def labelled(self) -> IntArray:
        return self.training.rows[self.training.dataset.is_labelled[self.training.rows]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassParts:
    """The samples of one class, cut by its slices.

    Args:
        class_name: the class.
        side: for multi-label tasks, whether samples have or lack the label.
        slices: the slices of the class, in the order given.
        inside: rows of each slice that are in no earlier one.
        outside: rows of the class in no slice, also those of which membership cannot be told.
        n_members: members of each slice, also those that an earlier slice has.
    """

    class_name: str
    side: Side | None
    slices: tuple[FailureSlice, ...]
    inside: tuple[IntArray, ...]
    outside: IntArray
    n_members: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        return f"no {self.class_name}" if self.side is Side.ABSENT else self.class_name

    @property
    def groups(self) -> tuple[IntArray, ...]:
        """Return the parts that have samples, slices first."""
        return tuple(rows for rows in (*self.inside, self.outside) if len(rows))


def class_parts(slices: Sequence[FailureSlice], samples: SampleSet) -> Iterator[ClassParts]:
    """Yield the labelled samples of every class that has a slice, cut by its slices; earlier slices take their members first."""
    keys = dict.fromkeys((found.class_name, found.side) for found in slices)
    for class_name, side in keys:
        own = tuple(
            found for found in slices if (found.class_name, found.side) == (class_name, side)
        )
        rows = own[0].class_rows(samples)
        is_free: BoolArray = np.ones(len(rows), dtype=np.bool_)
        inside: list[IntArray] = []
        n_members: list[int] = []
        for found in own:
            is_member = found.rule.members(samples, rows)
            inside.append(rows[is_member & is_free])
            n_members.append(int(is_member.sum()))
            is_free &= ~is_member
        yield ClassParts(
            class_name=class_name,
            side=side,
            slices=own,
            inside=tuple(inside),
            outside=rows[is_free],
            n_members=tuple(n_members),
        )


def cut_by_slices(
    slices: Sequence[FailureSlice], training: SampleSet
) -> tuple[tuple[ClassParts, ...], str]:
    """Return the training samples of every class that has a slice, cut by its slices, and a remark on what cannot be repaired so.

    Raises:
        NotEnoughDataError: if there are slices, and none of them has a training member.
    """
    parts = tuple(class_parts(slices, training))
    if parts and not any(sum(part.n_members) for part in parts):
        raise NotEnoughDataError(
            "No training sample is a member of any slice, so no weight can repair them.",
            given=named([found.title for found in slices]),
            fix="Add samples from a pool, or generated ones.",
        )
    return parts, "".join(f" {sentence}" for part in parts for sentence in _remarks(part))


def in_slices(parts: Sequence[ClassParts]) -> IntArray:
    """Return the rows that are in any of the slices, ascending."""
    return np.unique(
        np.concatenate(
            [np.zeros(0, dtype=np.int64), *(rows for part in parts for rows in part.inside)]
        )
    )


def _remarks(part: ClassParts) -> Iterator[str]:
    n_class = sum(map(len, part.groups))
    advice = "add samples from a pool or generated ones"
    for found, rows, n_members in zip(part.slices, part.inside, part.n_members, strict=True):
        if not n_class:
            yield f"No training sample belongs to “{part.title}”, the class of “{found.title}”; {advice}."
        elif not n_members:
            yield f"No training sample is a member of “{found.title}”; {advice}."
        elif len(rows) == n_class:
            yield f"All {n_class} training samples of “{part.title}” are members of “{found.title}”: nothing to balance it against."
        elif not len(rows):
            yield f"Every training member of “{found.title}” is in an earlier slice of “{part.title}”, and counts there."


def named(titles: Sequence[str]) -> str:
    """Return some titles in quotation marks, and how many more there are.

    >>> named(["cat", "dog"]), named(list("abcdefg"))
    ('“cat”, “dog”', '“a”, “b”, “c”, “d”, “e” and 2 more')
    """
    shown = ", ".join(f"“{title}”" for title in titles[:MAX_NAMED])
    return f"{shown} and {len(titles) - MAX_NAMED} more" if len(titles) > MAX_NAMED else shown


def class_groups(dataset: Dataset, rows: IntArray) -> tuple[IntArray, tuple[str, ...]]:
    """Return the class of each labelled row [n] as a number, and the names of the numbers; several labels together are a class."""
    if dataset.task is Task.SINGLE_LABEL:
        return dataset.labels[rows], dataset.class_names
    sets, codes = np.unique(dataset.label_matrix[rows], axis=0, return_inverse=True)
    names = np.array(dataset.class_names, dtype=object)
    return codes.reshape(-1).astype(np.int64), tuple(
        " and ".join(names[one]) or "no label" for one in sets
    )


def occurring_classes(dataset: Dataset, rows: IntArray) -> BoolArray:
    """Return which classes [c] at least one of the labelled rows has."""
    if dataset.task is Task.SINGLE_LABEL:
        return np.bincount(dataset.labels[rows], minlength=dataset.n_classes) > 0
    return np.asarray(dataset.label_matrix[rows].any(axis=0), dtype=np.bool_)


def value_groups(dataset: Dataset, rows: IntArray, column: str) -> tuple[IntArray, tuple[str, ...]]:
    """Return the group of each labelled row [n], class and value of a metadata column, and the groups' names; -1 without a value.

    Raises:
        NotEnoughDataError: if there is no such column, or it holds no value for any row.
        DataError: if it holds too many values to be an attribute.
    """
    if column not in dataset.metadata_names:
        fix = (
            f"Choose one of {list(dataset.metadata_names)}."
            if dataset.metadata_names
            else "Give the data a column with groups."
        )
        raise NotEnoughDataError(
            f"There is no metadata column {column!r} that could say which group a sample is in.",
            fix=fix,
        )
    numbers, values = _values_of(dataset, rows, column)
    classes, names = class_groups(dataset, rows)
    has_value = numbers >= 0
    pairs, codes = np.unique(
        np.stack([classes[has_value], numbers[has_value]]), axis=1, return_inverse=True
    )
    found = np.full(len(rows), -1, dtype=np.int64)
    found[has_value] = codes.reshape(-1)
    return found, tuple(f"{names[one]}, {column} {values[number]}" for one, number in pairs.T)


def _values_of(dataset: Dataset, rows: IntArray, column: str) -> tuple[IntArray, list[str]]:
    """Return the number of each row's value, -1 where it is missing, and the values."""
    coded = dataset.metadata(column).take(rows).combine_chunks().dictionary_encode()
    listed = coded.dictionary.to_pylist()
    is_value = np.array([not (value is None or value != value) for value in listed] + [False])  # noqa: PLR0124 - NaN is no value
    numbers = np.asarray(coded.indices.fill_null(len(listed)), dtype=np.int64)
    if not is_value.any():
        what = f"The metadata column {column!r} says nothing of any training sample."
        raise NotEnoughDataError(what, fix="Choose another column.")
    if is_value.sum() > MAX_VALUES:
        raise DataError(
            f"The metadata column {column!r} has too many values to form groups.",
            given=int(is_value.sum()),
            fix=f"Choose a column with at most {MAX_VALUES} values, or cut its numbers into bins.",
        )
    return np.where(is_value[numbers], numbers, -1), [str(value) for value in listed]


def positions_by(codes: IntArray) -> dict[int, IntArray]:
    """Return the positions of every code that is not negative, ascending.

    >>> {code: places.tolist() for code, places in positions_by(np.array([2, 0, 2, -1])).items()}
    {0: [1], 2: [0, 2]}
    """
    order = np.argsort(codes, kind="stable")
    order = order[codes[order] >= 0]
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    return (
        {int(codes[places[0]]): places for places in np.split(order, edges)} if len(order) else {}
    )


def class_balanced_weights(dataset: Dataset, rows: IntArray) -> DoubleArray:
    """Return weights [n] of labelled rows with which every class that occurs weighs the same; their mean is one.

    A sample with several labels gets the mean of what each of them asks for; samples without any label are a class of their own.
    """
    if dataset.task is Task.SINGLE_LABEL:
        n_samples = np.bincount(dataset.labels[rows], minlength=1)
        return np.asarray(
            len(rows) / (np.sum(n_samples > 0) * n_samples[dataset.labels[rows]]), dtype=np.float64
        )
    matrix = dataset.label_matrix[rows]
    matrix = np.column_stack([matrix, ~matrix.any(axis=1)])
    n_labels = matrix.sum(axis=1)
    counts = np.array([float(np.sum(1.0 / n_labels[column])) for column in matrix.T])
    wanted = len(rows) / (max(int(np.sum(counts > 0)), 1) * np.maximum(counts, TOLERANCE))
    return np.asarray(matrix @ wanted / n_labels, dtype=np.float64)


def balanced_weights(weights: DoubleArray, partitions: Sequence[Sequence[IntArray]]) -> DoubleArray:
    """Return weights under which the parts of every partition weigh the same, and all of them together as much as before.

    One pass does it when no position is in two partitions. Otherwise the passes go on until all agree (iterative proportional
    fitting), so that a sample that two slices ask for is not counted twice.

    Args:
        weights: positive, [n].
        partitions: for each the positions of its parts, none of them empty, no position in two parts.
    """
    found = weights.astype(np.float64)
    targets = [
        sum(float(weights[part].sum()) for part in parts) / len(parts)
        for parts in partitions
        if parts
    ]
    for _ in range(MAX_PASSES):
        largest = 0.0
        for parts, target in zip((parts for parts in partitions if parts), targets, strict=True):
            for part in parts:
                factor = target / float(found[part].sum())
                found[part] *= factor
                largest = max(largest, abs(factor - 1.0))
        if largest < TOLERANCE:
            break
    return with_mean_one(found)


def with_mean_one(weights: DoubleArray) -> DoubleArray:
    """Return weights in the same proportions whose mean is one; all zero stays all zero."""
    total = float(weights.sum())
    return np.asarray(weights * (len(weights) / total), dtype=np.float64) if total > 0 else weights
