"""Rules made of other rules."""

from typing import Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.rules.rule import MembershipRule, Rule, built_in
from weakspot.core.samples import SampleSet


class _CombinedRule(Rule):
    """Several rules; the score is how many of them a sample satisfies."""

    rules: tuple[MembershipRule, ...]

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        if not self.rules:
            return np.zeros(len(rows), dtype=np.float64)
        inside = [rule.members(samples, rows) for rule in self.rules]
        return np.asarray(np.sum(inside, axis=0), dtype=np.float64)

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        if not self.rules:
            return np.ones(len(rows), dtype=np.bool_)
        known = [rule.is_known(samples, rows) for rule in self.rules]
        return np.asarray(np.all(known, axis=0), dtype=np.bool_)

    @property
    def parts(self) -> tuple[Rule, ...]:
        return self.rules

    @property
    def reads_predictions(self) -> bool:
        return any(rule.reads_predictions for rule in self.rules)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name for rule in self.rules for name in rule.columns)


@built_in
class AllOfRule(_CombinedRule):
    """Members satisfy every one of several rules."""

    kind: Literal["all-of"] = "all-of"

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self.scores(samples, rows) >= len(self.rules)

    @property
    def sentence(self) -> str:
        return " And: ".join(rule.sentence for rule in self.rules)


@built_in
class AnyOfRule(_CombinedRule):
    """Members satisfy at least one of several rules, for example of slices that people found to be the same thing."""

    kind: Literal["any-of"] = "any-of"

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self.scores(samples, rows) > 0

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return where every rule can say, or one of them says yes."""
        return super().is_known(samples, rows) | self.members(samples, rows)

    @property
    def sentence(self) -> str:
        return " Or: ".join(rule.sentence for rule in self.rules)
