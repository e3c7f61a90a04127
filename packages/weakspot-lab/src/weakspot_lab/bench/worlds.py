"""Benchmark problems on planted worlds: rare kinds, spurious cues, wrong labels, several slices at once, and nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray, child_seed, generator
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import METADATA_PREFIX, Dataset, Split
from weakspot.core.errors import ConfigError
from weakspot.testing.planted import (
    DEFAULT_CLASSES,
    PlantedProblem,
    PlantedWorld,
    label_noise,
    nothing,
    phrase_embeddings,
    plant,
)
from weakspot.testing.scenes import FACTORS, SYNONYMS
from weakspot.verify.halves import split_halves
from weakspot_lab.bench.problem import BenchProblem, KnownSlice, ProblemKind

EXACT, NOISY = "planted, exact embedder", "planted, noisy embedder"
NOISE = {EXACT: 0.05, NOISY: 0.2}
KINDS: tuple[ProblemKind, ...] = ("rare", "correlation", "noisy-label", "several", "null")
COLOURS = FACTORS["colour"]
BACKGROUNDS = FACTORS["background"]
FAILING_SHARE = 0.6
LARGER = 3
SHARES = {
    Split.TRAIN: 0.4 / LARGER,
    Split.VALIDATION: 0.3 / LARGER,
    Split.TEST: 0.3 / LARGER,
    Split.POOL: 1 - 1 / LARGER,
}


def planted_problem(
    kind: ProblemKind, number: int, *, source: str = EXACT, n_samples: int = 4000, seed: int = 0
) -> BenchProblem:
    """Return a planted problem; class, rival, factor and values change from number to number.

    Two fifths of the samples are for training, the rest for discovery and confirmation; twice as many fresh ones come on top.
    """
    if kind not in KINDS or source not in NOISE:
        raise ConfigError(
            "There is no such planted problem.",
            given=(kind, source),
            fix=f"Choose from {KINDS} and {list(NOISE)}.",
        )
    world_seed = child_seed(seed, "bench", kind, str(number)) % 2**31
    world = plant(
        _PROBLEMS[kind](number),
        n_samples * LARGER,
        seed=world_seed,
        embedding_noise=NOISE[source],
        split_shares=SHARES,
    )
    truths = _several_truths(world, number) if kind == "several" else _planted_truths(world)
    dataset = _with_failures(world, truths, world_seed) if kind == "several" else world.dataset
    return world_problem(
        replace(world, dataset=dataset), kind, number, source=source, seed=world_seed, truths=truths
    )


def world_problem(
    world: PlantedWorld,
    kind: ProblemKind,
    number: int,
    *,
    source: str,
    seed: int,
    truths: tuple[KnownSlice, ...] | None = None,
) -> BenchProblem:
    """Return a world as a problem: its validation and test samples are halved, those of its pool are fresh.

    Args:
        world: whose metadata, which tells the truth, is taken away.
        kind: what was planted.
        number: of the world.
        source: whose embeddings these are.
        seed: of the halves.
        truths: what must be found; what was planted by default.
    """
    dataset = without_metadata(world.dataset)
    samples = replace(world.samples(Split.VALIDATION, Split.TEST), dataset=dataset)
    problem = BenchProblem(
        source=source,
        kind=kind,
        number=number,
        samples=samples.only(np.arange(len(dataset)), name="all samples"),
        discovery=samples,
        confirmation=samples,
        truths=_planted_truths(world) if truths is None else truths,
        fresh=samples.only(dataset.rows_of(Split.POOL), name="fresh samples"),
        assistants=Assistants(embed_texts=phrase_embeddings, captions=world.captions),
    )
    return halve_problem(problem, samples.rows, seed=seed)


def halve_problem(problem: BenchProblem, rows: IntArray, *, seed: int) -> BenchProblem:
    split = split_halves(problem.samples.dataset, rows, problem.criterion, seed=seed)
    return replace(
        problem,
        discovery=problem.samples.only(split.discovery, name="discovery half"),
        confirmation=problem.samples.only(split.confirmation, name="confirmation half"),
    )


def without_metadata(dataset: Dataset) -> Dataset:
    """Return the data set without its free columns: they hold the truth, and methods must not read it."""
    kept = [name for name in dataset.table.column_names if not name.startswith(METADATA_PREFIX)]
    return replace(dataset, table=dataset.table.select(kept))


def _rare(number: int) -> PlantedProblem:
    class_name, rival = _classes(number)
    value, usual = COLOURS[number % len(COLOURS)], COLOURS[(number + 1) % len(COLOURS)]
    return PlantedProblem(
        kind="rare",
        strength=0.02,
        class_name=class_name,
        rival=rival,
        factor="colour",
        value=value,
        usual_value=usual,
    )


def _correlation(number: int) -> PlantedProblem:
    class_name, rival = _classes(number)
    value, usual = (
        BACKGROUNDS[number % len(BACKGROUNDS)],
        BACKGROUNDS[(number + 3) % len(BACKGROUNDS)],
    )
    return PlantedProblem(
        kind="spurious",
        strength=0.95,
        class_name=class_name,
        rival=rival,
        factor="background",
        value=value,
        usual_value=usual,
    )


def _classes(number: int) -> tuple[str, str]:
    first = number % len(DEFAULT_CLASSES)
    step = 1 + number // len(DEFAULT_CLASSES) % (len(DEFAULT_CLASSES) - 1)
    return DEFAULT_CLASSES[first], DEFAULT_CLASSES[(first + step) % len(DEFAULT_CLASSES)]


_PROBLEMS: dict[str, Callable[[int], PlantedProblem]] = {
    "rare": _rare,
    "correlation": _correlation,
    "noisy-label": lambda _number: label_noise(0.1),
    "several": lambda _number: nothing(),
    "null": lambda _number: nothing(),
}


def _planted_truths(world: PlantedWorld) -> tuple[KnownSlice, ...]:
    return tuple(
        _known(found.class_name, found.inside, found.factor, found.value)
        if found.factor is not None and found.value is not None
        else KnownSlice(class_name=found.class_name, inside=found.inside)
        for found in world.slices
    )


def _known(class_name: str, inside: BoolArray, factor: str, value: str) -> KnownSlice:
    meant = [word for word, target in SYNONYMS.items() if target == value]
    beside = [word for word in FACTORS[factor] if word != value]
    return KnownSlice(
        class_name=class_name, inside=inside, words=(value, *meant), same_attribute=tuple(beside)
    )


def _several_truths(world: PlantedWorld, number: int) -> tuple[KnownSlice, ...]:
    """Return three slices, two of them of the same class."""
    first, second = _classes(number)
    wanted = (
        (first, "colour", COLOURS[(number + 2) % len(COLOURS)]),
        (first, "background", BACKGROUNDS[(number + 4) % len(BACKGROUNDS)]),
        (second, "lighting", "dark"),
    )
    return tuple(
        _known(
            name,
            _has(world, factor, value) & (world.dataset.labels == world.dataset.class_code(name)),
            factor,
            value,
        )
        for name, factor, value in wanted
    )


def _has(world: PlantedWorld, factor: str, value: str) -> BoolArray:
    return np.array(
        [one == value for one in world.dataset.metadata(factor).to_pylist()], dtype=np.bool_
    )


def _with_failures(world: PlantedWorld, truths: Sequence[KnownSlice], seed: int) -> Dataset:
    """Return the data set with predictions in which members of the slices fail much more often than other samples do."""
    draws = generator(seed, "bench", "several")
    n_classes = world.dataset.n_classes
    probabilities = np.array(world.dataset.probabilities)
    fails = np.zeros(len(probabilities), dtype=np.bool_)
    for truth in truths:
        fails |= truth.inside & (draws.random(len(fails)) < FAILING_SHARE)
    rows = np.flatnonzero(fails)
    wrong = (
        world.dataset.labels[rows] + 1 + draws.integers(0, n_classes - 1, len(rows))
    ) % n_classes
    likeliest = probabilities[rows].max(axis=1)
    probabilities[rows, :] = ((1 - likeliest) / (n_classes - 1))[:, None]
    probabilities[rows, wrong] = likeliest
    return world.dataset.with_predictions(
        predictions=probabilities.argmax(axis=1), probabilities=probabilities
    )
