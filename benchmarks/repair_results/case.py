"""A problem whose truth is known, laid out for repair: training, validation, pool and test samples, and the true slices."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import IntArray
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.repair.measure import untouched
from weakspot_lab.bench.problem import BenchProblem

TRUTH = "true kind"
HIDDEN, USUAL = "hidden", "usual"


@dataclass(frozen=True, kw_only=True, eq=False)
class RepairCase:
    """A classifier's samples in four parts, and where it is known to fail.

    Args:
        title: the problem in words.
        samples: all samples; the column `true kind` tells hidden from usual ones and is read by references and measurement only.
        discovery: what slices are found on, without that column.
        confirmation: what they are proven on, without that column.
        truths: the slices that were put there.
        assistants: whom methods may ask.
        criterion: what counts as a failure.
    """

    title: str
    samples: SampleSet
    discovery: SampleSet
    confirmation: SampleSet
    truths: tuple[FailureSlice, ...]
    assistants: Assistants
    criterion: FailureCriterion

    @cached_property
    def training(self) -> SampleSet:
        """Return what the classifier was trained on."""
        return self._of(Split.TRAIN, "training samples")

    @cached_property
    def validation(self) -> SampleSet:
        """Return both halves that slices were found and proven on; penalties are chosen on them too."""
        return self._of(Split.VALIDATION, "validation samples")

    @cached_property
    def pool(self) -> SampleSet:
        """Return what may be added."""
        return self._of(Split.POOL, "pool")

    @cached_property
    def test(self) -> SampleSet:
        """Return what is measured on, and nothing else is done with; no image of it is among the others."""
        used = [part.rows for part in (self.training, self.validation, self.pool)]
        return untouched(self._of(Split.TEST, "test samples"), used)

    def _of(self, split: Split, name: str) -> SampleSet:
        return self.samples.only(self.samples.dataset.rows_of(split), name=name)


def repair_case(problem: BenchProblem, parts: Mapping[Split, IntArray]) -> RepairCase:
    """Return a problem laid out for repair.

    Args:
        problem: with the built-in attributes as columns, if methods are to read them.
        parts: rows of every split, none in two; validation rows are the problem's halves.
    """
    dataset = _resplit(problem.samples.dataset, parts)
    hidden = np.any([truth.inside for truth in problem.truths], axis=0)
    known = dataset.with_metadata({TRUTH: np.where(hidden, HIDDEN, USUAL).tolist()})
    samples = replace(problem.samples, dataset=known)
    return RepairCase(
        title=problem.title,
        samples=samples,
        discovery=replace(problem.discovery, dataset=dataset),
        confirmation=replace(problem.confirmation, dataset=dataset),
        truths=tuple(_true_slice(truth.class_name, samples) for truth in problem.truths),
        assistants=problem.assistants,
        criterion=problem.criterion,
    )


def _true_slice(class_name: str, samples: SampleSet) -> FailureSlice:
    return FailureSlice(
        class_name=class_name,
        rule=ColumnRule(column=TRUTH, values=(HIDDEN,)),
        method="truth",
        found_on=DataUse(
            name="how the problem was made", n_samples=len(samples.dataset), digest=""
        ),
    )


def _resplit(dataset: Dataset, parts: Mapping[Split, IntArray]) -> Dataset:
    codes = np.array(dataset.splits, dtype=np.int8)
    for split, rows in parts.items():
        codes[rows] = SPLIT_ORDER.index(split)
    place = dataset.table.column_names.index("split")
    return replace(
        dataset, table=dataset.table.set_column(place, "split", pa.array(codes, pa.int8()))
    )
