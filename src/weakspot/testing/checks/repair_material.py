"""What the checks of repairers feed to them: a small planted world that has everything a strategy may ask for."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import NO_LABEL, Dataset, Split, Task
from weakspot.core.evidence import Evidence, Share, Verdict
from weakspot.core.failures import class_problems
from weakspot.core.rules import IdRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, matches
from weakspot.core.training_sets import RepairMaterial
from weakspot.testing.checks import material
from weakspot.testing.planted import PlantedWorld, plant
from weakspot.testing.planted_problems import rare

BUDGET = 5
N_SAMPLES = 1000
N_UNLABELLED = 8
PROMPT = "prompt"
SHARES = {
    Split.TRAIN: 0.4,
    Split.VALIDATION: 0.2,
    Split.TEST: 0.15,
    Split.POOL: 0.15,
    Split.SYNTHETIC: 0.1,
}

Change = Callable[[SampleSet], SampleSet]


@cache
def _world(*, is_multi_label: bool = False) -> PlantedWorld:
    return plant(rare(0.05), N_SAMPLES, seed=11, split_shares=SHARES, is_multi_label=is_multi_label)


def everything(*, is_multi_label: bool = False) -> SampleSet:
    """Return fresh copies of all samples; some training samples are unlabelled, and generated ones say what they were made from."""
    world = _world(is_multi_label=is_multi_label)
    samples = world.samples(*Split)
    generated = set(world.dataset.rows_of(Split.SYNTHETIC).tolist())
    classes = world.dataset.class_names
    plain = [
        f"a photo of a {classes[row % len(classes)]}" if row % 3 else world.scene(row).caption
        for row in samples.rows
    ]
    dataset = world.dataset.with_metadata(
        {PROMPT: [words if row in generated else None for row, words in enumerate(plain)]}
    )
    dataset = replace(
        dataset, probabilities=np.array(dataset.probabilities), predictions=_copy_files(dataset)
    )
    return replace(
        samples,
        dataset=_unlabelled(dataset, dataset.rows_of(Split.TRAIN)[:N_UNLABELLED]),
        rows=samples.rows.copy(),
    )


def _copy_files(dataset: Dataset) -> IntArray | None:
    return None if dataset.predictions is None else dataset.predictions.copy()


def _unlabelled(dataset: Dataset, rows: IntArray) -> Dataset:
    return dataset.with_labels(
        rows, [NO_LABEL] * len(rows) if dataset.task is Task.SINGLE_LABEL else [None] * len(rows)
    )


def full(*, change: Change | None = None, is_multi_label: bool = False) -> RepairMaterial:
    """Return material with a labelled pool, generated samples, a budget, evidence and somebody who embeds words.

    Args:
        change: applied to all samples first.
        is_multi_label: whether samples can have several labels.
    """
    samples = everything(is_multi_label=is_multi_label)
    samples = samples if change is None else change(samples)
    named = {
        split: samples.only(samples.dataset.rows_of(split), name=split.value) for split in Split
    }
    slices = slices_of(samples)
    return RepairMaterial(
        training=named[Split.TRAIN],
        pool=named[Split.POOL],
        synthetic=named[Split.SYNTHETIC],
        budget=BUDGET,
        evidence=_evidence(slices, named[Split.VALIDATION]),
        n_failures=sum(
            one.n_failed
            for one in class_problems(
                samples.dataset, named[Split.VALIDATION].rows, material.CRITERION
            )
        ),
        assistants=material.ASSISTANTS,
    )


def slices_of(samples: SampleSet) -> tuple[FailureSlice, ...]:
    """Return the planted slice, green discs, and a harmless one."""
    return material.slices_of(samples.only(samples.dataset.rows_of(Split.VALIDATION)))


def slice_of_nobody(class_name: str) -> FailureSlice:
    """Return a slice that no sample is a member of."""
    use = DataUse(name="nothing", n_samples=0, digest="0" * 32)
    return FailureSlice(
        class_name=class_name, rule=IdRule(sample_ids=()), method="by-hand", found_on=use
    )


def with_unlabelled_pool(samples: SampleSet) -> SampleSet:
    """Return the same samples without the labels of the pool."""
    return replace(
        samples, dataset=_unlabelled(samples.dataset, samples.dataset.rows_of(Split.POOL))
    )


def with_absent_class(samples: SampleSet) -> SampleSet:
    """Return the same samples in a task that has one more class, last, which no sample is labelled or taken for."""
    dataset = samples.dataset
    wider = np.column_stack(
        [np.asarray(dataset.probabilities), np.zeros(len(dataset), dtype=np.float32)]
    )
    return replace(
        samples,
        dataset=replace(dataset, class_names=(*dataset.class_names, "nobody"), probabilities=wider),
    )


def with_evaluation_changed(samples: SampleSet) -> SampleSet:
    """Return the same samples with other labels and predictions of validation and test samples."""
    kept = samples.dataset.rows_of(Split.TRAIN, Split.POOL, Split.SYNTHETIC)
    return replace(
        material.with_predictions_elsewhere_changed(samples.only(kept)), rows=samples.rows
    )


def in_another_order(samples: SampleSet) -> SampleSet:
    """Return the same samples with the rows of the data set in another order."""
    return material.reordered(samples, np.random.default_rng(3).permutation(len(samples.dataset)))


def _evidence(slices: tuple[FailureSlice, ...], samples: SampleSet) -> dict[str, Evidence]:
    problems = class_problems(samples.dataset, samples.rows, material.CRITERION)
    found = {}
    for one in slices:
        problem = next(each for each in problems if matches(one, each))
        is_inside = one.inside(samples, problem)
        inside = Share.of(int(problem.failed[is_inside].sum()), int(is_inside.sum()))
        outside = Share.of(int(problem.failed[~is_inside].sum()), int((~is_inside).sum()))
        found[one.slice_id] = Evidence(
            slice_id=one.slice_id,
            verifier="by-hand",
            measured_on=DataUse.of(samples),
            n_inside=inside.total,
            failures_inside=inside.count,
            n_outside=outside.total,
            failures_outside=outside.count,
            rate_inside=inside.value,
            rate_outside=outside.value,
            interval_inside=inside.interval,
            interval_outside=outside.interval,
            gap=inside.value - outside.value,
            p_value=0.001,
            q_value=0.01,
            n_tested=len(slices),
            verdict=Verdict.CONFIRMED,
        )
    return found
