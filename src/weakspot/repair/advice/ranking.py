"""The order in which to do things."""

from collections.abc import Mapping, Sequence

from weakspot.core.advice import Advice, AdviceKind

AFTER_FIGURES = 3
TIERS = {
    AdviceKind.MEND_SETUP: 0,
    AdviceKind.CHECK_LABELS: 1,
    AdviceKind.RETRAIN: 2,
    AdviceKind.LABEL: 2,
    AdviceKind.COLLECT: 2,
    AdviceKind.GENERATE: 4,
    AdviceKind.ACCEPT: 5,
}
ORDER = tuple(TIERS)


def in_order(advice: Sequence[Advice], failures: Mapping[str, int]) -> tuple[Advice, ...]:
    """Return advice, best first.

    What makes everything else doubtful comes first: the set-up, then labels. Then what will clearly help, by how many failures it will
    resolve, and of one finding first what can be done at once; then what may help; then what only remains.

    Args:
        advice: in any order.
        failures: of every subject, how many evaluation images fail.
    """
    worth: dict[str, float] = {}
    for one in advice:
        resolved = max(one.gain or 0.0, 0.0) * failures.get(one.subject, 0)
        worth[one.subject] = max(worth.get(one.subject, 0.0), resolved)
    return tuple(
        sorted(
            advice,
            key=lambda one: (
                _tier(one),
                -worth[one.subject],
                -failures.get(one.subject, 0),
                one.subject,
                ORDER.index(one.kind),
            ),
        )
    )


def _tier(one: Advice) -> int:
    tier = TIERS[one.kind]
    is_sure = one.gain_interval is not None and one.gain_interval.low > 0
    is_unsure = tier == TIERS[AdviceKind.LABEL] and not is_sure
    return AFTER_FIGURES if is_unsure else tier
