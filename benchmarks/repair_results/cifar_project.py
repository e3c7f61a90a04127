"""CIFAR-10 as a project: written, ingested and embedded once, then read from its cache."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from weakspot.core.arrays import ByteArray, FloatArray
from weakspot.core.assistants import EmbedTexts
from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import StoreError
from weakspot.core.roles import Embedder
from weakspot.core.run import StageProgress
from weakspot.core.samples import EmbeddingSpace
from weakspot.data.embed import embed_phrases
from weakspot.data.settings import DataSettings
from weakspot.project.project import Project
from weakspot.run.embedding import choose_embedder, embed
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_engine
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore
from weakspot_lab.bench.photographs import (
    CIFAR_KINDS,
    CIFAR_PACKAGE,
    SIDE,
    bench_folder,
    npm_package,
)

FOLDER = "cifar10-directions"
N_TEST, N_OTHERS = 2_000, 8_000
ImageFile = tuple[str, str, int, Split]
FILES: tuple[ImageFile, ...] = (
    ("test_batch", "test_lables", N_TEST, Split.TEST),
    ("data_batch_1", "train_lables", N_OTHERS, Split.TRAIN),
)
CACHED = "chosen"


@dataclass(frozen=True, kw_only=True, eq=False)
class CifarImages:
    """CIFAR-10 images with embeddings.

    Args:
        dataset: in the splits test and train (everything else).
        pixels: [n, 32, 32, 3].
        joint: embeddings of the default embedder.
        embed_texts: phrases to embeddings of the same space.
    """

    dataset: Dataset
    pixels: ByteArray
    joint: EmbeddingSpace
    embed_texts: EmbedTexts


class RememberedTexts:
    """Embeds every phrase once: the same candidates come up for a class in every run."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, FloatArray] = {}

    def __call__(self, phrases: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        new = [phrase for phrase in dict.fromkeys(phrases) if phrase not in self._known]
        if new:
            self._known |= dict(zip(new, embed_phrases(new, self._embedder), strict=True))
        found = [self._known[phrase] for phrase in phrases]
        return (
            np.stack(found) if found else np.zeros((0, self._embedder.dimension), dtype=np.float32)
        )


def cifar_images(n_others: int, progress: StageProgress) -> CifarImages:
    """Return 2,000 test images and the first of the others; what is not embedded yet costs a fifth of a second each."""
    folder = bench_folder() / FOLDER
    settings = Settings(data=DataSettings(source="manifest.csv"))
    store = _store(folder, settings, progress)
    whole = store.dataset()
    others = whole.rows_of(Split.TRAIN)[:n_others]
    rows = np.sort(np.concatenate([whole.rows_of(Split.TEST), others]))
    dataset = replace(whole, table=whole.table.take(pa.array(rows)))
    embedder, _ = choose_embedder(
        settings.embedder,
        folder=folder,
        progress=lambda done, total: progress("weights", done, total),
    )
    joint = _embeddings(store, dataset, embedder, settings, progress)
    return CifarImages(
        dataset=dataset,
        pixels=_pixels(dataset),
        joint=joint,
        embed_texts=RememberedTexts(embedder),
    )


def _store(folder: Path, settings: Settings, progress: StageProgress) -> ProjectStore:
    try:
        if (folder / "manifest.csv").exists():
            store = ProjectStore.open(folder)
            store.dataset()
            return store
    except StoreError:
        pass
    write_manifest(folder, npm_package(CIFAR_PACKAGE, bench_folder() / "npm"))
    project = Project.create(folder, settings=settings, overwrite=True)
    progress("ingest", 0, None)
    project.ingest()
    return project.store


def _embeddings(
    store: ProjectStore,
    dataset: Dataset,
    embedder: Embedder,
    settings: Settings,
    progress: StageProgress,
) -> EmbeddingSpace:
    """Return embeddings; where all are stored, nothing is locked, so that another process may go on embedding further images."""
    keys = packed_hashes(dataset.table.column("content_hash"))
    cache = store.embeddings(embedder.encoder_id)
    if cache.missing(keys).any():
        progress_of = lambda done, total: progress("embed cifar10", done, total)  # noqa: E731
        return embed(
            store, dataset, embedder, engine=build_engine(settings), progress=progress_of
        ).space
    ready = cache.materialise(keys, width=embedder.dimension, name=CACHED)
    return EmbeddingSpace(
        encoder_id=embedder.encoder_id, embeddings=ready.values, has_text=embedder.has_text
    )


def _pixels(dataset: Dataset) -> ByteArray:
    found = np.zeros((len(dataset), SIDE, SIDE, 3), dtype=np.uint8)
    for row, location in enumerate(dataset.locations()):
        if location is not None:
            with Image.open(location) as image:
                found[row] = np.asarray(image.convert("RGB"))
    return found


def write_manifest(folder: Path, package: Path, files: Sequence[ImageFile] = FILES) -> Path:
    """Write images and a manifest (path, label, split) from the unpacked package, unless they are there."""
    manifest = folder / "manifest.csv"
    if manifest.exists():
        return manifest
    lines: list[tuple[str, str, str]] = []
    (folder / "photos").mkdir(parents=True, exist_ok=True)
    for name, labels, n_images, split in files:
        codes = json.loads((package / f"{labels}.json").read_text(encoding="utf-8"))
        with Image.open(package / f"{name}.png") as sheet:
            pixels = np.asarray(sheet.convert("RGB")).reshape(-1, SIDE, SIDE, 3)
        for row in range(n_images):
            path = f"photos/{name}-{row:05d}.png"
            Image.fromarray(pixels[row]).save(folder / path)
            lines.append((path, CIFAR_KINDS[codes[row]], split.value))
    partial = manifest.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("path", "label", "split"), *lines])
    partial.replace(manifest)
    return manifest
