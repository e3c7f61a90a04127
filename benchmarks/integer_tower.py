"""Compares the 8-bit image tower with the float32 one: speed in turns, cosines, zero-shot and retrieval, and both mixed.

Images are the validation and test photographs of the groceries and the first CIFAR-10 test images (scaled up), none of which taught
the tower its shifts and factors. Embeddings are kept in the work folder as they are made, so it can be stopped and called again.

    python benchmarks/integer_tower.py --work WORK --cifar FOLDER_WITH_test_batch.png [--n-cifar 300]
"""

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.project.demo import groceries
from weakspot_lab.align.evaluation import (
    area_under_curve,
    class_embeddings,
    phrasings,
    zero_shot_accuracy,
)

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
PRECISIONS = ("float32", "int8")
BATCH = 8


def photographs() -> tuple[list[Image.Image], list[str], list[str]]:
    taken = [one for one in groceries() if one.split != "train"]
    images = [Image.open(io.BytesIO(one.data)).convert("RGB") for one in taken]
    return images, [one.coarse for one in taken], [one.fine.replace("-", " ") for one in taken]


def cifar(folder: Path, n: int) -> tuple[list[Image.Image], np.ndarray]:
    Image.MAX_IMAGE_PIXELS = None
    rows = np.asarray(Image.open(folder / "test_batch.png").convert("RGB"))
    images = [Image.fromarray(one) for one in rows.reshape(10000, 32, 32, 3)[:n]]
    return images, np.array(json.loads((folder / "test_lables.json").read_text()))[:n]


def embed_in_turns(images, path: Path, seconds: dict[str, list[float]]) -> dict[str, np.ndarray]:
    """Embed batch by batch, each batch with both towers; processor seconds an image are added to `seconds`."""
    embedders = {name: EmbeddedDefault(threads=1, precision=name) for name in PRECISIONS}
    made = {name: [] for name in PRECISIONS}
    if path.exists():
        with np.load(path) as stored:
            made = {name: list(stored[name]) for name in PRECISIONS}
    prepare = embedders["float32"].prepare
    for start in range(len(made["int8"]), len(images), BATCH):
        given = [prepare(image) for image in images[start : start + BATCH]]
        for name, embedder in embedders.items():
            embedder.embed_prepared(given[:0] if start else given[:1])
            before = time.process_time()
            made[name].extend(embedder.embed_prepared(given))
            seconds[name].append((time.process_time() - before) / len(given))
        if start % (10 * BATCH) == 0:
            np.savez(path, **{name: np.stack(rows) for name, rows in made.items()})
    np.savez(path, **{name: np.stack(rows) for name, rows in made.items()})
    return {name: np.stack(rows) for name, rows in made.items()}


def nearest_share(queries: np.ndarray, base: np.ndarray, labels: np.ndarray) -> float:
    """Share of images whose nearest other image has their label."""
    similar = queries @ base.T
    np.fill_diagonal(similar, -np.inf)
    return float((labels[similar.argmax(1)] == labels).mean())


def words(names: list[str]) -> np.ndarray:
    phrases = [phrase for name in names for phrase in phrasings(name.lower())]
    return class_embeddings(EmbeddedDefault().embed_texts(phrases), len(names))


def figures(made: dict[str, np.ndarray], labels: np.ndarray, names: list[str]) -> dict[str, dict]:
    """Zero-shot accuracy, mean area under the curve of the names as queries, and nearest images; `mixed` takes every other image from int8."""
    exact, integer = made["float32"], made["int8"]
    mixed = np.where((np.arange(len(exact)) % 2)[:, None] == 0, exact, integer)
    text = words(names)
    return {
        name: {
            "zero-shot": zero_shot_accuracy(rows, text, labels),
            "retrieval AUC": float(
                np.mean([area_under_curve(rows @ text[k], labels == k) for k in range(len(names))])
            ),
            "nearest alike": nearest_share(rows, rows, labels),
        }
        for name, rows in (("float32", exact), ("int8", integer), ("mixed", mixed))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--cifar", type=Path, required=True)
    parser.add_argument("--n-cifar", type=int, default=300)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    seconds: dict[str, list[float]] = {name: [] for name in PRECISIONS}
    images, coarse, fine = photographs()
    shop = embed_in_turns(images, given.work / "groceries.npz", seconds)
    images, labels = cifar(given.cifar, given.n_cifar)
    small = embed_in_turns(images, given.work / "cifar.npz", seconds)
    raw = cosines(shop, small)
    report = {
        "images": len(raw),
        "cosine of centred embeddings": {"mean": float(raw.mean()), "lowest": float(raw.min())},
    }
    kinds = sorted(set(fine))
    report["groceries, kinds"] = figures(shop, np.array([kinds.index(one) for one in fine]), kinds)
    classes = sorted(set(coarse))
    report["groceries, classes"] = figures(
        shop, np.array([classes.index(one) for one in coarse]), classes
    )
    report["CIFAR-10"] = figures(small, labels, CLASSES)
    if seconds["int8"]:
        medians = {name: float(np.median(values)) for name, values in seconds.items()}
        report["processor seconds an image"] = medians
        report["ratio"] = medians["float32"] / medians["int8"]
    print(json.dumps(report, indent=1))


def cosines(*sets: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([(one["float32"] * one["int8"]).sum(axis=1) for one in sets])


if __name__ == "__main__":
    main()
