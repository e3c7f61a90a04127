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

from weakspot.core.machine import user_cache_folder

# What fixtures need is imported by them: a run of one small test file must not wait for the whole package.
os.environ.setdefault(
    "WEAKSPOT_CACHE_MEGABYTES", "0"
)  # ports of test servers are used again: nothing of theirs may be kept
os.environ.setdefault(
    "WEAKSPOT_EMBEDDINGS_MEGABYTES", "0"
)  # what an earlier test computed would change what a later one counts
os.environ.setdefault(
    "WEAKSPOT_KERNELS", str(user_cache_folder() / "kernels")
)  # tests with a cache folder of their own must not compile everything again
LONG_SECONDS = {"browser": 900, "end_to_end": 1200, "faults": 600, "tools": 600}
"""Most seconds of a test in folders whose tests start servers, browsers and other processes; elsewhere pyproject.toml says it."""
BEGUN_FIRST = (
    "browser",
    "end_to_end",
    "test_conformance.py",
    "test_site.py",
    "web",
    "faults",
    "tools",
    "data",
    "lab",
    "generate",
)
"""What has files that take long: begun last, one of them would keep one process busy while the others have ended."""
TOGETHER = ("tests/browser/",)
"""Folders whose tests run in one process: a browser, servers and a large project are then started once."""
COLOURS = {"red": (200, 40, 40), "green": (110, 180, 70), "yellow": (190, 190, 60)}
FRUIT_SETTINGS = """\
[data]
source = "manifest.csv"
[classifier]
name = "onnx"
options = {path = "fruit.onnx", class_names = ["apple", "pear"], mean = [0.0, 0.0, 0.0], std = [1.0, 1.0, 1.0]}
[embedder]
name = "given-embeddings"
options = {path = "embeddings.npy"}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        seconds = LONG_SECONDS.get(_inside(item))
        if seconds and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(seconds))
    items.sort(key=_turn)


def _inside(item: pytest.Item) -> str:
    """Return which folder or file of tests a test is in; nothing for the examples in docstrings."""
    here = Path(__file__).parent
    return item.path.parts[len(here.parts)] if item.path.is_relative_to(here) else ""


def _turn(item: pytest.Item) -> int:
    """Return when a test's file has its turn: the many short examples in docstrings come last and fill what is left."""
    inside = _inside(item)
    if inside in BEGUN_FIRST:
        return BEGUN_FIRST.index(inside)
    return len(BEGUN_FIRST) + (not inside)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """With `--dist loadfile` files are handed out in the order above, not by how many tests they have."""
    from xdist.scheduler import LoadFileScheduling

    class InTurn(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            folder = next((one for one in TOGETHER if nodeid.startswith(one)), "")
            return folder or super()._split_scope(nodeid)

    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return InTurn(config, log)


@pytest.fixture(scope="session")
def demo_result(shared_folder):
    """What the README's first command gives; its folder is `report.parent`. Copy it before you change it.

    Whoever comes second, in another process, finds everything computed and only reads it again.
    """
    from weakspot.project.demo import run_demo

    with shared_folder("demo") as folder, embeddings_shared():
        return run_demo(folder / "weakspot-demo")


@contextmanager
def embeddings_shared() -> Iterator[None]:
    """As for every user: photographs that another project has embedded are not embedded again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("WEAKSPOT_EMBEDDINGS_MEGABYTES")
        yield


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, worker_id):
    """A folder by name that all processes of a test run share; one at a time is in it."""
    common = (
        tmp_path_factory.getbasetemp()
        if worker_id == "master"
        else tmp_path_factory.getbasetemp().parent
    )

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
    from weakspot.project.project import Project

    folder = tmp_path_factory.mktemp("fruit") / "fruit"
    folder.mkdir()
    _write_fruit(folder)
    project = Project.open(folder)
    project.ingest()
    project.verify(project.discover().run_id)
    return folder


def _write_fruit(folder: Path) -> None:
    from weakspot.project.demo import network

    draws = np.random.default_rng(5)
    rows: list[tuple[str, str, str, str]] = []
    pixels: list[np.ndarray] = []
    for split, n_samples in (("train", 160), ("validation", 320), ("test", 160)):
        for place in range(n_samples):
            label = ("apple", "pear")[place % 2]
            is_green = label == "apple" and place % (40 if split == "train" else 4) == 0
            kind = "green" if is_green else "red" if label == "apple" else "yellow"
            pixels.append(
                np.clip(np.array(COLOURS[kind]) + draws.normal(0, 22, 3), 0, 255).astype(np.uint8)
            )
            rows.append((f"{len(rows)}.png", label, split, kind))
            Image.new("RGB", (16, 16), tuple(pixels[-1].tolist())).save(
                folder / rows[-1][0], compress_level=1
            )
    with (folder / "manifest.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("path", "label", "split", "kind"), *rows])
    shown = np.stack(pixels).astype(np.float32) / 255
    embeddings = np.concatenate(
        [shown - 0.5 + draws.normal(0, 0.02, shown.shape), np.full((len(rows), 1), 0.2)], axis=1
    )
    np.save(
        folder / "embeddings.npy",
        (embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)).astype(np.float32),
    )
    (folder / "fruit.onnx").write_bytes(network(_trained(shown, rows)))
    (folder / "weakspot.toml").write_text(FRUIT_SETTINGS)


def _trained(shown: np.ndarray, rows: list[tuple[str, str, str, str]]):
    from sklearn.linear_model import LogisticRegression

    from weakspot.core.heads import Head
    from weakspot.project.demo import FEATURE_SCALE, SHARPNESS, prototypes

    closeness = SHARPNESS * (2 * shown @ prototypes().T - (prototypes() ** 2).sum(axis=1))
    shares = np.exp(closeness - closeness.max(axis=1, keepdims=True))
    features = FEATURE_SCALE * shares / shares.sum(axis=1, keepdims=True)
    train = np.array([row[2] == "train" for row in rows])
    model = LogisticRegression(max_iter=500).fit(
        features[train], [row[1] == "pear" for row in rows if row[2] == "train"]
    )
    weights, bias = (
        np.stack([-model.coef_[0], model.coef_[0]]) / 2,
        np.stack([-model.intercept_, model.intercept_])[:, 0] / 2,
    )
    return Head(weights=weights.astype(np.float32), bias=bias.astype(np.float32))


@pytest.fixture(scope="session")
def world():
    from weakspot.testing.planted import plant, rare

    return plant(rare(0.01), 900, seed=3)


@pytest.fixture(scope="session")
def manifest(world, tmp_path_factory):
    return world.write_images(tmp_path_factory.mktemp("world")).manifest


@pytest.fixture(scope="session")
def family(tmp_path_factory):
    """Three projects on the same images, verified: two whose classifiers fail alike, and one without a confirmed slice."""
    from sklearn.linear_model import LogisticRegression

    from weakspot.core.dataset import SPLIT_ORDER, Split
    from weakspot.testing.planted import plant, spurious

    folder = tmp_path_factory.mktemp("family")
    world = plant(spurious(0.95), 1500, seed=3)
    dataset = world.dataset
    features, truth = world.features(), np.array(dataset.class_names)[dataset.labels]
    entries = [
        (f"../{number}.png", label, SPLIT_ORDER[split].value)
        for number, (label, split) in enumerate(zip(truth, dataset.splits, strict=True))
    ]
    for number in range(len(world)):
        Image.new("RGB", (16, 16), (number % 256, number // 256, 0)).save(
            folder / f"{number}.png", compress_level=1
        )
    projects = []
    for number, name in enumerate(("small", "large", "blunt")):
        draws = np.random.default_rng(number)
        embeddings = features @ draws.normal(size=(features.shape[1], 24)) / 5 + 0.1 * draws.normal(
            size=(len(world), 24)
        )
        embeddings = (embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)).astype(
            np.float32
        )
        train = dataset.rows_of(Split.TRAIN)
        model = LogisticRegression(C=100.0, max_iter=500).fit(embeddings[train], truth[train])
        project = _project(folder / name, entries, embeddings, model)
        project.ingest()
        project.verify(project.discover().run_id)
        projects.append(project)
    return tuple(projects)


def _project(folder, entries, embeddings, model):
    from weakspot.models.sklearn.classifier import SklearnClassifier
    from weakspot.project.project import Project

    folder.mkdir()
    np.save(folder / "embeddings.npy", embeddings)
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "split"])
        writer.writerows(entries)
    strict = "[discover]\nscreen_p = 1e-300\n" if folder.name == "blunt" else ""
    (folder / "weakspot.toml").write_text(
        f'{strict}[data]\nsource = "manifest.csv"\n[embedder]\nname = "given-embeddings"\n'
        '[embedder.options]\npath = "embeddings.npy"\n'
    )
    return Project.open(folder, classifier=SklearnClassifier(model=model))
