"""Questions that are put to the same samples one after another: what each may cost, and what is left.

A batch is what is asked at one time. Batch t may spend the part `spending_share(t)` of the error rate; all parts together are one,
so the rate holds however long one goes on asking. With `fdr` every earlier batch with a finding raises what a batch may accept: a
batch form of LOND (Javanmard and Montanari, *Online rules for control of false discovery rate and false discovery exceedance*, 2018)
with Benjamini and Hochberg's procedure inside. The others are plain alpha spending. docs/decisions/019 has the argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from weakspot.core.arrays import DoubleArray
from weakspot.core.errors import InputError
from weakspot.core.statistics import Correction, adjusted_p_values

FIRST_SHARE = 0.8
"""Most people ask once. A first batch that got all would leave nothing; one that got half would cost everybody power."""
DECAY = 1.5
ZETA = 2.612375348685488
"""Sum of k to the minus DECAY over all k from 1 on."""


@lru_cache(maxsize=4096)
def spending_share(batch: int) -> float:
    """Return the part of the error rate that a batch may spend, counted from 1; all parts together are one.

    >>> [round(spending_share(batch), 3) for batch in (1, 2, 3, 4)]
    [0.8, 0.077, 0.027, 0.015]
    """
    if batch < 1:
        raise InputError("Batches are counted from 1.", given=batch)
    if batch == 1:
        return FIRST_SHARE
    return float((1.0 - FIRST_SHARE) * (batch - 1) ** -DECAY / ZETA)


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What the next question may spend.

    Args:
        batch: its place among all that was asked, from 1.
        earlier: batches so far that had a finding.
        alpha: error rate over everything.
        correction: which error rate is meant.
    """

    batch: int
    earlier: int
    alpha: float
    correction: Correction = "fdr"

    @property
    def share(self) -> float:
        return spending_share(self.batch)

    @property
    def largest_p(self) -> float:
        """Return up to which p-value a single question would be a finding.

        >>> Allowance(batch=2, earlier=0, alpha=0.05).largest_p.__round__(5)
        0.00383
        """
        bonus = self.earlier + 1 if self.correction == "fdr" else 1
        return min(self.alpha, self.alpha * self.share * bonus)


@dataclass(frozen=True, kw_only=True, eq=False)
class AskedFamily:
    """Tests of one batch that are corrected together.

    Args:
        p_values: [m].
        weights: [m] positive numbers, fixed before the samples were asked.
        part: of the batch's share that is this family's; the parts of a batch are at most one together.
    """

    p_values: DoubleArray
    weights: DoubleArray
    part: float = 1.0


def online_q_values(
    batches: Sequence[Sequence[AskedFamily]], *, alpha: float, correction: Correction
) -> tuple[list[list[DoubleArray]], int]:
    """Return for every test the error rate at which its batch would just accept it, and how many batches had a finding at `alpha`.

    What is asked later changes nothing of what was answered before. Families of one batch do not count each other's findings. A batch
    counts once for later ones, however much it found: hundreds of combinations that share one cause are no licence to be wrong.

    >>> family = AskedFamily(p_values=np.array([0.01]), weights=np.ones(1))
    >>> values, n_fruitful = online_q_values([[family], [family]], alpha=0.05, correction="fwer")
    >>> [round(float(batch[0][0]), 3) for batch in values], n_fruitful
    ([0.012, 0.131], 1)
    """
    values: list[list[DoubleArray]] = []
    n_fruitful = 0
    for place, families in enumerate(batches, start=1):
        adjusted = [
            adjusted_p_values(
                family.p_values,
                correction=correction,
                weights=family.weights,
                share=spending_share(place) * family.part,
                earlier=n_fruitful,
            )
            for family in families
        ]
        values.append(adjusted)
        n_fruitful += any(bool(np.any(one <= alpha)) for one in adjusted)
    return values, n_fruitful
