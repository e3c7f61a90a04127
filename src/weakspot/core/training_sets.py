"""What a last layer is retrained on: chosen samples, how much each counts, and which groups compete for being served worst."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.evidence import Evidence
from weakspot.core.failures import Side
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice

Contest = tuple[IntArray, ...]
"""Groups of positions in a selection, no position in two of them; what counts is the loss of the group that has the largest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingSelection:
    """Which samples the last layer is retrained on and how much each counts.

    Args:
        rows: rows of the data set, no row twice.
        weights: weight of each of them; their mean is one.
        note: one sentence for the report on what was done.
        contests: groups of which only the worst served counts, in place of their mean; positions in `rows`. No position is in two
            contests. A contest counts as much as the weights of all its positions; what is in no contest counts by its own weight.
    """

    rows: IntArray
    weights: DoubleArray
    note: str
    contests: tuple[Contest, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class RepairMaterial:
    """What a repairer may choose from and look at; never validation or test samples.

    Args:
        training: the samples the classifier was trained on; those without a label are never trained on.
        pool: further samples, labelled or not, that may be added; None if there are none.
        synthetic: generated samples, labelled, that may be added; None if there are none.
        budget: how many pool samples may be added.
        evidence: what was measured of each slice on confirmation samples, by slice id; for how bad it is and how many it touches.
        n_failures: failures among all samples that the evidence was measured on.
        seed: the only source of chance.
        assistants: who can be asked, for example to embed the name of a class.
    """

    training: SampleSet
    pool: SampleSet | None = None
    synthetic: SampleSet | None = None
    budget: int = 0
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    n_failures: int = 0
    seed: int = 0
    assistants: Assistants = NOBODY

    @property
    def labelled(self) -> IntArray:
        """Return the training rows that have a label."""
        return self.training.rows[self.training.dataset.is_labelled[self.training.rows]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassParts:
    """The samples of one class, cut by its slices.

    Args:
        class_name: the class.
        side: for multi-label tasks, whether samples have or lack the label.
        slices: the slices of the class, in the order given.
        inside: rows of each slice that are in no earlier one.
        outside: rows of the class in no slice, also those of which membership cannot be told.
    """

    class_name: str
    side: Side | None
    slices: tuple[FailureSlice, ...]
    inside: tuple[IntArray, ...]
    outside: IntArray

    @property
    def groups(self) -> tuple[IntArray, ...]:
        """Return the parts that have samples, slices first."""
        return tuple(rows for rows in (*self.inside, self.outside) if len(rows))


def class_parts(slices: Sequence[FailureSlice], samples: SampleSet) -> Iterator[ClassParts]:
    """Yield the labelled samples of every class that has a slice, cut by its slices; earlier slices take their members first."""
    keys = dict.fromkeys((found.class_name, found.side) for found in slices)
    for class_name, side in keys:
        own = tuple(found for found in slices if (found.class_name, found.side) == (class_name, side))
        rest = own[0].class_rows(samples)
        inside: list[IntArray] = []
        for found in own:
            is_member: BoolArray = found.rule.members(samples, rest)
            inside.append(rest[is_member])
            rest = rest[~is_member]
        yield ClassParts(class_name=class_name, side=side, slices=own, inside=tuple(inside), outside=rest)


def with_mean_one(weights: DoubleArray) -> DoubleArray:
    """Return weights in the same proportions whose mean is one; all zero stays all zero."""
    total = float(weights.sum())
    return np.asarray(weights * (len(weights) / total), dtype=np.float64) if total > 0 else weights
