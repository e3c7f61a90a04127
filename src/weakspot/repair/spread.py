"""The classifier's predictions beside those of a retrained one: class by class, and how unevenly groups are served."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, generator
from weakspot.core.dataset import GROUP, Dataset, Task, several_to_a_group
from weakspot.core.errors import DataError
from weakspot.core.evidence import GivenGroup, GivenGroups, Interval, Spread, sides_of
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.heads import value_groups
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.core.statistics import bootstrap_interval, paired_draws


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """The measured samples of one class, before and after.

    Args:
        problem: the class as it was before; rows are rows of the data set.
        positions: where these rows stand among the measured samples.
        right_before: which of them were right.
        right_after: which of them are right now.
    """

    problem: ClassProblem
    positions: IntArray
    right_before: BoolArray
    right_after: BoolArray


GroupedResult = tuple[Result, IntArray, BoolArray]
"""The measured samples of one class; which groups have samples here [k], and which samples are in them [k, n]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SlicePart:
    """A slice among the measured samples of its class.

    Args:
        found: the slice.
        title: its name, unlike that of any other slice measured with it.
        result: the class, None if none of its samples was measured.
        inside: which samples of the class are members.
        outside: which are not; in neither are those whose membership is not known.
    """

    found: FailureSlice
    title: str
    result: Result | None
    inside: BoolArray
    outside: BoolArray

    @property
    def class_title(self) -> str:
        """Return the class as people read it, for example `no effusion`."""
        return (
            f"no {self.found.class_name}"
            if self.found.side is Side.ABSENT
            else self.found.class_name
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """One arm on one set of samples.

    Args:
        samples: the set.
        predictions: one entry a class (multi-label: two) that has samples.
        parts: one entry a slice, in the order given.
        before: the predictions of the classifier, one row each.
        after: what the retrained one says.
    """

    samples: SampleSet
    predictions: tuple[Result, ...]
    parts: tuple[SlicePart, ...]
    before: Dataset
    after: Dataset

    @property
    def is_multi_label(self) -> bool:
        """Return whether a sample is decided on more than once."""
        return self.before.task is Task.MULTI_LABEL

    @cached_property
    def decision_groups(self) -> IntArray | None:
        """Return the group of every decision, class by class, None if every sample is on its own; a group may be in several classes."""
        groups = several_to_a_group(self.before.groups)
        if groups is None or not self.predictions:
            return None
        positions: IntArray = np.concatenate([one.positions for one in self.predictions])
        return np.asarray(groups[positions], dtype=np.int64)

    @cached_property
    def targets(self) -> IntArray | BoolArray:
        """Return the true class of every sample [n], or its true labels [n, c]."""
        return self.before.label_matrix if self.is_multi_label else self.before.labels


def compare(
    samples: SampleSet,
    probabilities: FloatArray,
    slices: Sequence[FailureSlice],
    criterion: FailureCriterion,
    thresholds: FloatArray | None,
) -> Comparison:
    """Compare predictions on samples that are labelled and have a known result before.

    Who belongs to a slice is decided by its rule, from embeddings and columns; labels only score.

    Args:
        samples: what to measure on.
        probabilities: [n, c] after the repair.
        slices: the slices that were repaired.
        criterion: what counts as a failure.
        thresholds: multi-label thresholds after the repair; the data set's own by default.
    """
    before = _restrict(samples.dataset, samples.rows)
    after = before.with_predictions(
        probabilities=probabilities,
        thresholds=before.thresholds if thresholds is None else thresholds,
    )
    everywhere = np.arange(len(samples))
    predictions = tuple(
        Result(
            problem=replace(first, rows=samples.rows[first.rows]),
            positions=first.rows,
            right_before=~first.failed,
            right_after=~second.failed,
        )
        for first, second in zip(
            class_problems(before, everywhere, criterion),
            class_problems(after, everywhere, criterion),
            strict=True,
        )
    )
    titles = _unique_titles(slices)
    parts = tuple(
        _part(found, title, predictions, samples)
        for found, title in zip(slices, titles, strict=True)
    )
    return Comparison(
        samples=samples, predictions=predictions, parts=parts, before=before, after=after
    )


def is_measurable(samples: SampleSet) -> BoolArray:
    """Return which samples have a label and a known result before."""
    dataset, rows = samples.dataset, samples.rows
    known = dataset.is_labelled[rows]
    return known if dataset.predictions is None else known & (dataset.predictions[rows] >= 0)


def refuse_prediction_rules(slices: Sequence[FailureSlice]) -> None:
    """Refuse slices whose members are defined by predictions: they hold former failures by definition, so any change looks good."""
    circular = [found.title for found in slices if found.rule.reads_predictions]
    if circular:
        raise DataError(
            "A repair cannot be measured on a slice that is defined by predictions.",
            given=circular,
            fix="Repair slices that are defined by images, words or columns.",
        )


def _part(
    found: FailureSlice, title: str, predictions: Sequence[Result], samples: SampleSet
) -> SlicePart:
    result = next((one for one in predictions if matches(found, one.problem)), None)
    sides = sides_of(found, samples, [] if result is None else [result.problem])
    return SlicePart(
        found=found, title=title, result=result, inside=sides.inside, outside=sides.outside
    )


def _restrict(dataset: Dataset, rows: IntArray) -> Dataset:
    """Return labels, groups and predictions of the given rows, in their order."""
    column = "label" if dataset.task is Task.SINGLE_LABEL else "labels"
    columns = [column, "content_hash", *({GROUP} & set(dataset.table.column_names))]
    return replace(
        dataset,
        table=dataset.table.select(columns).take(pa.array(rows)),
        predictions=None if dataset.predictions is None else dataset.predictions[rows],
        predicted_matrix=None
        if dataset.predicted_matrix is None
        else dataset.predicted_matrix[rows],
        probabilities=None
        if dataset.probabilities is None
        else np.asarray(dataset.probabilities[rows]),
    )


def _unique_titles(slices: Sequence[FailureSlice]) -> list[str]:
    titles = [found.title for found in slices]
    return [
        f"{title} ({found.slice_id[:6]})" if titles.count(title) > 1 else title
        for title, found in zip(titles, slices, strict=True)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """All measured samples, in groups.

    Args:
        names: [g].
        parts: one entry a class; together they hold every decision, whether it is in a group or not.
    """

    names: tuple[str, ...]
    parts: tuple[GroupedResult, ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> IntArray:
        """Return how many decisions are in every group [g]."""
        sizes = np.zeros(len(self), dtype=np.int64)
        for _, numbers, members in self.parts:
            np.add.at(sizes, numbers, members.sum(axis=1))
        return sizes

    def at_least(self, n_samples: int) -> "Groups":
        """Return only the groups of a least size; the samples of the others still count overall."""
        is_kept = self.sizes >= max(n_samples, 1)
        renumbered = np.cumsum(is_kept) - 1
        return Groups(
            names=tuple(name for name, kept in zip(self.names, is_kept, strict=True) if kept),
            parts=tuple(
                (result, renumbered[numbers[is_kept[numbers]]], members[is_kept[numbers]])
                for result, numbers, members in self.parts
            ),
        )


def own_groups(comparison: Comparison) -> Groups:
    """Return slices, what is in no slice of a class that has some, and the classes that have none."""
    by_class: dict[int, list[SlicePart]] = defaultdict(list)
    for slice_part in comparison.parts:
        if slice_part.result is not None:
            by_class[id(slice_part.result)].append(slice_part)
    names: list[str] = []
    parts: list[GroupedResult] = []
    for result in comparison.predictions:
        own = by_class.get(id(result), [])
        title = result.problem.title
        members = [np.ones(len(result.positions), dtype=np.bool_)]
        if own:
            members = [*(one.inside for one in own), np.all([one.outside for one in own], axis=0)]
        numbers = np.arange(len(names), len(names) + len(members))
        names += [*(one.title for one in own), f"{title}: the rest"] if own else [title]
        parts.append((result, numbers, np.array(members, dtype=np.bool_)))
    return Groups(names=tuple(names), parts=tuple(parts))


def given_groups(comparison: Comparison, groups: IntArray) -> Groups:
    """Return groups that somebody else named, for example by group labels in a column.

    Args:
        comparison: what was measured.
        groups: [n] number of every measured sample's group, -1 for none.
    """
    if groups.shape != (len(comparison.samples),):
        raise DataError(
            "There must be one group number for every measured sample.",
            given=(groups.shape, len(comparison.samples)),
        )
    known = np.unique(groups[groups >= 0])
    parts: list[GroupedResult] = []
    for result in comparison.predictions:
        own = groups[result.positions]
        here = np.unique(own[own >= 0])
        parts.append((result, np.searchsorted(known, here), own[None, :] == here[:, None]))
    return Groups(names=tuple(f"group {number}" for number in known.tolist()), parts=tuple(parts))


N_DRAWS = 1000
MIN_GROUPS = 2
MAX_BLOCK = 1 << 23

_Members = list[tuple[Result, BoolArray]]


_Accuracies = tuple[DoubleArray, DoubleArray]
"""Accuracies of groups, and last of everything, before and after [draws, g + 1]; first the samples as they are, then drawn again.

A group that a draw left without samples has NaN.
"""


def spread_of(
    groups: Groups,
    n_samples: int,
    *,
    seed: int,
    n_draws: int = N_DRAWS,
    together: IntArray | None = None,
) -> Spread | None:
    """Return the worst group, the average and the gap before and after; None if there are fewer than two groups.

    Intervals come from a paired bootstrap: samples are drawn again with both of their predictions, and in each draw the worst group
    is found anew, before and after. Where a sample is decided on once, groups keep their sizes. In multi-label tasks whole
    samples are drawn, since the decisions on a sample depend on each other; then sizes vary. Where several samples belong
    together (images of one object), all of them are drawn or none (a cluster bootstrap). The lowest of many rates is lower
    than the lowest true rate; intervals are corrected for that, but not enough where dozens of groups have a few dozen samples.

    Args:
        groups: of the measured samples; very small ones make the worst a matter of chance.
        n_samples: how many samples were measured.
        seed: of the run.
        n_draws: how often samples are drawn again.
        together: [n] number of every measured sample's object, patient or burst; None: every sample is on its own.
    """
    if len(groups) < MIN_GROUPS:
        return None
    random = generator(seed, "measure", "spread")
    is_decided_once = sum(len(result.positions) for result, _, _ in groups.parts) <= n_samples
    drawn = (
        _by_group(groups, n_draws, random)
        if is_decided_once and together is None
        else _by_sample(groups, n_samples, _blocks(n_samples, n_draws, random, together))
    )
    (before, overall_before), (after, overall_after) = ((one[:, :-1], one[:, -1]) for one in drawn)
    worst_before, worst_after = np.nanmin(before, axis=1), np.nanmin(after, axis=1)
    gap_before, gap_after = overall_before - worst_before, overall_after - worst_after
    return Spread(
        worst_group=groups.names[int(np.argmin(after[0]))],
        worst_before=float(worst_before[0]),
        worst_after=float(worst_after[0]),
        average_before=float(before[0].mean()),
        average_after=float(after[0].mean()),
        gap_before=float(gap_before[0]),
        gap_after=float(gap_after[0]),
        worst_change=_interval(worst_after - worst_before),
        gap_change=_interval(gap_after - gap_before),
    )


def _interval(changes: DoubleArray) -> Interval:
    low, high = bootstrap_interval(float(changes[0]), changes[1:])
    return Interval(low=low, high=high)


def _by_group(groups: Groups, n_draws: int, random: np.random.Generator) -> _Accuracies:
    from scipy.sparse import csr_array

    tables: list[IntArray] = []
    strata, numbers = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    n_strata = 0
    for result, own, members in groups.parts:
        kinds, place = _kinds(members)
        code = place * 4 + _codes(result)
        tables.append(np.bincount(code, minlength=4 * kinds.shape[1]).reshape(-1, 4))
        member, kind = np.nonzero(kinds)
        strata.append(n_strata + kind)
        numbers.append(own[member])
        n_strata += kinds.shape[1]
    counts = np.concatenate(tables)
    places = (np.concatenate(numbers), np.concatenate(strata))
    holds = csr_array((np.ones(len(places[0])), places), shape=(len(groups), n_strata))
    before, after = paired_draws(counts, n_draws=n_draws, random=random)
    right = [
        np.vstack([counts[:, column] + counts[:, 3], drawn])
        for column, drawn in ((2, before), (1, after))
    ]
    sizes = holds @ counts.sum(axis=1)
    before, after = (
        np.column_stack(
            [(holds @ one.T.astype(np.float64)).T / sizes, one.sum(axis=1) / counts.sum()]
        )
        for one in right
    )
    return np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)


def _kinds(members: BoolArray) -> tuple[BoolArray, IntArray]:
    """Return the distinct memberships [k, kinds] and which of them every sample has [n]."""
    if members.all():
        return members[:, :1], np.zeros(members.shape[1], dtype=np.int64)
    kinds, place = np.unique(members, axis=1, return_inverse=True)
    return kinds, np.ravel(place)


def _codes(result: Result) -> IntArray:
    """Return 0 for wrong both times, 1 for gained, 2 for lost, 3 for right both times."""
    return result.right_before * 2 + result.right_after.astype(np.int64)


def _by_sample(groups: Groups, n_samples: int, blocks: Iterator[DoubleArray]) -> _Accuracies:
    """Draw whole samples, with all decisions on them; after the groups, all decisions make up one more."""
    everything = [
        (result, np.ones(len(result.positions), dtype=np.bool_)) for result, _, _ in groups.parts
    ]
    members: list[_Members] = [[] for _ in groups.names]
    for result, numbers, own in groups.parts:
        for number, chosen in zip(numbers.tolist(), own, strict=True):
            members[number].append((result, chosen))
    members.append(everything)
    *counted, turned_by = zip(*(_counted(own, n_samples) for own in members), strict=True)
    sizes, wrong_before, wrong_after = (_sparse(columns, n_samples) for columns in counted)
    turned = np.array(turned_by)[:, None]
    before, after = [], []
    for block in blocks:
        others = sizes @ block
        n_generated = np.where(turned > 0, turned * block.sum(axis=0) - others, others)
        n_generated = np.where(n_generated > 0, n_generated, np.nan)
        before.append(1.0 - (wrong_before @ block) / n_generated)
        after.append(1.0 - (wrong_after @ block) / n_generated)
    return np.concatenate(before, axis=1).T, np.concatenate(after, axis=1).T


def _counted(members: _Members, n_samples: int) -> tuple[IntArray, IntArray, IntArray, int]:
    """Return the decisions of a group by sample: all, those wrong before, those wrong after, each sample as often as it is decided on.

    Sums over nearly everybody follow from sums over the few others, which are much cheaper: then the first lists how many
    decisions each sample falls short of the largest number, which comes last and is 0 otherwise.
    """
    nothing = [np.zeros(0, dtype=np.int64)]
    sizes, turned = (
        np.concatenate([*nothing, *(one.positions[chosen] for one, chosen in members)]),
        0,
    )
    if len(sizes) > n_samples / 2:
        counts = np.bincount(sizes, minlength=n_samples)
        turned = int(counts.max())
        sizes = np.repeat(np.arange(n_samples), turned - counts)
    before = [one.positions[chosen & ~one.right_before] for one, chosen in members]
    after = [one.positions[chosen & ~one.right_after] for one, chosen in members]
    return sizes, np.concatenate([*nothing, *before]), np.concatenate([*nothing, *after]), turned


def _sparse(columns: Sequence[IntArray], n_samples: int) -> Any:
    """Return the sparse matrix [g, n] of how often each row lists each sample."""
    from scipy.sparse import csr_array

    numbers = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
    places = (numbers, np.concatenate(columns))
    return csr_array((np.ones(len(numbers)), places), shape=(len(columns), n_samples))


def _blocks(
    n_samples: int, n_draws: int, random: np.random.Generator, together: IntArray | None = None
) -> Iterator[DoubleArray]:
    """Yield how often each sample is drawn [n, draws]: first everybody once, then at random, a few draws at a time."""
    yield np.ones((n_samples, 1), dtype=np.float64)
    n_units = n_samples if together is None else int(together.max()) + 1
    step = max(1, MAX_BLOCK // n_samples)
    for start in range(0, n_draws, step):
        width = min(step, n_draws - start)
        drawn = random.integers(0, n_units, size=(width, n_units))
        block = np.empty((n_units, width), dtype=np.float64)
        for column in range(width):
            block[:, column] = np.bincount(drawn[column], minlength=n_units)
        yield block if together is None else block[together]


def measure_given(
    comparison: Comparison, column: str, *, least_group: int, seed: int
) -> GivenGroups | None:
    """Return accuracies of the groups by class and value of a column, before and after; None if no measured sample has a value.

    Args:
        comparison: what was measured, before and after.
        column: metadata column with group labels; no method of discovery reads it.
        least_group: groups with fewer samples cannot be the worst.
        seed: of the intervals.
    """
    samples = comparison.samples
    if not len(samples) or not _says_something(samples.dataset, column, samples.rows):
        return None
    numbers, names = value_groups(samples.dataset, samples.rows, column)
    groups = given_groups(comparison, numbers)
    known = np.unique(numbers[numbers >= 0])
    groups = Groups(names=tuple(names[number] for number in known), parts=groups.parts)
    before, after = (_right(groups, when) for when in ("right_before", "right_after"))
    large = groups.at_least(least_group)
    results = [result for result, _, _ in groups.parts]
    n_decisions = sum(len(one.positions) for one in results)
    return GivenGroups(
        column=column,
        overall_before=sum(int(one.right_before.sum()) for one in results) / n_decisions,
        overall_after=sum(int(one.right_after.sum()) for one in results) / n_decisions,
        groups=tuple(
            GivenGroup(
                group=name,
                n_samples=size,
                accuracy_before=first / size,
                accuracy_after=second / size,
            )
            for name, size, first, second in zip(
                groups.names, groups.sizes.tolist(), before, after, strict=True
            )
        ),
        n_small=len(groups) - len(large),
        spread=spread_of(
            large,
            len(samples),
            seed=seed,
            together=several_to_a_group(comparison.before.groups),
        ),
    )


def _says_something(dataset: Dataset, column: str, rows: IntArray) -> bool:
    if column not in dataset.metadata_names:
        return False
    taken = dataset.metadata(column).take(rows)
    return bool(taken.null_count < len(taken))


def _right(groups: Groups, when: str) -> list[int]:
    """Return how many decisions of every group are right."""
    counts = np.zeros(len(groups), dtype=np.int64)
    for result, numbers, members in groups.parts:
        np.add.at(counts, numbers, members @ getattr(result, when).astype(np.int64))
    return [int(one) for one in counts]
