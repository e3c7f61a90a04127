"""The worlds of `million.py`: planted embeddings of length 512 with predictions, and 20,000 image files listed again and again."""

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weakspot.core.arrays import generator
from weakspot.core.dataset import SPLIT_ORDER, Task
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput
from weakspot.testing.fakes import PlantedClassifier, PlantedEmbedder
from weakspot.testing.planted import (
    CHUNK,
    CLIP_DIMENSION,
    FEATURE_DIMENSION,
    OwnFeatures,
    PlantedWorld,
    noise,
    phrase_embeddings,
    plant,
    rare,
)

WIDTH = 512
NOISE = 0.01
SEED = 3
RARE_SHARE = 0.01
SETTINGS = '[data]\nsource = "manifest.parquet"\n'


def widening(name: str, narrow: int, width: int) -> np.ndarray:
    """Return orthonormal rows [narrow, width]: products with them keep every angle."""
    drawn = generator(0, "million", name).standard_normal((width, narrow))
    return np.ascontiguousarray(np.linalg.qr(drawn)[0].T, dtype=np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class WideEmbedder:
    """Phrases into the wide joint space; images have their embeddings already."""

    width: int = WIDTH
    image_side: int | None = None
    has_text: bool = True

    @property
    def encoder_id(self) -> str:
        """Name and width."""
        return f"planted-wide-{self.width}"

    @property
    def dimension(self) -> int:
        """Length of the embeddings."""
        return self.width

    def prepare(self, image):
        """Refuse."""
        raise NotImplementedError

    def embed_prepared(self, prepared):
        """Refuse."""
        raise NotImplementedError

    def embed_texts(self, texts):
        """Return unit vectors [m, d] of phrases."""
        return phrase_embeddings(texts) @ widening("clip", CLIP_DIMENSION, self.width)


@dataclass(frozen=True, kw_only=True, eq=False)
class WideClassifier:
    """A last layer on wide features; images have their features already."""

    class_names: tuple[str, ...]
    head: Head
    task: Task = Task.SINGLE_LABEL
    image_side: int | None = None

    @cached_property
    def classifier_id(self) -> str:
        """Name and hash of the layer."""
        return f"planted-wide-{hashlib.sha256(self.head.weights.tobytes() + self.head.bias.tobytes()).hexdigest()[:16]}"

    def prepare(self, image):
        """Refuse."""
        raise NotImplementedError

    def classify(self, prepared) -> ClassifierOutput:
        """Return probabilities of features."""
        features = np.stack(prepared)
        return ClassifierOutput(probabilities=self.head.probabilities(features), features=features)


def make_features(folder: Path, n_rows: int, width: int) -> None:
    """Write a project whose samples have no images: manifest, and embeddings and features in the manifest's order."""
    folder.mkdir(parents=True)
    world = plant(rare(RARE_SHARE), n_rows, seed=SEED)
    names = np.array(world.dataset.class_names)
    columns = {name: world.dataset.metadata(name) for name in world.dataset.metadata_names}
    columns |= {
        f"prob_{name}": pa.array(world.dataset.probabilities[:, code])
        for code, name in enumerate(names)
    }
    columns |= {
        "key": pa.array([f"sample-{row:08d}" for row in range(n_rows)]),
        "label": pa.array(names[world.dataset.labels]),
        "prediction": pa.array(names[world.dataset.predictions]),
        "split": pa.array(np.array([split.value for split in SPLIT_ORDER])[world.dataset.splits]),
    }
    pq.write_table(pa.table(columns), folder / "manifest.parquet")
    (folder / "weakspot.toml").write_text(SETTINGS)
    _write_wide(folder / "embeddings.npy", world, "clip", width)
    _write_wide(folder / "features.npy", world, "own", width)
    _write_head(
        folder,
        replace(world.head, weights=world.head.weights @ widening("own", FEATURE_DIMENSION, width)),
        names,
    )


def _write_wide(path: Path, world: PlantedWorld, name: str, width: int) -> None:
    narrow = CLIP_DIMENSION if name == "clip" else FEATURE_DIMENSION
    axes = widening(name, narrow, width)
    target = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(len(world), width))
    for start in range(0, len(world), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(world)))
        wide = (world.embeddings(rows) if name == "clip" else world.features(rows)) @ axes
        wide += np.float32(NOISE) * noise(world.instances[rows], width, f"million {name}")
        target[rows] = (
            wide / np.linalg.norm(wide, axis=1, keepdims=True) if name == "clip" else wide
        )
    target.flush()


def make_images(folder: Path, n_files: int) -> None:
    """Draw the image files, once; other worlds list them."""
    done = folder / "made.json"
    if done.exists() and json.loads(done.read_text()) == {"files": n_files, "seed": SEED}:
        return
    shutil.rmtree(folder, ignore_errors=True)
    plant(rare(RARE_SHARE), n_files, seed=SEED).write_images(folder)
    done.write_text(json.dumps({"files": n_files, "seed": SEED}))


def make_files(folder: Path, n_rows: int, images: Path, n_files: int) -> None:
    """Write a project whose manifest lists the image files as often as it takes, each time under another key."""
    folder.mkdir(parents=True)
    world = plant(rare(RARE_SHARE), n_files, seed=SEED)
    names = np.array(world.dataset.class_names)
    splits = np.array([split.value for split in SPLIT_ORDER])
    row_of = np.arange(n_rows) % n_files
    labels, shares = names[world.dataset.labels], splits[world.dataset.splits]
    paths = pa.array(
        [
            str(images / f"images/{shares[row]}/{labels[row]}/{row:07d}.png")
            for row in range(n_files)
        ],
        pa.string(),
    )
    columns = {
        "key": pa.array([f"{row % n_files:07d}-{row // n_files:04d}" for row in range(n_rows)]),
        "path": paths.take(pa.array(row_of)),
        "label": pa.array(labels[row_of]),
        "split": pa.array(shares[row_of]),
    }
    pq.write_table(pa.table(columns), folder / "manifest.parquet")
    (folder / "weakspot.toml").write_text(SETTINGS)
    _write_head(folder, world.head, names)


def _write_head(folder: Path, head: Head, names: np.ndarray) -> None:
    np.savez(folder / "head.npz", weights=head.weights, bias=head.bias, names=names)


def parts(folder: Path) -> dict:
    """Return the embedder and the classifier of a project made here."""
    stored = np.load(folder / "head.npz")
    names, head = (
        tuple(stored["names"].tolist()),
        Head(weights=stored["weights"], bias=stored["bias"]),
    )
    if (folder / "features.npy").exists():
        return {
            "embedder": WideEmbedder(width=head.weights.shape[1]),
            "classifier": WideClassifier(class_names=names, head=head),
        }
    own = OwnFeatures(problem=rare(RARE_SHARE))
    return {
        "embedder": PlantedEmbedder(),
        "classifier": PlantedClassifier(class_names=names, head=head, own=own),
    }
