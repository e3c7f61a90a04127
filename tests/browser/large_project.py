"""A planted project of very many images, in the form in which an embedded project lies on disk.

Rendering, embedding and classifying each image by itself would take minutes. Images of the same scene share their pixels and
differ in the strip that says which instance they are; embeddings and predictions, which planted models read from that strip, are
put into the project's caches as they would come out of them.
"""

import io
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image
from tests.build import planted_settings

from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.project.project import Project
from weakspot.store.array_files import packed_hashes
from weakspot.testing.fakes import planted_classifier
from weakspot.testing.planted import PlantedWorld, plant, rare
from weakspot.testing.scenes import Scene, render, scene_from_codes, write_marker

SHARE, SEED = 0.01, 5


def write_large_project(folder: Path, n_samples: int) -> Project:
    """Make a project of planted images whose green discs are rare in training, embedded, with one verified run."""
    world = plant(rare(SHARE), n_samples, seed=SEED)
    _write_images(world, folder)
    (folder / "weakspot.toml").write_text(planted_settings(n_samples, share=SHARE, seed=SEED))
    project = Project.open(folder)
    project.ingest()
    _fill_caches(project, world)
    assert project.embed().n_new_embeddings == 0
    project.verify(project.discover().run_id)
    return project


def _write_images(world: PlantedWorld, folder: Path) -> None:
    lines = ["path,label,split,row"]
    names = world.dataset.class_names
    for row in range(len(world)):
        label, split = (
            names[int(world.dataset.labels[row])],
            SPLIT_ORDER[int(world.dataset.splits[row])].value,
        )
        place = folder / f"images/{row // 1000:03d}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{row:07d}.bmp").write_bytes(_encoded(world, row))
        lines.append(f"images/{row // 1000:03d}/{row:07d}.bmp,{label},{split},{row}")
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")


def _encoded(world: PlantedWorld, row: int) -> bytes:
    pixels = _pixels(world.codes[row].tobytes()).copy()
    stream = io.BytesIO()
    Image.fromarray(write_marker(pixels, world.scene(row))).save(stream, format="bmp")
    return stream.getvalue()


@cache
def _pixels(codes: bytes) -> np.ndarray:
    """Return the pixels of a scene, whatever its instance; only kind, colour, size and background are rendered."""
    kept = np.frombuffer(codes, dtype=np.uint8).copy()
    kept[4:] = 0
    return _rendered(kept.tobytes())


@cache
def _rendered(codes: bytes) -> np.ndarray:
    scene: Scene = scene_from_codes(np.frombuffer(codes, dtype=np.uint8), instance=1)
    return np.asarray(render(scene, marked=False))


def _fill_caches(project: Project, world: PlantedWorld) -> None:
    dataset = project.store.dataset()
    rows = np.array(dataset.metadata("row").to_pylist(), dtype=np.int64)
    keys = packed_hashes(dataset.table.column("content_hash"))
    classifier = planted_classifier(world)
    features = world.features(rows)
    with project.store.writing():
        project.store.embeddings("planted-1").append(keys, world.embeddings(rows))
        project.store.predictions(classifier.classifier_id).append(
            keys, world.head.probabilities(features), features
        )
    assert len(dataset.rows_of(Split.VALIDATION))
