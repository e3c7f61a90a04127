"""Error rates and power of what is said of whole classes, on worlds whose truth is known.

    python benchmarks/audit/classes.py                   # every row; 200 sets a null row, 100 a power row
    python benchmarks/audit/classes.py --sets 20 --only null

Seeds start at 1000: smaller ones chose settings. Verdicts are those of a first run: the ledger's first batch, beside slices. A world
has classes made of several kinds (clusters of embeddings), objects that may be seen several times, and a known chance of failure.
"""

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.evidence import ClassFinding
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.run.settings import Settings
from weakspot.run.verdicts import Asking, ask_classes, judged, open_ledger
from weakspot.store.project import ProjectStore

FIRST_SEED = 1000
DIMENSION = 48
N_KINDS = 3
SPREAD = 1.0
BETWEEN_KINDS = 0.6


@dataclass(frozen=True, kw_only=True)
class World:
    """What a set is drawn from.

    Args:
        sizes: evaluation samples of every class; training has one and a half times as many.
        error: chance of failure.
        worse: further chance of failure of the first class.
        images: images of an object, which mostly share their fate.
        liked: how many times as often the last class is said, of all answers.
        pair: share of the first class's wrong answers that go to the second; None: as of all classes.
        unseen: share of the first class's evaluation objects that are of a kind which training lacks.
        distance: of that kind from the others, in standard deviations of a coordinate.
        later: further chance of failure of the first class's samples at the end of the time, none at its beginning.
        is_multi_label: whether samples have several labels.
    """

    sizes: tuple[int, ...]
    error: float = 0.1
    worse: float = 0.0
    images: int = 1
    liked: float = 1.0
    pair: float | None = None
    unseen: float = 0.0
    distance: float = 3.0
    later: float = 0.0
    is_multi_label: bool = False


