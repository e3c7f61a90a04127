"""What tests of several rooms share because it takes long to make."""

import csv
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.linear_model import LogisticRegression

from weakspot.app.demo import run_demo
from weakspot.app.demo_network import FEATURE_SCALE, SHARPNESS, network, prototypes
from weakspot.app.project import Project
from weakspot.core.heads import Head

os.environ.setdefault("WEAKSPOT_CACHE_MEGABYTES", "0")  # ports of test servers are used again: nothing of theirs may be kept
COLOURS = {"red": (200, 40, 40), "green": (110, 180, 70), "yellow": (190, 190, 60)}
FRUIT_SETTINGS = """\
[data]
source = "manifest.csv"
[classifier]
name = "onnx"
options = {path = "fruit.onnx", class_names = ["apple", "pear"], mean = [0.0, 0.0, 0.0], std = [1.0, 1.0, 1.0]}
[embedder]
name = "given-vectors"
options = {path = "vectors.npy"}
"""


@pytest.fixture(scope="session")
def demo_outcome(shared_folder):
    """What the README's first command gives; its folder is `report.parents[3]`. Copy it before you change it.

    Whoever comes second, in another process, finds everything computed and only reads it again.
    """
    with shared_folder("demo") as folder:
        return run_demo(folder / "weakspot-demo")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, worker_id):
    """A folder by name that all processes of a test run share; one at a time is in it."""
    common = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent

    @contextmanager
    def entered(name: str) -> Iterator[Path]:
        folder = common / f"shared-{name}"
        folder.mkdir(exist_ok=True)
        with (common / f"shared-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder

    return entered


@pytest.fixture(scope="session")
def fruit_folder(tmp_path_factory) -> Path:
    """640 coloured tiles in seconds: a network that fails on green apples, one confirmed slice, nothing repaired. Copy it."""
    folder = tmp_path_factory.mktemp("fruit") / "fruit"
    folder.mkdir()
    _write_fruit(folder)
    project = Project.open(folder)
    project.ingest()
    project.verify(project.discover().run_id)
    return folder


def _write_fruit(folder: Path) -> None:
    draws = np.random.default_rng(5)
    rows: list[tuple[str, str, str, str]] = []
    pixels: list[np.ndarray] = []
    for split, n_samples in (("train", 160), ("validation", 320), ("test", 160)):
        for place in range(n_samples):
            label = ("apple", "pear")[place % 2]
            is_green = label == "apple" and place % (40 if split == "train" else 4) == 0
            kind = "green" if is_green else "red" if label == "apple" else "yellow"
            pixels.append(np.clip(np.array(COLOURS[kind]) + draws.normal(0, 22, 3), 0, 255).astype(np.uint8))
            rows.append((f"{len(rows)}.png", label, split, kind))
            Image.new("RGB", (16, 16), tuple(pixels[-1].tolist())).save(folder / rows[-1][0], compress_level=1)
    with (folder / "manifest.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("path", "label", "split", "kind"), *rows])
    shown = np.stack(pixels).astype(np.float32) / 255
    vectors = np.concatenate([shown - 0.5 + draws.normal(0, 0.02, shown.shape), np.full((len(rows), 1), 0.2)], axis=1)
    np.save(folder / "vectors.npy", (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))
    (folder / "fruit.onnx").write_bytes(network(_trained(shown, rows)))
    (folder / "weakspot.toml").write_text(FRUIT_SETTINGS)


def _trained(shown: np.ndarray, rows: list[tuple[str, str, str, str]]) -> Head:
    closeness = SHARPNESS * (2 * shown @ prototypes().T - (prototypes() ** 2).sum(axis=1))
    shares = np.exp(closeness - closeness.max(axis=1, keepdims=True))
    features = FEATURE_SCALE * shares / shares.sum(axis=1, keepdims=True)
    train = np.array([row[2] == "train" for row in rows])
    model = LogisticRegression(max_iter=500).fit(features[train], [row[1] == "pear" for row in rows if row[2] == "train"])
    weights, bias = np.stack([-model.coef_[0], model.coef_[0]]) / 2, np.stack([-model.intercept_, model.intercept_])[:, 0] / 2
    return Head(weights=weights.astype(np.float32), bias=bias.astype(np.float32))
