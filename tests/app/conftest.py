import csv

import numpy as np
import pytest
from PIL import Image
from sklearn.linear_model import LogisticRegression

from weakspot.app.project import Project
from weakspot.backends.sklearn_classifier import SklearnClassifier
from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import rare, spurious


@pytest.fixture(scope="session")
def world():
    return plant(rare(0.01), 900, seed=3)


@pytest.fixture(scope="session")
def manifest(world, tmp_path_factory):
    return world.write_pictures(tmp_path_factory.mktemp("world")).manifest


@pytest.fixture(scope="session")
def family(tmp_path_factory):
    """Three projects on the same pictures, verified: two whose classifiers fail alike, and one without a confirmed slice."""
    folder = tmp_path_factory.mktemp("family")
    world = plant(spurious(0.95), 1500, seed=3)
    dataset = world.dataset
    features, truth = world.features(), np.array(dataset.class_names)[dataset.labels]
    entries = [
        (f"../{number}.png", label, SPLIT_ORDER[split].value)
        for number, (label, split) in enumerate(zip(truth, dataset.splits, strict=True))
    ]
    for number in range(len(world)):
        Image.new("RGB", (16, 16), (number % 256, number // 256, 0)).save(folder / f"{number}.png", compress_level=1)
    projects = []
    for number, name in enumerate(("small", "large", "blunt")):
        draws = np.random.default_rng(number)
        vectors = features @ draws.normal(size=(features.shape[1], 24)) / 5 + 0.1 * draws.normal(size=(len(world), 24))
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        train = dataset.rows_of(Split.TRAIN)
        model = LogisticRegression(C=100.0, max_iter=500).fit(vectors[train], truth[train])
        project = _project(folder / name, entries, vectors, model)
        project.ingest()
        project.verify(project.discover().run_id)
        projects.append(project)
    return tuple(projects)


def _project(folder, entries, vectors, model):
    folder.mkdir()
    np.save(folder / "vectors.npy", vectors)
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "split"])
        writer.writerows(entries)
    strict = "[discover]\nscreen_p = 1e-300\n" if folder.name == "blunt" else ""
    (folder / "weakspot.toml").write_text(
        f'{strict}[data]\nsource = "manifest.csv"\n[embedder]\nname = "given-vectors"\n[embedder.options]\npath = "vectors.npy"\n'
    )
    return Project.open(folder, classifier=SklearnClassifier(model=model))
