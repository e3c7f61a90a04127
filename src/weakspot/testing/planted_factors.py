"""Draws what is in every scene of a planted world, block by block, so that the first rows never depend on how many follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, ByteArray, DoubleArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.core.seeding import generator
from weakspot.testing.planted_problems import PlantedProblem
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS, KINDS

BLOCK = 4096
N_KINDS_SHARES = (0.5, 0.3, 0.2)


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnRows:
    """Rows of a planted world.

    Args:
        codes: scenes [n, 7], see `Scene.codes`.
        splits: position in `SPLIT_ORDER` [n].
        truth: which classes are really in the scene [n, c].
        labels: which classes the label names [n, c]; differs from `truth` under label noise.
    """

    codes: ByteArray
    splits: ByteArray
    truth: BoolArray
    labels: BoolArray


@dataclass(frozen=True, kw_only=True)
class FactorPlan:
    """How rows are drawn."""

    problem: PlantedProblem
    classes: tuple[str, ...]
    split_shares: Mapping[Split, float]
    is_multi_label: bool
    seed: int

    def draw(self, n_rows: int) -> DrawnRows:
        """Return the first n rows."""
        starts = range(0, max(n_rows, 1), BLOCK)
        blocks = [self._block(number, min(BLOCK, n_rows - start)) for number, start in enumerate(starts)]
        return DrawnRows(
            codes=np.concatenate([block.codes for block in blocks]),
            splits=np.concatenate([block.splits for block in blocks]),
            truth=np.concatenate([block.truth for block in blocks]),
            labels=np.concatenate([block.labels for block in blocks]),
        )

    def _block(self, number: int, n_rows: int) -> DrawnRows:
        random = generator(self.seed, "planted rows", str(number))
        shares = np.array([self.split_shares.get(split, 0.0) for split in SPLIT_ORDER])
        splits = _pick(random.random(BLOCK), shares / shares.sum())
        truth = self._truth(random)
        codes = np.zeros((BLOCK, len(FACTOR_NAMES)), dtype=np.uint8)
        codes[:, 0] = truth @ np.array([1 << KINDS.index(name) for name in self.classes])
        in_training = splits == SPLIT_ORDER.index(Split.TRAIN)
        for place, name in enumerate(FACTOR_NAMES[1:], start=1):
            codes[:, place] = self._values(name, truth, in_training, random)
        if self.is_multi_label:
            codes[truth.sum(axis=1) > 1, FACTOR_NAMES.index("count")] = FACTORS["count"].index("one")
        labels = self._labels(truth, random)
        return DrawnRows(
            codes=codes[:n_rows], splits=splits[:n_rows].astype(np.uint8), truth=truth[:n_rows], labels=labels[:n_rows]
        )

    def _truth(self, random: np.random.Generator) -> BoolArray:
        ranks = random.random((BLOCK, len(self.classes))).argsort(axis=1).argsort(axis=1)
        many = random.random(BLOCK)
        if not self.is_multi_label:
            return np.equal(ranks, 0)
        n_kinds = 1 + _pick(many, np.array(N_KINDS_SHARES))
        return np.less(ranks, n_kinds[:, None])

    def _values(self, name: str, truth: BoolArray, in_training: BoolArray, random: np.random.Generator) -> IntArray:
        first, second = random.random((2, BLOCK))
        values, problem = FACTORS[name], self.problem
        if name != problem.factor or problem.kind not in ("spurious", "rare"):
            return _pick(first, np.full(len(values), 1 / len(values)))
        common = [problem.value] + ([problem.usual_value] if problem.kind == "spurious" else [])
        found = _pick(first, _shares(values, dict.fromkeys(common, problem.evaluation_share)))
        affected = in_training & truth[:, self.classes.index(problem.class_name)]
        if problem.kind == "rare":
            return np.where(affected, _pick(first, _shares(values, {problem.value: problem.strength})), found)
        rivals = in_training & truth[:, self.classes.index(problem.rival)]
        is_forced = second < problem.strength
        found[rivals & ~affected & is_forced] = values.index(problem.value)
        found[affected & ~rivals & is_forced] = values.index(problem.usual_value)
        return found

    def _labels(self, truth: BoolArray, random: np.random.Generator) -> BoolArray:
        is_wrong = random.random(BLOCK) < self.problem.strength
        step = random.integers(1, max(len(self.classes), 2), BLOCK)
        if self.problem.kind != "label-noise":
            return truth
        labels = truth.copy()
        wrong = np.flatnonzero(is_wrong)
        if self.is_multi_label:
            flipped = (wrong + step[wrong]) % len(self.classes)
            labels[wrong, flipped] = ~labels[wrong, flipped]
            return labels
        labels[wrong] = False
        labels[wrong, (truth[wrong].argmax(axis=1) + step[wrong]) % len(self.classes)] = True
        return labels


def _shares(values: Sequence[str], fixed: Mapping[str, float]) -> DoubleArray:
    rest = (1.0 - sum(fixed.values())) / (len(values) - len(fixed)) if len(values) > len(fixed) else 0.0
    return np.array([fixed.get(value, rest) for value in values])


def _pick(uniform: DoubleArray, shares: DoubleArray) -> IntArray:
    return np.minimum(np.searchsorted(np.cumsum(shares), uniform, side="right"), len(shares) - 1)
