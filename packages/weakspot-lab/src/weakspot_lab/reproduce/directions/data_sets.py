"""The Directions protocol on the paper's data: age on CelebA with its correlation with gender, rare kinds of CIFAR-100, radiographs."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray, generator
from weakspot.core.roles import Embedder
from weakspot_lab.reproduce.directions.case import POOL, TEST, TRAIN, VALIDATION, Case
from weakspot_lab.reproduce.directions.conditions import radiograph_steps
from weakspot_lab.reproduce.directions.hierarchy import Hierarchy
from weakspot_lab.reproduce.directions.probing import probe
from weakspot_lab.reproduce.directions.rare import measure_hierarchy
from weakspot_lab.reproduce.directions.spurious import RATIO, RATIOS, measure_orders, plan_of
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.photographs import (
    CELEBA,
    CIFAR100,
    CifarImages,
    ImageList,
    embed_arrays,
    embed_files,
    open_embedder,
    read_celeba,
    read_cifar100,
    small_images,
)
from weakspot_lab.reproduce.protocol import Context, Step, StepResult
from weakspot_lab.reproduce.radiograph_files import CHESTX_RAY14
from weakspot_lab.reproduce.request import ReproduceRequest

SETS = (CELEBA, CIFAR100, CHESTX_RAY14)
CIFAR_PARTS = {TRAIN: 0.4, VALIDATION: 0.2, POOL: 0.4}
SIDE = 75
LARGEST = {TRAIN: 62_030, VALIDATION: 7_180, TEST: 19_962}
"""Images of the paper: 6,203 and 24,812 of each kind in training, 1,795 of each in validation, the whole test split."""
SECONDS_AN_IMAGE = 0.05


def photograph_steps(request: ReproduceRequest, found: DataSet) -> tuple[Step, ...]:
    """Return the steps that fit the data set; the time is about that of embedding and of training small networks."""
    folder = request.data
    assert folder is not None
    if found is CHESTX_RAY14:
        return radiograph_steps(request)
    if found is CIFAR100:
        seconds = SECONDS_AN_IMAGE * request.pick(60_000, 500)
        return (Step(name="rare-0", seconds=5 * seconds, work=partial(_rare, folder=folder)),)
    images = read_celeba(folder, label="Young", attribute="Male")
    n_used = min(len(images.paths), request.pick(sum(LARGEST.values()), 200))
    seconds = SECONDS_AN_IMAGE * n_used
    return (
        Step(
            name="spurious-0",
            seconds=4 * seconds,
            work=partial(_spurious, images=images),
        ),
        *(
            Step(
                name=f"strength-{ratio:g}",
                seconds=seconds,
                work=partial(_strength, images=images, ratio=ratio),
            )
            for ratio in request.pick(RATIOS, RATIOS[:1])
        ),
    )


def celeba_case(context: Context, images: ImageList, ratio: float) -> Case:
    """Return CelebA with so many majority images for each minority image in training, and an even validation split."""
    rows = celeba_rows(images, ratio, context.request, context.seed_of("celeba"))
    used = images.only(rows)
    vectors: dict[Path, Any] = context.shared("vectors", dict)
    embedder = context.shared("embedder", lambda: open_embedder(context.request.models))
    missing = [path for path in used.paths if path not in vectors]
    if missing:
        side = context.request.pick(SIDE, 32)
        found = zip(embed_files(embedder, missing), small_images(missing, side), strict=True)
        vectors |= dict(zip(missing, found, strict=True))
    return Case(
        class_names=used.class_names,
        labels=used.labels,
        is_minority=minority(used),
        splits=used.splits,
        inputs=np.stack([vectors[path][1] for path in used.paths]),
        embeddings=np.stack([vectors[path][0] for path in used.paths]),
        embed_texts=embedder.embed_texts if embedder.has_text else None,
    )


def minority(images: ImageList) -> BoolArray:
    """Return who is of the minority: old women and young men."""
    return np.asarray(images.labels == images.attributes, dtype=np.bool_)


def celeba_rows(images: ImageList, ratio: float, request: ReproduceRequest, seed: int) -> IntArray:
    """Return the rows that are used: training by ratio, validation even, the test split as it is."""
    draws = generator(seed, "celeba rows")
    is_minority = minority(images)
    chosen: list[IntArray] = []
    for split, share in ((TRAIN, 1 / (1 + ratio)), (VALIDATION, 0.5), (TEST, None)):
        most = request.pick(LARGEST[split], 60) // 2
        for code in (0, 1):
            own = np.flatnonzero((images.splits == split.value) & (images.labels == code))
            parts = [draws.permutation(own[is_minority[own] == flag]) for flag in (True, False)]
            if share is None:
                chosen.append(draws.permutation(own)[:most])
                continue
            size = int(min(most, len(parts[0]) / share, len(parts[1]) / (1 - share)))
            counts = (round(size * share), size - round(size * share))
            chosen += [part[:count] for part, count in zip(parts, counts, strict=True)]
    return np.sort(np.concatenate(chosen))


def _spurious(context: Context, images: ImageList) -> StepResult:
    seed = context.seed_of("spurious", "0")
    case = celeba_case(context, images, RATIO)
    return measure_orders(case, plan_of(context.request, seed, width=16), context.request)[0]


def _strength(context: Context, images: ImageList, ratio: float) -> StepResult:
    seed = context.seed_of("strength", "0")
    case = celeba_case(context, images, ratio)
    network = case.train(plan_of(context.request, seed, width=16))
    found = probe(case, network.probabilities(case.inputs), seed=seed)
    return {
        "ratio": ratio,
        "strength": [found.mean_strength],
        "minority accuracy": [case.minority_accuracy(network)],
    }


def _rare(context: Context, folder: Path) -> StepResult:
    seed = context.seed_of("rare", "0")
    world = cifar_world(read_cifar100(folder), open_embedder(context.request.models), seed=seed)
    return measure_hierarchy(world, plan_of(context.request, seed, width=16), context.request)


def cifar_world(images: CifarImages, embedder: Embedder, *, seed: int) -> Hierarchy:
    """Return CIFAR-100 with the paper's parts: 40 % of its training images train, 20 % validate, 40 % are the pool.

    Subclasses are numbered anew, so that those of a superclass follow one another.
    """
    order = sorted(
        {(int(one), int(other)) for one, other in zip(images.coarse, images.fine, strict=True)}
    )
    place = {fine: number for number, (_, fine) in enumerate(order)}
    draws = generator(seed, "cifar parts").random(len(images.fine))
    edges = np.cumsum(list(CIFAR_PARTS.values()))[:-1]
    names = np.array([split.value for split in CIFAR_PARTS])
    splits = np.where(images.is_test, TEST.value, names[np.searchsorted(edges, draws)])
    case = Case(
        class_names=tuple(name.replace("_", " ") for name in images.superclasses),
        labels=images.coarse,
        is_minority=np.zeros(len(images.fine), dtype=np.bool_),
        splits=splits,
        inputs=images.images,
        embeddings=embed_arrays(embedder, images.images),
        embed_texts=embedder.embed_texts if embedder.has_text else None,
    )
    return Hierarchy(
        case=case,
        subclasses=np.array([place[int(fine)] for fine in images.fine], dtype=np.int64),
        names=tuple(images.subclasses[fine].replace("_", " ") for _, fine in order),
    )
