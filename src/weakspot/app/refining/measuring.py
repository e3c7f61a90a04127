"""The figures of the Refine paper: clean, failure, seed, held-out, and test before and after."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weakspot.app.family import FamilyMember
from weakspot.app.refining.training import RefinedHead, decisive_samples, rights
from weakspot.core.arrays import BoolArray
from weakspot.core.evidence import Share
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.core.statistics import mcnemar_p


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredSets:
    """The samples that a model is measured on.

    Args:
        test: the test samples that decide.
        seed: the discovery half; its failures chose the names.
        held_out: the confirmation half; it had no say in anything.
    """

    test: SampleSet
    seed: SampleSet
    held_out: SampleSet

    @classmethod
    def of(cls, member: FamilyMember) -> "MeasuredSets":
        """Return those of a model by itself."""
        return cls(test=decisive_samples(member), seed=member.half(0), held_out=member.half(1))

    def uses(self) -> tuple[DataUse, ...]:
        """Return which data these are."""
        return tuple(DataUse.of(one) for one in (self.test, self.seed, self.held_out))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rights:
    """Which decisions are right on the three sets [n each], before and now."""

    test: tuple[BoolArray, BoolArray]
    seed: tuple[BoolArray, BoolArray]
    held_out: tuple[BoolArray, BoolArray]

    @classmethod
    def of(cls, member: FamilyMember, sets: MeasuredSets, refined: RefinedHead) -> "Rights":
        """Return what a retrained layer does on all sets."""
        return cls(
            test=rights(member, sets.test, refined),
            seed=rights(member, sets.seed, refined),
            held_out=rights(member, sets.held_out, refined),
        )

    def shares(self) -> Mapping[str, Share]:
        """Return the figures of the paper by name."""
        before, after = self.test
        return {
            "clean": share(after[before]),
            "failure": share(after[~before]),
            "seed": share(self.seed[1][~self.seed[0]]),
            "held_out": share(self.held_out[1][~self.held_out[0]]),
            "test_before": share(before),
            "test_after": share(after),
        }

    def p_against(self, other: "Rights") -> float:
        """Return McNemar's exact test of the held-out failures against another arm."""
        was_wrong = ~self.held_out[0]
        mine, others = self.held_out[1][was_wrong], other.held_out[1][was_wrong]
        return mcnemar_p(int((mine & ~others).sum()), int((others & ~mine).sum()))


def share(right: BoolArray) -> Share:
    """Return how many are right."""
    return Share.of(int(np.sum(right)), len(right))
