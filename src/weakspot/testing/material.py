"""What the checks feed to parts: small planted worlds, their images, sample sets and slices, and all that a repair may ask for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import NO_LABEL, Dataset, Split, Task
from weakspot.core.errors import ModelError
from weakspot.core.evidence import Evidence, Share, Verdict
from weakspot.core.failures import FailureCriterion, Side, class_problems
from weakspot.core.heads import RepairMaterial
from weakspot.core.rules import IdRule, LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice, matches
from weakspot.testing.planted import ENCODER_ID, PlantedWorld, phrase_embeddings, plant, rare

CRITERION = FailureCriterion()
ASSISTANTS = Assistants(embed_texts=phrase_embeddings)
N_IMAGES = 4
N_SAMPLES = 800


@cache
def small_world(*, is_multi_label: bool = False) -> PlantedWorld:
    """Return the world that checks work on: green discs are rare in training."""
    return plant(rare(0.02), N_SAMPLES, seed=11, is_multi_label=is_multi_label)


def images() -> list[Image.Image]:
    """Return a few planted images, of two sizes."""
    world = small_world()
    return [world.image(row, side=64 if row % 2 else 96) for row in range(N_IMAGES)]


def sample_set(
    split: Split, *, is_multi_label: bool = False, is_read_only: bool = False
) -> SampleSet:
    world = small_world(is_multi_label=is_multi_label)
    samples = world.samples(split)
    dataset = _copy_files(world.dataset)
    found = replace(samples, dataset=dataset, rows=samples.rows.copy())
    if is_read_only:
        for array in arrays_of(found):
            array.setflags(write=False)
    return found


def _copy_files(dataset: Dataset) -> Dataset:
    copies: dict[str, Any] = {
        name: None if getattr(dataset, name) is None else np.array(getattr(dataset, name))
        for name in ("predictions", "predicted_matrix", "probabilities", "thresholds")
    }
    return replace(dataset, **copies)


def arrays_of(samples: SampleSet) -> list[AnyArray]:
    """Return every array that a part could change by mistake."""
    dataset = samples.dataset
    candidates = [
        samples.rows,
        samples.reference_rows,
        dataset.predictions,
        dataset.predicted_matrix,
        dataset.probabilities,
        dataset.thresholds,
        dataset.label_matrix,
        *(space.embeddings for space in samples.spaces.values()),
        *([dataset.labels] if dataset.task is Task.SINGLE_LABEL else []),
    ]
    return [array for array in candidates if array is not None]


def contents(samples: SampleSet) -> list[bytes]:
    """Return the bytes of every array, to see whether any of them changed."""
    return [np.ascontiguousarray(array).tobytes() for array in arrays_of(samples)]


def reordered(samples: SampleSet, order: IntArray) -> SampleSet:
    """Return the same samples with all rows of the data set in another order."""
    dataset = samples.dataset
    place = np.argsort(order)
    moved = Dataset(
        class_names=dataset.class_names,
        task=dataset.task,
        table=dataset.table.take(pa.array(order)),
        predictions=None if dataset.predictions is None else dataset.predictions[order],
        probabilities=None if dataset.probabilities is None else dataset.probabilities[order],
        thresholds=dataset.thresholds,
    )
    spaces = {
        name: replace(space, embeddings=space.embeddings[order])
        for name, space in samples.spaces.items()
    }
    reference = None if samples.reference_rows is None else np.sort(place[samples.reference_rows])
    return replace(
        samples,
        dataset=moved,
        rows=np.sort(place[samples.rows]),
        spaces=spaces,
        reference_rows=reference,
    )


def with_predictions_elsewhere_changed(samples: SampleSet) -> SampleSet:
    """Return the same samples in a data set whose other rows have other labels and predictions."""
    dataset = samples.dataset
    elsewhere = np.setdiff1d(np.arange(len(dataset)), samples.rows)
    labels = dataset.labels.copy()
    labels[elsewhere] = (labels[elsewhere] + 1) % dataset.n_classes
    column = dataset.table.column_names.index("label")
    probabilities = None if dataset.probabilities is None else dataset.probabilities.copy()
    predictions = None if dataset.predictions is None else dataset.predictions.copy()
    if probabilities is not None:
        probabilities[elsewhere] = probabilities[elsewhere][:, ::-1]
    if predictions is not None:
        predictions[elsewhere] = (predictions[elsewhere] + 2) % dataset.n_classes
    table = dataset.table.set_column(column, "label", pa.array(labels, pa.int32()))
    changed = Dataset(
        class_names=dataset.class_names,
        task=dataset.task,
        table=table,
        predictions=predictions,
        probabilities=probabilities,
    )
    return replace(samples, dataset=changed)


def with_few_failures(samples: SampleSet) -> SampleSet:
    """Return the same samples where the first class never fails and the second fails once."""
    dataset = samples.dataset
    predictions = np.array(dataset.predictions)
    labels = dataset.labels
    calm = np.isin(labels, (0, 1))
    predictions[calm] = labels[calm]
    second = samples.rows[labels[samples.rows] == 1]
    predictions[second[0]] = 2
    probabilities = np.full((len(dataset), dataset.n_classes), 0.1, dtype=np.float32)
    probabilities[np.arange(len(dataset)), predictions] = 1.0 - 0.1 * (dataset.n_classes - 1)
    return replace(
        samples,
        dataset=dataset.with_predictions(predictions=predictions, probabilities=probabilities),
    )


def slices_of(
    samples: SampleSet, *, phrases: Sequence[str] = ("a green disc", "a dark star")
) -> tuple[FailureSlice, ...]:
    """Return slices that are about phrases: the first is the planted one, the others are harmless."""
    side = Side.PRESENT if samples.dataset.task is Task.MULTI_LABEL else None
    return tuple(_slice_of(phrase, samples, side) for phrase in phrases)


def _slice_of(phrase: str, samples: SampleSet, side: Side | None) -> FailureSlice:
    adjective, name = phrase.split()[-2:]
    direction = phrase_embeddings([adjective])[0] - phrase_embeddings(["photo"])[0]
    return FailureSlice(
        class_name=name,
        side=side,
        rule=LinearRule(encoder_id=ENCODER_ID, direction=tuple(direction.tolist()), threshold=0.1),
        method="by-hand",
        found_on=DataUse(name=samples.name, n_samples=len(samples), digest=samples.digest()),
    )


def useless_assistants() -> Assistants:
    """Return assistants that are there and of no use: empty captions and answers, and a language model that answers garbage."""

    def refuse(_prompt: str, _schema: Mapping[str, JsonValue]) -> JsonValue:
        raise ModelError("The language model's answer is no JSON.", given="Sure! Here is")

    return Assistants(
        embed_texts=phrase_embeddings,
        captions=lambda rows: [""] * len(rows),
        answers=lambda rows, _question: [""] * len(rows),
        propose=refuse,
    )


def empty_space(samples: SampleSet) -> EmbeddingSpace:
    joint = samples.space("clip")
    return replace(joint, embeddings=np.full_like(joint.embeddings, np.nan))


BUDGET = 5
N_REPAIR_SAMPLES = 1000
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
    return plant(
        rare(0.05), N_REPAIR_SAMPLES, seed=11, split_shares=SHARES, is_multi_label=is_multi_label
    )


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
        dataset,
        probabilities=np.array(dataset.probabilities),
        predictions=None if dataset.predictions is None else dataset.predictions.copy(),
    )
    return replace(
        samples,
        dataset=_unlabelled(dataset, dataset.rows_of(Split.TRAIN)[:N_UNLABELLED]),
        rows=samples.rows.copy(),
    )


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
    slices = repair_slices(samples)
    return RepairMaterial(
        training=named[Split.TRAIN],
        pool=named[Split.POOL],
        synthetic=named[Split.SYNTHETIC],
        budget=BUDGET,
        evidence=_evidence(slices, named[Split.VALIDATION]),
        n_failures=sum(
            one.n_failed
            for one in class_problems(samples.dataset, named[Split.VALIDATION].rows, CRITERION)
        ),
        assistants=ASSISTANTS,
    )


def repair_slices(samples: SampleSet) -> tuple[FailureSlice, ...]:
    """Return the planted slice, green discs, and a harmless one."""
    return slices_of(samples.only(samples.dataset.rows_of(Split.VALIDATION)))


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
    return replace(with_predictions_elsewhere_changed(samples.only(kept)), rows=samples.rows)


def in_another_order(samples: SampleSet) -> SampleSet:
    """Return the same samples with the rows of the data set in another order."""
    return reordered(samples, np.random.default_rng(3).permutation(len(samples.dataset)))


def _evidence(slices: tuple[FailureSlice, ...], samples: SampleSet) -> dict[str, Evidence]:
    problems = class_problems(samples.dataset, samples.rows, CRITERION)
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
