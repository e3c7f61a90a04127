"""Distances between sets of images where the truth is known, and adversarial sets of planted worlds.

    python benchmarks/distances.py                 distances: bias and error by number of images, and time
    python benchmarks/distances.py --worlds 5      sets for planted classifiers instead: shares, transfer, distances

Frechet distance and kernel distance of two sets from one distribution should be 0, and from two known normal distributions what
the closed form says.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from weakspot.core.dataset import Split
from weakspot.data.settings import DataSettings
from weakspot.generate.adversarial import (
    AdversarialEffort,
    AdversarialRequest,
    AdversarialSet,
    pooled,
)
from weakspot.generate.adversarial_sources import ModelUnderTest
from weakspot.generate.distances import frechet_distance, kernel_distance, unbiased_frechet
from weakspot.project.adversarial import AdversarialStage
from weakspot.project.project import Project
from weakspot.run.settings import (
    GeneratorSettings,
    PartSettings,
    Settings,
)
from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
from weakspot.testing.planted import IMAGES_FOLDER, nothing, plant, rare, spurious

N_DRAWS = 20
DIMENSION = 64
SHIFT = 0.1
EFFORT = AdversarialEffort(most_per_caption=40, keep=8, step=20)


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(text + "\n")


def distance_lines() -> Iterator[str]:
    """Yield mean distances over draws, for the same distribution and for one that is shifted by a known length."""
    truth = DIMENSION * SHIFT**2
    kinds = (
        "Frechet, truth 0",
        "extrapolated",
        f"Frechet, truth {truth:.2f}",
        "extrapolated",
        "kernel, truth 0, over its error",
    )
    yield f"| images ({DIMENSION} dimensions) | {' | '.join(kinds)} |"
    yield "|---|---|---|---|---|---|"
    for n_images in (50, 200, 400, 1000, 4000):
        found: list[list[float]] = []
        for seed in range(N_DRAWS):
            random = np.random.default_rng(seed)
            one, same = random.normal(size=(2, n_images, DIMENSION))
            far = random.normal(SHIFT, size=(n_images, DIMENSION))
            kernel = kernel_distance(one, same, seed=seed)
            extrapolated = [unbiased_frechet(one, other, seed=seed) for other in (same, far)]
            plain = [frechet_distance(one, other) for other in (same, far)]
            numbers = [np.nan if value is None else value for value in extrapolated]
            found.append(
                [
                    plain[0],
                    numbers[0],
                    plain[1],
                    numbers[1],
                    kernel.value / (kernel.standard_error or np.nan),
                ]
            )
        means = np.mean(found, axis=0)
        spread = np.std([line[-1] for line in found])
        yield (
            f"| {n_images} | "
            + " | ".join(f"{value:.3f}" for value in means[:-1])
            + f" | {means[-1]:+.2f} (spread {spread:.2f}) |"
        )


def time_lines() -> Iterator[str]:
    """Yield how long a comparison of Inception size takes."""
    one, other = np.random.default_rng(0).normal(size=(2, 5000, 2048)).astype(np.float32)
    for name, measure in (
        ("Frechet", frechet_distance),
        ("kernel", lambda a, b: kernel_distance(a, b, seed=0)),
    ):
        start = time.perf_counter()
        measure(one, other)
        yield f"{name} distance of 5,000 and 5,000 embeddings of 2,048 numbers: {time.perf_counter() - start:.1f} s"


def made_set(folder: Path, seed: int) -> AdversarialSet:
    """Return the set of one planted world, put to a matched control, to a classifier with another flaw, and to a sound one."""
    world = plant(rare(0.01), 1200, seed=seed)
    other = plant(spurious(0.95), 1200, seed=seed + 1000)
    settings = Settings(
        data=DataSettings(source=str(world.write_images(folder / "world").manifest)),
        captioner=PartSettings(name="planted"),
        generator=GeneratorSettings(name="planted"),
    )
    other.write_images(folder / "other", rows=other.dataset.rows_of(Split.TRAIN))
    project = Project(
        folder / "project",
        settings,
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
    )
    project.ingest()
    family = {
        "same flaw": plant(rare(0.01), 1200, seed=seed + 2000),
        "other flaw": other,
        "sound": plant(nothing(), 1200, seed=seed + 3000),
    }
    stage = AdversarialStage(
        project=project,
        models=tuple(
            ModelUnderTest(name=name, classifier=planted_classifier(one))
            for name, one in family.items()
        ),
    )
    request = AdversarialRequest(
        to=folder / "set",
        effort=EFFORT,
        most_captions=24,
        n_baseline=60,
        beside=(folder / "other" / IMAGES_FOLDER,),
    )
    return stage.run(request).record


def world_lines(n_worlds: int) -> Iterator[str]:
    """Yield what adversarial sets of planted worlds are like, pooled over worlds."""
    records = []
    for seed in range(n_worlds):
        with tempfile.TemporaryDirectory() as folder:
            records.append(made_set(Path(folder), seed))
    asked, kept = sum(one.n_asked for one in records), sum(one.n_kept for one in records)
    yield f"{n_worlds} worlds: {sum(len(one.yields) for one in records)} captions, {asked} images, {kept} kept"
    for title, name in (("flawed class", "disc"), ("other classes", "")):
        own = [
            one
            for record in records
            for one in record.classes
            if (one.class_name == name if name else one.class_name != "disc")
        ]
        captions, baseline = (
            pooled([one.captions for one in own]),
            pooled([one.baseline for one in own]),
        )
        yield f"{title}: captions fail {captions.value:.3f} of {captions.total}, baseline {baseline.value:.3f} of {baseline.total}"
    matrices = [one.transfer for one in records if one.transfer is not None]
    for set_name in matrices[0].sets:
        for model in matrices[0].models:
            cells = [matrix.cell(set_name, model) for matrix in matrices]
            n_images = sum(cell.n_images for cell in cells)
            top = sum(cell.n_wrong_of_top for cell in cells) / n_images
            wrong = sum(cell.n_wrong for cell in cells) / n_images
            yield f"{set_name} on {model}: wrong {wrong:.3f}, of top 3 {top:.3f} ({n_images} images)"
    for name in [row.name for row in records[0].distances]:
        rows = [row for record in records for row in record.distances if row.name == name]
        frechet, equal = (
            np.mean([row.frechet for row in rows]),
            np.mean([row.frechet_equal for row in rows]),
        )
        kernels = 1000 * np.array([row.kernel.value for row in rows])
        ends = f"kernel x 1000 {kernels.mean():.3f} (spread {kernels.std():.3f})"
        yield f"{name}: Frechet {frechet:.4f}, on {rows[0].n_equal} {equal:.4f}, {ends}"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=0, help="planted worlds to make a set for")
    n_worlds = parser.parse_args().worlds
    for line in world_lines(n_worlds) if n_worlds else chain(distance_lines(), time_lines()):
        say(line)


if __name__ == "__main__":
    main()
