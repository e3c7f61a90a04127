"""The samples of all classes side by side: what tests of whole classes read."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import NO_LABEL, Dataset, Task
from weakspot.core.failures import FailureCriterion, Side, class_problems, predicted_classes
from weakspot.core.group_tests import effective_number, group_interval
from weakspot.core.groups import several_to_a_group
from weakspot.core.seeding import generator

DATA_SEED = 0
"""A new seed must not buy a new chance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassMaterial:
    """One entry a sample and class that it is tested as; in multi-label tasks a sample is there once for every label it has.

    Args:
        dataset: the samples.
        rows: rows of the data set [n].
        codes: the class of each [n].
        failed: which of them failed [n].
        predicted: what they were taken for [n]; None in multi-label tasks, where a label is missed rather than taken for another.
        groups: number of the group of each [n]; None if every sample is a group of its own.
    """

    dataset: Dataset
    rows: IntArray
    codes: IntArray
    failed: BoolArray
    predicted: IntArray | None
    groups: IntArray | None

    @classmethod
    def of(cls, dataset: Dataset, rows: IntArray, criterion: FailureCriterion) -> "ClassMaterial":
        """Return the labelled samples with predictions; of multi-label classes only samples that have the label."""
        problems = [
            one for one in class_problems(dataset, rows, criterion) if one.side is not Side.ABSENT
        ]
        nothing = np.zeros(0, dtype=np.int64)
        own = np.concatenate([nothing, *(one.rows for one in problems)])
        codes = np.repeat(
            [dataset.class_code(one.class_name) for one in problems],
            [len(one.rows) for one in problems],
        ).astype(np.int64)
        is_single = dataset.task is Task.SINGLE_LABEL
        return cls(
            dataset=dataset,
            rows=own,
            codes=codes,
            failed=np.concatenate([nothing > 0, *(one.failed for one in problems)]),
            predicted=predicted_classes(dataset, own) if is_single and len(own) else None,
            groups=several_to_a_group(dataset.groups[own]) if len(own) else None,
        )

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.rows)

    @cached_property
    def sizes(self) -> IntArray:
        """Return the samples of every class [c]."""
        return np.bincount(self.codes, minlength=self.dataset.n_classes)

    @cached_property
    def failures(self) -> IntArray:
        """Return the failures of every class [c]."""
        return np.bincount(self.codes[self.failed], minlength=self.dataset.n_classes)

    def name(self, code: int) -> str:
        return self.dataset.class_names[code]

    def only(self, chosen: BoolArray | IntArray) -> "ClassMaterial":
        return replace(
            self,
            rows=self.rows[chosen],
            codes=self.codes[chosen],
            failed=self.failed[chosen],
            predicted=None if self.predicted is None else self.predicted[chosen],
            groups=None if self.groups is None else several_to_a_group(self.groups[chosen]),
        )

    def one_of_each_group(self) -> "ClassMaterial":
        """Return one entry of every group, chosen by its place alone."""
        if self.groups is None:
            return self
        order = generator(DATA_SEED, "representatives").permutation(len(self.rows))
        _, first = np.unique(self.groups[order], return_index=True)
        return self.only(np.sort(order[first]))

    def interval(self, count: int, chosen: BoolArray) -> tuple[float, float]:
        """Return the interval of a share of the chosen entries [n]; groups count once."""
        return group_interval(count, int(chosen.sum()), effective_number(self.groups, chosen))

    @cached_property
    def digest(self) -> bytes:
        """Return a hash over everything that answers follow from: samples, classes, failures, predictions and groups."""
        ids = np.array(self.dataset.sample_ids(self.rows), dtype=np.str_)
        order = np.lexsort((self.codes, ids))
        hashed = hashlib.sha256("\n".join(ids[order].tolist()).encode())
        names = np.array([*self.dataset.class_names, ""], dtype=np.str_)
        said = np.full(len(self), NO_LABEL) if self.predicted is None else self.predicted
        for values in (names[self.codes[order]], names[said[order]]):
            hashed.update("\n".join(values.tolist()).encode())
        hashed.update(np.packbits(self.failed[order]).tobytes())
        if self.groups is not None:
            _, first, codes = np.unique(self.groups[order], return_index=True, return_inverse=True)
            hashed.update(np.argsort(np.argsort(first))[codes].astype(np.int64).tobytes())
        return hashed.digest()

    def question(self, *parts: str) -> str:
        """Return the name of a question about a class, by what its answer follows from."""
        said = "\x1f".join(parts).encode()
        return hashlib.sha256(self.digest + said).hexdigest()[:24]
