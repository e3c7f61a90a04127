"""Groups of which only the worst served counts."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.training_sets import WorstGroupObjective

LEAST_TEMPERATURE = 1e-7


@dataclass(frozen=True, kw_only=True, eq=False)
class _Group:
    positions: IntArray
    inner: DoubleArray

    def loss(self, losses: DoubleArray) -> float:
        return float(self.inner @ losses[self.positions])


@dataclass(frozen=True, kw_only=True, eq=False)
class Rivals:
    """One group_objective: what it counts, and its groups; a group whose samples all count nothing takes no part.

    Args:
        share: what its samples count together.
        groups: positions of each group that takes part, with what each sample counts inside it.
    """

    share: float
    groups: tuple[_Group, ...]

    @classmethod
    def of(cls, group_objective: WorstGroupObjective, shares: DoubleArray) -> "Rivals":
        totals = [float(shares[group].sum()) for group in group_objective]
        groups = [
            _Group(positions=group, inner=shares[group] / total)
            for group, total in zip(group_objective, totals, strict=True)
            if total > 0
        ]
        return cls(share=sum(totals), groups=tuple(groups))

    def losses(self, losses: DoubleArray) -> DoubleArray:
        return np.array([group.loss(losses) for group in self.groups])


class GroupObjectives:
    """The loss in which each group_objective counts by its worst group, and samples in no group_objective by themselves."""

    def __init__(
        self, group_objectives: tuple[WorstGroupObjective, ...], shares: DoubleArray
    ) -> None:
        self._rivals = tuple(
            rivals
            for rivals in (
                Rivals.of(group_objective, shares) for group_objective in group_objectives
            )
            if rivals.groups
        )
        self._free = shares.copy()
        for rivals in self._rivals:
            for group in rivals.groups:
                self._free[group.positions] = 0.0

    def __bool__(self) -> bool:
        return bool(self._rivals)

    def worst(self, losses: DoubleArray) -> float:
        """Return the loss that counts, for losses [n] of samples."""
        return float(self._free @ losses) + sum(
            rivals.share * float(rivals.losses(losses).max()) for rivals in self._rivals
        )

    def temperatures(self, losses: DoubleArray, part: float) -> tuple[float, ...]:
        """Return for each group_objective how soft its maximum may be to lie at most a part above the true one."""
        return tuple(
            max(
                part * float(rivals.losses(losses).max()) / np.log(1.0 + len(rivals.groups)),
                LEAST_TEMPERATURE,
            )
            for rivals in self._rivals
        )

    def softened(
        self, losses: DoubleArray, temperatures: tuple[float, ...]
    ) -> tuple[float, DoubleArray]:
        """Return the loss with soft maxima, and how much each sample [n] counts in it."""
        value, counts = float(self._free @ losses), self._free.copy()
        for rivals, temperature in zip(self._rivals, temperatures, strict=True):
            found = rivals.losses(losses)
            powers = np.exp((found - found.max()) / temperature)
            value += rivals.share * float(found.max() + temperature * np.log(powers.sum()))
            for group, power in zip(rivals.groups, powers / powers.sum(), strict=True):
                counts[group.positions] = rivals.share * power * group.inner
        return value, counts

    @property
    def sharpest(self) -> tuple[float, ...]:
        """Return temperatures at which soft maxima are true ones."""
        return tuple(LEAST_TEMPERATURE for _ in self._rivals)


def group_losses(
    group_objectives: tuple[WorstGroupObjective, ...], shares: DoubleArray, losses: DoubleArray
) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(
            float(shares[group] @ losses[group] / shares[group].sum())
            if shares[group].sum() > 0
            else float("nan")
            for group in group_objective
        )
        for group_objective in group_objectives
    )
