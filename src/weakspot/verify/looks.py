"""Questions that people put to the confirmation samples by hand: tests like all others, so they are counted with them."""

from collections.abc import Collection, Sequence

import numpy as np

from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.statistics import adjusted_p_values

TESTED = (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED)


def with_looks(
    evidence: Sequence[Evidence],
    looks: Sequence[float],
    *,
    alpha: float,
    min_gap: float = 0.0,
    n_turns: int = 1,
    among: Collection[str] | None = None,
) -> tuple[Evidence, ...]:
    """Return evidence whose adjusted values hold over its own tests and further questions to the same samples.

    A question that led to no slice is never published, so it counts as a test with p = 1: it makes the others pay, and its own
    p-value, however small, helps none of them. No adjusted value becomes smaller, and the more questions, the larger they are.

    Args:
        evidence: of all slices of a run.
        looks: p-values of questions that led to no slice among them.
        alpha: error rate up to which a slice is confirmed, over all turns.
        min_gap: least difference of failure rates for a confirmed finding.
        n_turns: turns that the error rate is divided among.
        among: ids of the slices that were measured on the samples that answered the questions; all by default.
    """
    places = [place for place, entry in enumerate(evidence) if was_tested(entry) and (among is None or entry.slice_id in among)]
    if not looks or not places:
        return tuple(evidence)
    tested = [evidence[place] for place in places]
    p_values = [*(entry.p_value if _is_wide(entry, min_gap) else 1.0 for entry in tested), *np.ones(len(looks))]
    weights = np.array([*(entry.weight for entry in tested), *np.ones(len(looks))])
    adjusted = adjusted_p_values(p_values, control=tested[0].control, weights=weights)
    changed = list(evidence)
    for place, value in zip(places, adjusted, strict=False):
        entry = evidence[place]
        q_value = max(min(1.0, float(value) * n_turns), entry.q_value)
        is_lost = entry.verdict is not Verdict.NOT_CONFIRMED and q_value > alpha
        update = {"q_value": q_value, "n_tested": entry.n_tested + len(looks)}
        lost = {"verdict": Verdict.NOT_CONFIRMED, "same_as": None, "explained": None} if is_lost else {}
        changed[place] = entry.model_copy(update={**update, **lost})
    return _without_lost_leaders(changed, evidence)


def was_tested(entry: Evidence) -> bool:
    """Return whether a slice has a test of its own: of slices with nearly the same members only one has.

    A slice that was confirmed in one turn and is the same as one of another turn was tested nevertheless.
    """
    return entry.verdict in TESTED or (entry.verdict is Verdict.SAME and entry.q_value < 1.0)


def _is_wide(entry: Evidence, min_gap: float) -> bool:
    return entry.gap > 0 and entry.gap >= min_gap


def _without_lost_leaders(changed: Sequence[Evidence], before: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence in which nothing is explained by, or the same as, a finding that is none any more."""
    lost = {
        now.slice_id
        for now, then in zip(changed, before, strict=True)
        if then.verdict is Verdict.CONFIRMED and now.verdict is not Verdict.CONFIRMED
    }
    found = []
    for entry in changed:
        update: dict[str, object] = {}
        if entry.explained is not None and entry.explained.slice_id in lost:
            update["explained"] = None
        if entry.verdict is Verdict.SAME and entry.same_as in lost and was_tested(entry):
            update |= {"verdict": Verdict.CONFIRMED, "same_as": None}
        found.append(entry.model_copy(update=update) if update else entry)
    return tuple(found)
