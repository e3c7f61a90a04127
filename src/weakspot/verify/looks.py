"""Questions that people put to the confirmation samples by hand: tests like all others, so they are counted with them."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.statistics import adjusted_p_values

TESTED = (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED)


def with_looks(evidence: Sequence[Evidence], looks: Sequence[float], *, alpha: float) -> tuple[Evidence, ...]:
    """Return evidence whose adjusted values hold over its own tests and the p-values of further questions to the same samples.

    Args:
        evidence: of slices that were tested together.
        looks: p-values of questions that led to no slice among them.
        alpha: error rate up to which a slice is confirmed.
    """
    places = [place for place, entry in enumerate(evidence) if entry.verdict in TESTED]
    if not looks or not places:
        return tuple(evidence)
    tested = [evidence[place] for place in places]
    p_values = [*(entry.p_value if entry.gap > 0 else 1.0 for entry in tested), *looks]
    weights = np.array([*(entry.weight for entry in tested), *np.ones(len(looks))])
    adjusted = adjusted_p_values(p_values, control=tested[0].control, weights=weights)
    changed = list(evidence)
    for place, q_value in zip(places, adjusted, strict=False):
        entry = evidence[place]
        is_confirmed = entry.verdict is Verdict.CONFIRMED and q_value <= alpha
        changed[place] = entry.model_copy(
            update={
                "q_value": max(float(q_value), entry.q_value),
                "n_tested": entry.n_tested + len(looks),
                "verdict": Verdict.CONFIRMED if is_confirmed else Verdict.NOT_CONFIRMED,
            }
        )
    return tuple(changed)
