"""Multi-label problems (ChestX-ray14 in the paper): one binary problem a condition; whom its SVM puts first, and whom confidence does."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray
from weakspot.core.dataset import Dataset, Split, dataset_from_columns
from weakspot.core.failures import Side, best_f1_thresholds, class_problems
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.testing.planted import plant, spurious
from weakspot_lab.reproduce.directions.case import CLIP
from weakspot_lab.reproduce.directions.probing import CRITERION, PAPER_SVM
from weakspot_lab.reproduce.photographs import embed_files, open_embedder, small_images
from weakspot_lab.reproduce.protocol import Context, Step, StepResult
from weakspot_lab.reproduce.radiograph_files import FINDINGS, Radiographs, read_radiographs
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.small_networks import NetworkPlan, train_network

CONDITION_RHO = 0.9
SHOWN = "Effusion"
"""The condition that the paper looks at; its figure is about images without it."""
SIDE, WIDTH, EPOCHS = 64, 16, 15
SECONDS_AN_IMAGE = 0.05
N_IMAGES = 112_120


@dataclass(frozen=True, kw_only=True, eq=False)
class MultiLabelCase:
    """Samples with several labels, a classifier's answers, and the direction of every label's two sides.

    Args:
        samples: the validation samples, on which directions were found.
        slices: the directions, by label and side.
    """

    samples: SampleSet
    slices: Mapping[tuple[str, Side | None], FailureSlice]

    @property
    def dataset(self) -> Dataset:
        return self.samples.dataset


def multi_label_case(samples: SampleSet, *, seed: int) -> MultiLabelCase:
    """Choose thresholds by F1 on the validation samples, and find the paper's SVM of every label and side there."""
    dataset = samples.dataset
    probabilities = np.asarray(dataset.probabilities)
    thresholds = best_f1_thresholds(probabilities[samples.rows], dataset.label_matrix[samples.rows])
    dataset = dataset.with_predictions(probabilities=probabilities, thresholds=thresholds)
    judged = replace(samples, dataset=dataset)
    found = PAPER_SVM.discover(judged, CRITERION, seed=seed)
    slices = {(one.class_name, one.side): one for one in reversed(found.slices)}
    return MultiLabelCase(samples=judged, slices=slices)


def condition_shares(
    case: MultiLabelCase, marked: BoolArray, name: str, side: Side | None, *, count: int
) -> StepResult:
    """Return the share of marked samples among all test samples of a side of a label, and among those put first.

    Nothing was put first where no direction was found: fewer failures than an SVM needs.
    """
    dataset = case.dataset
    result: StepResult = {"class": name, "side": str(side), "count": count}
    problem = next(
        (
            one
            for one in class_problems(dataset, dataset.rows_of(Split.TEST), CRITERION)
            if (one.class_name, one.side) == (name, side)
        ),
        None,
    )
    found = case.slices.get((name, side))
    if problem is None or found is None:
        return result | dict.fromkeys(("in test", "strength", "svm", "confidence"))
    inside = marked[problem.rows]
    believed = np.asarray(dataset.probabilities)[problem.rows, dataset.class_code(name)]
    orders = {
        "svm": found.rule.scores(case.samples, problem.rows),
        "confidence": believed if side is Side.ABSENT else -believed,
    }
    return result | {
        "in test": float(inside.mean()),
        "strength": found.strength,
        **{
            order: float(inside[np.argsort(-scores, kind="stable")[:count]].mean())
            for order, scores in orders.items()
        },
    }


def measure_conditions(context: Context, number: int) -> StepResult:
    """Measure a planted multi-label world; what is marked is what was planted."""
    request, seed = context.request, context.seed_of("conditions", str(number))
    world = plant(
        spurious(CONDITION_RHO),
        request.pick(6000, 1200),
        seed=seed,
        is_multi_label=True,
        embedding_noise=0.15,
    )
    truth = world.slices[0]
    case = multi_label_case(world.samples(Split.VALIDATION), seed=seed)
    count = request.pick(100, 20)
    return condition_shares(case, truth.inside, truth.class_name, truth.side, count=count)


def radiograph_steps(request: ReproduceRequest) -> tuple[Step, ...]:
    """Return a step a condition; the first of them reads the images and trains the network."""
    first = SECONDS_AN_IMAGE * request.pick(N_IMAGES, 500)
    conditions = request.pick((SHOWN, *(one for one in FINDINGS if one != SHOWN)), (SHOWN,))
    return tuple(
        Step(
            name=f"conditions-{name}",
            seconds=5 * first if name == SHOWN else 10,
            work=partial(_condition, name=name),
        )
        for name in conditions
    )


def _condition(context: Context, name: str) -> StepResult:
    folder = context.request.data
    assert folder is not None
    seed = context.seed_of("radiographs")
    images = context.shared("radiographs", lambda: read_radiographs(folder, seed=seed))
    case = context.shared("conditions", lambda: radiograph_case(context, images))
    count = context.request.pick(100, 10)
    return condition_shares(case, images.is_ap, name, Side.ABSENT, count=count)


def radiograph_case(context: Context, images: Radiographs) -> MultiLabelCase:
    """Train a small network on the training images, and find the directions of all conditions on validation images."""
    request, seed = context.request, context.seed_of("conditions", "network")
    embedder = open_embedder(request.models)
    pixels = small_images(images.paths, request.pick(SIDE, 32))
    plan = NetworkPlan(
        width=request.pick(WIDTH, 8), n_epochs=request.pick(EPOCHS, 12), peak_rate=0.05, seed=seed
    )
    train = images.splits == Split.TRAIN.value
    network = train_network(
        pixels[train], images.findings[train], n_classes=len(FINDINGS), plan=plan
    )
    return multi_label_case(
        _samples(images, network.probabilities(pixels), embed_files(embedder, images.paths)),
        seed=seed,
    )


def _samples(images: Radiographs, probabilities: FloatArray, embeddings: FloatArray) -> SampleSet:
    dataset = dataset_from_columns(
        class_names=FINDINGS,
        label_lists=[np.flatnonzero(row).tolist() for row in images.findings],
        splits=list(images.splits),
        groups=list(images.patients),
        probabilities=probabilities,
    )
    return SampleSet(
        dataset=dataset,
        rows=dataset.rows_of(Split.VALIDATION),
        spaces={CLIP: EmbeddingSpace(encoder_id="given", embeddings=embeddings, has_text=False)},
        name=Split.VALIDATION.value,
        reference_rows=dataset.rows_of(Split.TRAIN),
    )
