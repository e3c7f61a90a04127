"""Failures that all classifiers of a family have in common, and what they show."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weakspot.core.evidence import Share
from weakspot.core.failures import class_problems
from weakspot.core.record import Record
from weakspot.core.samples import SampleSet
from weakspot.lab.collective.family import Family
from weakspot.lab.refine.names import seed_names
from weakspot.lab.refine.request import RefineRequest
from weakspot.lab.refine.subjects import Subject


class SharedValue(Record):
    """A value that shared failures show, over all classes.

    Args:
        kind: kind of attribute.
        value: the value, for example `in the snow`.
        share: of the shared failures, those that show it.
    """

    kind: str
    value: str
    share: Share


class SharedFailures(Record):
    """Failures that all models share.

    Args:
        test: of the test samples that any model fails on, those that all fail on.
        n_seed: samples of the discovery half that all models fail on.
        values: what these show, commonest first within a kind.
    """

    test: Share
    n_seed: int
    values: tuple[SharedValue, ...]


def shared_failures(
    family: Family, subjects: Sequence[Subject], request: RefineRequest
) -> SharedFailures:
    """Return what all models of a family fail on, before any refinement; values are told on the discovery half alone."""
    shared = set.intersection(*[_failed_ids(subject, subject.seed) for subject in subjects])
    return SharedFailures(
        test=family.common(), n_seed=len(shared), values=_values(subjects[0], shared, request)
    )


def _failed_ids(subject: Subject, samples: SampleSet) -> set[str]:
    problems = class_problems(subject.dataset, samples.rows, subject.bench.criterion)
    return {
        sample_id
        for problem in problems
        for sample_id in subject.dataset.sample_ids(problem.rows[problem.failed])
    }


def _values(subject: Subject, shared: set[str], request: RefineRequest) -> tuple[SharedValue, ...]:
    """Return the values of shared failures, told among the samples that are right or shared failures."""
    if not shared:
        return ()
    seed = subject.seed
    left_out = _failed_ids(subject, seed) - shared
    is_kept = [name not in left_out for name in subject.dataset.sample_ids(seed.rows)]
    only = replace(subject, seed=seed.only(seed.rows[np.array(is_kept, dtype=np.bool_)]))
    counted: Counter[tuple[str, str]] = Counter()
    for one in seed_names(only, request).names:
        counted[(one.kind, one.value)] += one.n_failures
    order = sorted(counted, key=lambda key: (key[0], -counted[key], key[1]))
    return tuple(
        SharedValue(kind=kind, value=value, share=Share.of(counted[(kind, value)], len(shared)))
        for kind, value in order
    )
