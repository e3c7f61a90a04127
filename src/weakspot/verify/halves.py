"""Two halves of the evaluation samples, one to find slices on and one to test them; slices found twice when halves are swapped."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, IntArray, generator
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import single_rules
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import overlap

MIN_IMAGES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Halves:
    """Rows for discovery and rows for confirmation, ascending and disjoint."""

    discovery: IntArray
    confirmation: IntArray


def split_halves(
    dataset: Dataset,
    rows: IntArray,
    criterion: FailureCriterion,
    *,
    seed: int,
    discovery_share: float = 0.5,
) -> Halves:
    """Split rows so that both parts have the same share of every class and prediction.

    Samples with the same content, and those of one group, stay together. The split depends on the contents and the seed, not on
    the order of the rows.

    Args:
        dataset: all samples.
        rows: the rows to split, usually those of the validation split.
        criterion: what counts as a failure.
        seed: seed of the run.
        discovery_share: share of the samples that discovery may see.
    """
    if not 0.0 < discovery_share < 1.0:
        raise ConfigError(
            "The setting discovery_share must lie between 0 and 1.", given=discovery_share
        )
    unit_of, sizes, strata = _units(dataset, rows, _strata(dataset, rows, criterion))
    n_units = len(sizes)
    if n_units < MIN_IMAGES:
        raise NotEnoughDataError(
            "There are too few evaluation samples to hold some of them back.",
            given=n_units,
            fix="Label more samples.",
        )
    chance = generator(seed, "halves").permutation(n_units)
    order = np.lexsort((chance, sizes, strata))
    # Taking every n-th along the sorted strata keeps shares equal within each stratum and over all.
    steps = np.floor(np.arange(n_units + 1) * discovery_share + 0.5)
    for_discovery = np.zeros(n_units, dtype=np.bool_)
    for_discovery[order] = np.diff(steps) > 0
    chosen = for_discovery[unit_of]
    return Halves(discovery=np.sort(rows[chosen]), confirmation=np.sort(rows[~chosen]))


def _units(
    dataset: Dataset, rows: IntArray, strata: AnyArray
) -> tuple[IntArray, IntArray, AnyArray]:
    """Return the unit of every row [n], and of every unit its different images and its stratum [u].

    A unit goes to one half as a whole: it is a group. Units are in the order of their first content hash.
    """
    hashes = np.array(dataset.content_hashes(rows))
    _, first, content_of = np.unique(hashes, return_index=True, return_inverse=True)
    groups = dataset.groups[rows][first]
    _, place, group_of = np.unique(groups, return_index=True, return_inverse=True)
    # Contents are sorted, so the first place of a group is that of its smallest hash.
    rank = np.empty(len(place), dtype=np.int64)
    rank[np.argsort(place)] = np.arange(len(place))
    unit_of = rank[group_of]
    # A group is of the stratum that most of its images are of; of the lower one among equals.
    counted, numbers = np.unique(np.stack([unit_of, strata[first]]), axis=1, return_counts=True)
    order = np.lexsort((counted[1], -numbers, counted[0]))
    leading = order[np.unique(counted[0][order], return_index=True)[1]]
    sizes = np.bincount(unit_of, minlength=len(place))
    return unit_of[content_of], sizes, counted[1][leading]


def _strata(dataset: Dataset, rows: IntArray, criterion: FailureCriterion) -> AnyArray:
    """Return for every row a number that is shared by samples with the same labels and prediction."""
    place = np.empty(len(dataset), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    failed = np.zeros(len(rows), dtype=np.int64)
    for problem in class_problems(dataset, rows, criterion):
        failed[place[problem.rows]] |= problem.failed
    if dataset.task is Task.SINGLE_LABEL:
        return np.asarray(dataset.labels[rows] * 2 + failed)
    signatures = np.packbits(dataset.label_matrix[rows], axis=1)
    keys = np.concatenate([signatures, failed[:, None].astype(np.uint8)], axis=1)
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1]).ravel()


def merge_folds(
    slices: Sequence[FailureSlice],
    evidence: Sequence[Evidence],
    samples: SampleSet,
    *,
    same_at: float = 0.6,
) -> tuple[Evidence, ...]:
    """Return the same evidence, in the same order, where of two alike slices confirmed in different turns the weaker is `same`.

    One that is told in values of columns, or has words, stands for one that has none, however much surer that is: both are
    confirmed, and people understand the first. Every slice takes in at most one of each other turn, so that what is left is at
    least as much as any turn confirmed and the bound on the share of false findings still holds.

    Args:
        slices: of all turns.
        evidence: of all turns, with error rates that hold over all of them.
        samples: the evaluation samples of all turns together.
        same_at: slices of a class count as alike if their members overlap at least so much (Jaccard).
    """
    if not 0.0 < same_at <= 1.0:
        raise ConfigError("The setting same_at must lie in (0, 1].", given=same_at)
    confirmed = {entry.slice_id: entry for entry in evidence if entry.verdict is Verdict.CONFIRMED}
    members = {
        one.slice_id: (one, one.rule.members(samples, one.class_rows(samples)))
        for one in slices
        if one.slice_id in confirmed
    }
    same_as: dict[str, str] = {}
    taken: set[tuple[str, str]] = set()
    for _, _, better, weaker in sorted(_pairs(members, confirmed, same_at)):
        place = better, members[weaker][0].found_on.digest
        is_free = better not in same_as and weaker not in {*same_as, *same_as.values()}
        if is_free and place not in taken:
            same_as[weaker] = better
            taken.add(place)
    return tuple(
        entry.model_copy(update={"verdict": Verdict.SAME, "same_as": same_as[entry.slice_id]})
        if entry.slice_id in same_as
        else entry
        for entry in evidence
    )


def _pairs(
    members: Mapping[str, tuple[FailureSlice, BoolArray]],
    confirmed: Mapping[str, Evidence],
    same_at: float,
) -> Iterator[tuple[float, float, str, str]]:
    """Yield (minus overlap, q-value of the better one, better slice, weaker slice) of all slices that are alike.

    At the same overlap the best slice comes first, so that one found in all turns is taken in by the best of them.
    """
    sizes = {name: int(inside.sum()) for name, (_, inside) in members.items()}
    for first, second in combinations(sorted(members), 2):
        if min(sizes[first], sizes[second]) < same_at * max(sizes[first], sizes[second]):
            continue
        (one, inside), (other, others) = members[first], members[second]
        if _can_be_same(one, other) and (alike := overlap(inside, others)) >= same_at:
            better, weaker = sorted(
                (first, second),
                key=lambda name: (not _is_told(members[name][0]), confirmed[name].q_value, name),
            )
            yield -alike, confirmed[better].q_value, better, weaker


def _is_told(found: FailureSlice) -> bool:
    """Return whether a slice has words, or its rule is values of columns."""
    return found.name is not None or all(rule.columns for rule in single_rules(found.rule))


def _can_be_same(one: FailureSlice, other: FailureSlice) -> bool:
    return (one.class_name, one.side) == (
        other.class_name,
        other.side,
    ) and one.found_on.digest != other.found_on.digest
