"""The whole loop on planted samples without images, in a process of its own; prints what it took as JSON.

python scale_child.py FOLDER ROWS
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weakspot.core.dataset import SPLIT_ORDER, Dataset
from weakspot.project.project import Project
from weakspot.store.array_files import packed_hashes
from weakspot.testing.fakes import planted_classifier
from weakspot.testing.planted import CLIP_DIMENSION, PlantedWorld, phrase_embeddings, plant, rare

SETTINGS = '[data]\nsource = "predictions.parquet"\n[discover]\nmax_tested = 1\n'
WIDTH = 256


class Counted(np.ndarray):
    """Embeddings that count how many numbers are taken out of them."""

    n_read = 0

    def __getitem__(self, key):
        found = np.asarray(self).__getitem__(key)
        Counted.n_read += np.size(found)
        return found


@dataclass(frozen=True)
class Aligned:
    """Embeddings in the order of the data set."""

    embeddings: np.ndarray


@dataclass(frozen=True)
class CountedEmbedder:
    """Has an embedding for every sample already; zeros make them as wide as those of real encoders."""

    world: PlantedWorld
    encoder_id: str = "counted"
    dimension: int = WIDTH
    image_side: int | None = None
    has_text: bool = True

    def embeddings_for(self, dataset: Dataset) -> Aligned:
        return Aligned(
            embeddings=_wide(self.world.embeddings(np.arange(len(dataset)))).view(Counted)
        )

    def prepare(self, image):
        raise NotImplementedError

    def embed_prepared(self, prepared):
        raise NotImplementedError

    def embed_texts(self, texts):
        return _wide(phrase_embeddings(texts))


def _wide(embeddings: np.ndarray) -> np.ndarray:
    return np.pad(embeddings, ((0, 0), (0, WIDTH - CLIP_DIMENSION)))


def _written(folder: Path, world: PlantedWorld) -> None:
    dataset, names = world.dataset, np.array(world.dataset.class_names)
    columns = {
        "key": pa.array([f"{row:08d}" for row in range(len(world))]),
        "label": pa.array(names[dataset.labels]),
        "prediction": pa.array(names[dataset.predictions]),
        "split": pa.array(np.array([split.value for split in SPLIT_ORDER])[dataset.splits]),
    }
    pq.write_table(pa.table(columns), folder / "predictions.parquet")
    (folder / "weakspot.toml").write_text(SETTINGS)


def _highest_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    folder, n_rows = Path(sys.argv[1]), int(sys.argv[2])
    world = plant(rare(0.01), n_rows, seed=3)
    _written(folder, world)
    classifier = planted_classifier(world)
    project = Project.open(folder, embedder=CountedEmbedder(world), classifier=classifier)
    project.ingest()
    stored = project.store.dataset()
    assert stored.table.column("key").to_pylist() == [f"{row:08d}" for row in range(n_rows)]
    predictions = project.store.predictions(classifier.classifier_id)
    predictions.append(
        packed_hashes(stored.table.column("content_hash")),
        world.dataset.probabilities,
        world.features(),
    )
    record = project.run()
    project.report()
    arms = [arm.arm for repair in record.repairs for arm in repair.arms]
    told = {
        "n_confirmed": len(record.published()),
        "arms": arms,
        "n_read": Counted.n_read,
        "bytes": _highest_bytes(),
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
