"""The figures of the Refine paper: clean, failure, seed, held-out, and test before and after."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weakspot.app.refining.subjects import Subject
from weakspot.app.refining.training import RefinedHead, rights
from weakspot.core.arrays import BoolArray
from weakspot.core.evidence import Share
from weakspot.core.statistics import mcnemar_p


@dataclass(frozen=True, kw_only=True, eq=False)
class Rights:
    """Which decisions are right on the three sets [n each], before and now."""

    test: tuple[BoolArray, BoolArray]
    seed: tuple[BoolArray, BoolArray]
    held_out: tuple[BoolArray, BoolArray]

    @classmethod
    def of(cls, subject: Subject, refined: RefinedHead) -> "Rights":
        """Return what a retrained layer does on all sets."""
        test, seed, held_out = (rights(subject, samples, refined) for samples in subject.sets)
        return cls(test=test, seed=seed, held_out=held_out)

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
