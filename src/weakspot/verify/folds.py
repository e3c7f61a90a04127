"""The same slice found twice when halves are swapped: shown once."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from weakspot.core.arrays import BoolArray
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.rules import single_rules
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import overlap


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
