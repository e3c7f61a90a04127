"""Classifiers that are refined, and the samples that choose or measure."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.dataset import Dataset
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.lab.collective.family import Family, FamilyMember
from weakspot.repair.bench import RepairBench
from weakspot.repair.measure.predictions import is_measurable


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """One classifier that is refined.

    Args:
        name: of its project.
        bench: its material and trainer.
        test: the test samples that decide: untouched by anything before.
        seed: its failures choose values, and its right samples how much images may count; the discovery half.
        held_out: has no say in anything; the confirmation half.
    """

    name: str
    bench: RepairBench
    test: SampleSet
    seed: SampleSet
    held_out: SampleSet

    @classmethod
    def of(cls, member: FamilyMember) -> "Subject":
        measured = member.bench.measured
        test = measured.only(measured.rows[is_measurable(measured)])
        return cls(
            name=member.name,
            bench=member.bench,
            test=test,
            seed=member.half(0),
            held_out=member.half(1),
        )

    @property
    def dataset(self) -> Dataset:
        return self.bench.samples.dataset

    @property
    def sets(self) -> tuple[SampleSet, ...]:
        """Return what is measured on: test, seed and held-out."""
        return self.test, self.seed, self.held_out

    def uses(self) -> tuple[DataUse, ...]:
        return tuple(DataUse.of(one) for one in self.sets)


def subjects_of(family: Family) -> tuple[Subject, ...]:
    """Return projects that are refined together: measured on the test samples that all share, with one division into halves.

    An image is in the half in which the first project that has it put it; otherwise what chose values for one model could be held
    out for another.
    """
    half_of: dict[str, int] = {}
    for member in family.members:
        for number in (0, 1):
            half = member.bench.pairs[0][number]
            for content in member.dataset.content_hashes(half.rows):
                half_of.setdefault(content, number)
    return tuple(_together(member, family, half_of) for member in family.members)


def _together(member: FamilyMember, family: Family, half_of: dict[str, int]) -> Subject:
    halves = member.half(0), member.half(1)
    rows = np.sort(np.concatenate([half.rows for half in halves]))
    numbers = np.array(
        [half_of[content] for content in member.dataset.content_hashes(rows)], dtype=np.int64
    )
    seed, held_out = (half.only(rows[numbers == number]) for number, half in enumerate(halves))
    return Subject(
        name=member.name,
        bench=member.bench,
        test=family.measured(member),
        seed=seed,
        held_out=held_out,
    )