def draw(world: World, seed: int) -> SampleSet:
    """Return the samples of a set, training and validation."""
    rng = np.random.default_rng(seed)
    n_classes = len(world.sizes)
    labels, splits, objects, kinds = [], [], [], []
    for code, size in enumerate(world.sizes):
        for split, count in (("train", round(1.5 * size)), ("validation", size)):
            n_objects = max(1, count // world.images)
            kind = rng.integers(0, N_KINDS, n_objects)
            if code == 0 and split == "validation":
                kind[rng.random(n_objects) < world.unseen] = N_KINDS
            labels += [code] * (n_objects * world.images)
            splits += [split] * (n_objects * world.images)
            objects.append(np.repeat(np.arange(n_objects) + 10_000 * len(objects), world.images))
            kinds.append(np.repeat(kind, world.images))
    codes, own, kind = np.array(labels), np.concatenate(objects), np.concatenate(kinds)
    day = rng.integers(0, 365, len(codes))
    chance = np.full(len(codes), world.error)
    chance += (codes == 0) * (world.worse + world.later * day / 365)
    failed = _fates(chance, own, world.images, rng)
    said = _answers(world, codes, failed, rng)
    dataset = dataset_from_columns(
        class_names=[f"class {code}" for code in range(n_classes)],
        labels=codes,
        predictions=said,
        splits=splits,
        groups=[f"o{one}" for one in own] if world.images > 1 else None,
        metadata={"date": day},
    )
    space = EmbeddingSpace(encoder_id="audit", embeddings=_embeddings(world, codes, kind, own, rng))
    return SampleSet(dataset=dataset, rows=np.arange(len(codes)), spaces={"clip": space})


def _fates(chance, objects, images, rng):
    """Return who fails; images of an object share their fate in nine of ten cases."""
    drawn = rng.random(len(chance))
    if images > 1:
        _, first, inverse = np.unique(objects, return_index=True, return_inverse=True)
        drawn = np.where(rng.random(len(chance)) < 0.9, drawn[first][inverse], drawn)
    return drawn < chance


def _answers(world, codes, failed, rng):
    """Return what samples are taken for: wrong answers go to classes by size, and more to the one that is liked."""
    shares = np.array(world.sizes, dtype=float)
    shares[-1] *= world.liked
    said = codes.copy()
    for code in range(len(world.sizes)):
        own = np.flatnonzero(failed & (codes == code))
        weights = shares.copy()
        weights[code] = 0.0
        weights /= weights.sum()
        if code == 0 and world.pair is not None:
            weights = weights * (1 - world.pair) / (1 - weights[1])
            weights[1] = world.pair
        said[own] = rng.choice(len(shares), size=len(own), p=weights)
    if world.liked > 1:
        # It is said of other samples as often as of those that fail.
        extra = np.flatnonzero(~failed & (rng.random(len(codes)) < 0.1 * (world.liked - 1)))
        said[extra] = len(shares) - 1
    return said


def _embeddings(world, codes, kind, objects, rng):
    centres = rng.normal(size=(len(world.sizes), DIMENSION)) * 1.5
    apart = rng.normal(size=(len(world.sizes), N_KINDS + 1, DIMENSION)) * BETWEEN_KINDS
    unseen = rng.normal(size=DIMENSION)
    apart[:, N_KINDS] = world.distance * unseen / np.linalg.norm(unseen)
    embeddings = centres[codes] + apart[codes, kind]
    embeddings += rng.normal(size=embeddings.shape) * SPREAD
    if world.images > 1:
        _, first, inverse = np.unique(objects, return_index=True, return_inverse=True)
        embeddings = embeddings[first][inverse] + 0.1 * rng.normal(size=embeddings.shape)
    return embeddings.astype(np.float32)


def multi_label(world: World, seed: int) -> SampleSet:
    """Return samples that have each label with a chance of its own; every label is missed alike."""
    rng = np.random.default_rng(seed)
    truth = rng.random((400, len(world.sizes))) < np.array(world.sizes) / 400
    chance = world.error + world.worse * (np.arange(len(world.sizes)) == 0)
    missed = rng.random(truth.shape) < chance
    dataset = dataset_from_columns(
        class_names=[f"label {code}" for code in range(len(world.sizes))],
        label_lists=[np.flatnonzero(row).tolist() for row in truth],
        predicted_matrix=truth & ~missed,
        splits=["validation"] * len(truth),
    )
    return SampleSet(dataset=dataset, rows=np.arange(len(truth)))


def said_of(world: World, seed: int) -> list[ClassFinding]:
    """Return what a first run would confirm of the classes of a set."""
    samples = multi_label(world, seed) if world.is_multi_label else draw(world, seed)
    settings = Settings()
    with tempfile.TemporaryDirectory() as folder:
        store = ProjectStore.create(Path(folder) / "project")
        ledger = open_ledger(store, samples, settings)
        questions = ask_classes(samples, settings, FailureCriterion())
        judged([], Asking(ledger=ledger, source="audit", classes=questions.tests), min_gap=0.0)
        return [one for one in questions.judged(ledger) if one.is_confirmed]


SIX = (80,) * 6
NULLS = {
    "null: six classes of 80": World(sizes=SIX, error=0.15),
    "null: unequal classes, 15 to 400": World(sizes=(15, 30, 60, 120, 240, 400), error=0.2),
    "null: 100 classes of 30": World(sizes=(30,) * 100, error=0.2),
    "null: a class that is often said": World(sizes=SIX, error=0.2, liked=3.0),
    "null: 5 images of an object": World(sizes=(100,) * 6, error=0.2, images=5),
    "null: two classes": World(sizes=(60, 200), error=0.2),
    "null: multi-label": World(sizes=(40, 80, 160, 240), error=0.2, is_multi_label=True),
}
WHOLE = {
    f"fails as a whole: class of {size}, gap {gap}": World(
        sizes=(size, *(100,) * 5), worse=gap / 100
    )
    for size in (50, 100, 300)
    for gap in (20, 30, 50)
}
CONFUSED = {
    f"confused: class of {size}, 40 % wrong, {share} % of it to one of 10": World(
        sizes=(size, *(100,) * 9), worse=0.3, pair=share / 100
    )
    for size in (50, 100)
    for share in (30, 50, 80)
}
SHIFT = {
    f"looks unlike training: {size} images, {share} % of an unseen kind, distance {distance:g}": World(
        sizes=(size, *(80,) * 4), unseen=share / 100, distance=distance
    )
    for size in (30, 100)
    for share, distance in ((25, 5.0), (50, 3.0), (100, 1.0), (100, 1.5), (100, 2.0))
}
DRIFT = {
    f"changes with time: class of {size}, {later} points": World(
        sizes=(size, *(100,) * 5), later=later / 100
    )
    for size in (100, 300)
    for later in (40, 60)
}
POWER = {**WHOLE, **CONFUSED, **SHIFT, **DRIFT}


def main() -> None:
    """Print one row a world."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    for name, world in NULLS.items():
        if given.only in name:
            n_sets = given.sets or 200
            sets = [said_of(world, FIRST_SEED + number) for number in range(n_sets)]
            kinds = Counter(kind for one in sets for kind in {found.kind.value for found in one})
            sys.stdout.write(f"| {name} | {n_sets} | {sum(map(bool, sets))} | {dict(kinds)} |\n")
            sys.stdout.flush()
    for name, world in POWER.items():
        if given.only in name:
            n_sets = given.sets or 100
            sets = [said_of(world, FIRST_SEED + number) for number in range(n_sets)]
            kind = name.partition(":")[0].replace("changes with time", "changes over a column")
            n_found = sum(
                any(one.kind.value == kind and one.class_name == "class 0" for one in found)
                for found in sets
            )
            n_other = sum(any(one.class_name != "class 0" for one in found) for found in sets)
            sys.stdout.write(f"| {name} | {n_sets} | {n_found} | {n_other} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
