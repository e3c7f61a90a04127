"""Where tests make data sets, samples, slices, evidence, run records and projects: say what matters, the rest has a default.

What needs more than `weakspot.core` is imported when it is called, so that small tests start fast.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from weakspot.core.dataset import Dataset, dataset_from_columns
from weakspot.core.evidence import (
    Cause,
    CauseFinding,
    ClassFinding,
    ClassFindingKind,
    Evidence,
    Interval,
    Verdict,
)
from weakspot.core.rules import ColumnRule, IdRule, Rule
from weakspot.core.run import (
    Advice,
    AdviceKind,
    CheckState,
    ClassifierFacts,
    PreflightCheck,
    RunRecord,
)
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName

FRUIT = ("apple", "pear")
USE = DataUse(name="half", n_samples=104, digest="d")
INSIDE, OUTSIDE = Interval(low=0.47, high=0.91), Interval(low=0.03, high=0.2)


def dataset(labels=None, *, class_names=FRUIT, failed=None, n=None, **columns) -> Dataset:
    """Make a data set; further columns are those of `dataset_from_columns`.

    Args:
        labels: class numbers; without any, all samples (as many as `failed` or `n` says) are of the first class.
        failed: which samples are taken for the other one of two classes; else `predictions` may say what is predicted.
        n: number of samples, where neither labels nor failures say it.
    """
    if labels is None:
        labels = [0] * (n if failed is None else len(failed))
    if failed is not None:
        truth = np.asarray(labels, dtype=np.int64)
        columns["predictions"] = np.where(np.asarray(failed, dtype=bool), 1 - truth, truth)
    if columns.get("predictions") is not None:
        columns["predictions"] = np.asarray(columns["predictions"], dtype=np.int64)
    return dataset_from_columns(class_names=class_names, labels=labels, **columns)


def samples(
    labels=None,
    *,
    embeddings=None,
    encoder_id="toy",
    rows=None,
    name="toy",
    reference_rows=None,
    **columns,
) -> SampleSet:
    """Make samples, with CLIP embeddings if there are any.

    Args:
        labels: see `dataset`, as for all columns that are not named here.
        embeddings: [n, d].
        rows: those meant; all by default.
    """
    if embeddings is not None:
        embeddings = np.asarray(embeddings, dtype=np.float32)
        columns.setdefault("n", len(embeddings))
    data = dataset(labels, **columns)
    spaces = (
        {}
        if embeddings is None
        else {"clip": EmbeddingSpace(encoder_id=encoder_id, embeddings=embeddings)}
    )
    return SampleSet(
        dataset=data,
        rows=np.arange(len(data)) if rows is None else np.asarray(rows),
        spaces=spaces,
        name=name,
        reference_rows=reference_rows,
    )


def trained(features, targets, weights=1.0, *, trainer=None, is_multi_label=False, **more):
    """Train a last layer; `trainer` has the settings, and of codes the highest one tells how many classes there are."""
    from weakspot.core.dataset import Task
    from weakspot.repair.training.trainer import HeadTrainer

    if targets.ndim == 1:
        more = {"n_classes": int(targets.max()) + 1, **more}
    return HeadTrainer(**(trainer or {})).train(
        features,
        targets,
        np.full(len(features), weights) if np.isscalar(weights) else weights,
        task=Task.MULTI_LABEL if is_multi_label else Task.SINGLE_LABEL,
        **more,
    )


def planted_sampler(world, kind=None, **parts):
    """Make a sampler of small images of a planted world that keeps everything in memory; parts take the place of planted ones."""
    from weakspot.generate.search.memory_sampler import MemorySampler
    from weakspot.testing import fakes

    planted = {
        "generator": fakes.PlantedImageGenerator(side=32),
        "classifier": fakes.planted_classifier(world),
        "embedder": fakes.PlantedEmbedder(),
        "captioner": fakes.PlantedCaptioner(),
    }
    return (kind or MemorySampler)(**(planted | parts))


def slice_name(
    contrast: str, *, phrase: str = "", score: float = 1.0, describer="hand", **more
) -> SliceName:
    """Make a name of a slice."""
    return SliceName(
        phrase=phrase or contrast, contrast=contrast, score=score, describer=describer, **more
    )


def slice_of(
    rule: Rule | str | Sequence[str],
    *,
    value: bool | str = True,
    class_name="apple",
    contrast="",
    **more,
) -> FailureSlice:
    """Make a slice found by hand.

    Args:
        rule: which samples are members: a rule, a column that has the value, or ids.
        value: of the column.
        contrast: words of its only name; `names` may give others.
        more: fields of a slice.
    """
    if isinstance(rule, str):
        rule = ColumnRule(column=rule, values=(value,))
    elif isinstance(rule, Sequence):
        rule = IdRule(sample_ids=tuple(rule))
    if contrast:
        more["names"] = (slice_name(contrast),)
    return FailureSlice(
        **{"class_name": class_name, "rule": rule, "method": "hand", "found_on": USE, **more}
    )


def evidence_of(
    slice_: FailureSlice, verdict=None, *, inside=(9, 12), outside=(3, 40), q_value=0.01, **more
) -> Evidence:
    """Make what was measured of a slice: failures and samples inside and outside. A small q-value means confirmed."""
    if verdict is None:
        verdict = Verdict.CONFIRMED if q_value <= 0.05 else Verdict.NOT_CONFIRMED
    rates = [failed / n if n else 0.0 for failed, n in (inside, outside)]
    facts = {
        "slice_id": slice_.slice_id,
        "verifier": "holdout",
        "measured_on": USE,
        "n_inside": inside[1],
        "failures_inside": inside[0],
        "n_outside": outside[1],
        "failures_outside": outside[0],
        "rate_inside": rates[0],
        "rate_outside": rates[1],
        "interval_inside": INSIDE,
        "interval_outside": OUTSIDE,
        "gap": rates[0] - rates[1],
        "p_value": q_value / 2,
        "q_value": q_value,
        "n_tested": 2,
        "verdict": verdict,
    }
    return Evidence(**facts | more)


def record_of(*slices: FailureSlice, run_id="r", **more) -> RunRecord:
    """Make a run record of slices; further arguments are its fields."""
    facts = {"command": "weakspot run", "started": "2026-01-01T00:00:00Z", "seed": 0}
    return RunRecord(**{**facts, "run_id": run_id, "slices": slices, **more})


def class_finding(
    kind, class_name, sentence, *, verdict=Verdict.CONFIRMED, n_failed=0
) -> ClassFinding:
    return ClassFinding(
        kind=kind, class_name=class_name, sentence=sentence, verdict=verdict, n_failed=n_failed
    )


HERONS = {"crane": (52, 4), "gull": (52, 12), "heron": (52, 48), "owl": (52, 7)}


def heron_slice(class_name: str, words: str, column: str = "column") -> FailureSlice:
    """Make a slice of the record of herons."""
    return slice_of(
        column,
        value=words,
        class_name=class_name,
        method="attributes",
        names=(slice_name(words, phrase=f"a photo, {words}"),),
    )


def heron_record() -> RunRecord:
    """Make a run in which one class fails as a whole, because its evaluation images look unlike training."""
    night, snow = heron_slice("gull", "at night"), heron_slice("owl", "in the snow")
    return record_of(
        night,
        snow,
        run_id="20260101T100000.000000-abcdef",
        started="2026-01-01T10:00:00Z",
        settings={
            "classifier": {"name": "onnx", "options": {"path": "models/model.onnx"}},
            "verify": {"splits": ["validation"]},
            "failure": {"kind": "top-1"},
        },
        classifier=ClassifierFacts(
            n_samples=208,
            n_failed=71,
            per_class=HERONS,
            confusions={"heron": (("crane", 44), ("gull", 4)), "gull": (("owl", 12),)},
            training=(400, 0),
            counted="images",
        ),
        evidence=(
            evidence_of(night, cause=CauseFinding(cause=Cause.RARE)),
            evidence_of(snow, Verdict.TOO_FEW, q_value=1.0),
        ),
        checks=(
            PreflightCheck(check="class order", state=CheckState.OK, sentence="Names fit."),
            PreflightCheck(
                check="files",
                state=CheckState.NOTICE,
                sentence="3 of 90 files cannot be read.",
                short="3 files set aside",
            ),
        ),
        class_findings=(
            class_finding(ClassFindingKind.SHIFT, "heron", "heron looks unlike training."),
            class_finding(ClassFindingKind.WHOLE, "heron", "heron fails as a whole.", n_failed=48),
        ),
        advice=(Advice(kind=AdviceKind.LABEL, sentence="Label about 10: to_label.csv."),),
    )


def pairs(text: str) -> list[tuple[str, ...]]:
    """Return the pairs of a table of words: `left: right, left: right`."""
    return [tuple(word.strip() for word in one.split(":")) for one in text.split(",")]


def write_table(path: Path, header: Sequence[str], rows) -> Path:
    """Write a CSV table and return where it is."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


SEED = 3
PLANTED_SETTINGS = """\
[data]
source = "manifest.csv"
[classifier]
name = "planted"
[classifier.options]
problem = "rare"
strength = {share}
n_samples = {n_samples}
seed = {seed}
[embedder]
name = "planted"
"""


def planted_settings(n_samples: int, *, share: float = 0.01, seed: int = SEED) -> str:
    """Return the settings of a project of planted images."""
    return PLANTED_SETTINGS.format(share=share, n_samples=n_samples, seed=seed)


def planted_project(parent: Path, n_samples: int, *, share: float = 0.01, more: str = ""):
    """Make a project called `shapes` in a folder, whose green discs are rare in training; its samples are ingested.

    Args:
        parent: where the project's folder is made.
        share: of green ones among the discs in training.
        more: further settings.
    """
    from weakspot.project.project import Project
    from weakspot.testing.planted import plant, rare

    folder = parent / "shapes"
    folder.mkdir()
    plant(rare(share), n_samples, seed=SEED).write_images(folder)
    (folder / "weakspot.toml").write_text(planted_settings(n_samples, share=share) + more)
    project = Project.open(folder)
    project.ingest()
    return project


def project_of(folder: Path, world, manifest, *, settings=None, **more):
    """Make a project of a planted world that was written before, with its classifier and embedder; nothing is ingested."""
    from weakspot.project.project import Project
    from weakspot.run.settings import Settings
    from weakspot.testing.fakes import PlantedEmbedder, planted_classifier

    return Project.create(
        folder,
        data=str(manifest),
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
        settings=settings or Settings(),
        **more,
    )


FRUIT_SETTINGS = """\
seed = {seed}
[data]
source = "manifest.csv"
[attributes]
use_vocabulary = false
use_properties = false
columns = ["kind"]
[discover]
methods = ["attributes"]
"""


def write_fruit_table(
    folder: Path,
    *,
    green_right_every: int = 3,
    first: int = 0,
    n_samples: int = 400,
    labels: Sequence[str] = FRUIT,
    seed: int = 0,
) -> Path:
    """Write a project without images in which green apples are taken for pears, and return its folder.

    Args:
        folder: made if need be.
        green_right_every: one of so many green apples is right, so that 1 means a model without a fault.
        first: number of the first sample; samples of different numbers are different samples.
        labels: the class that has green ones, and the other.
        seed: of the project.
    """
    apple, pear = labels
    folder.mkdir(exist_ok=True)
    rows = []
    for number in range(first, first + n_samples):
        label = (apple, pear)[number % 2]
        kind = "green" if number % 4 == 0 else "red" if label == apple else "yellow"
        is_right = kind != "green" or (number // 4) % green_right_every == 0
        split = "validation" if number % 20 < 14 else "test"
        rows.append([f"fruit-{number}", label, split, kind, label if is_right else pear])
    write_table(folder / "manifest.csv", ["key", "label", "split", "kind", "prediction"], rows)
    (folder / "weakspot.toml").write_text(FRUIT_SETTINGS.format(seed=seed))
    return folder


COLOURS = ("red", "green", "blue", "grey", "white")
IN_TRAINING = (0.4, 0.05, 0.25, 0.2, 0.1)
ELSEWHERE = (0.3, 0.2, 0.2, 0.15, 0.15)
THINGS = ("bench", "tree", "car", "fence", "lamp", "box", "stone", "bag", "sign", "rope")
PLACES = ("street", "beach", "garden", "bridge", "field", "hill", "river", "yard")


def write_captioned_table(
    path: Path, *, n_rows: int = 700, unlabelled: float = 0.3, is_bad: bool = True
) -> Path:
    """Write a table with captions in which green cats and dogs in the rain are mostly wrong, and return where it is.

    Args:
        path: of the table.
        n_rows: rows of each of the splits train, validation and pool.
        unlabelled: share of pool rows without a label.
        is_bad: whether they are; otherwise all rows are wrong equally often.
    """
    random = np.random.default_rng(5)
    rows = []
    for split in ("train", "validation", "pool"):
        for number in range(n_rows):
            label = str(random.choice(["cat", "dog"]))
            shares = IN_TRAINING if split == "train" else ELSEWHERE
            colour = str(random.choice(COLOURS, p=shares))
            is_wet = random.random() < 0.15
            caption = f"a {label} {'in the rain ' if is_wet else ''}near a {random.choice(THINGS)} on a {random.choice(PLACES)}"
            is_hard = (colour == "green") if label == "cat" else is_wet
            wrong = random.random() < (0.75 if is_hard and is_bad else 0.08)
            prediction = {"cat": "dog", "dog": "cat"}[label] if wrong else label
            truth = label if split != "pool" or random.random() >= unlabelled else ""
            rows.append([f"{split}-{number}", split, truth, prediction, colour, caption])
    header = ["sample_id", "split", "label", "prediction", "colour", "caption"]
    return write_table(path, header, rows)


def write_image_folder(folder: Path, classes: Mapping[str, int], n_each: int) -> Path:
    """Write a folder of images for each class, no two alike; `classes` says how green those of a class are."""
    from PIL import Image

    for name, green in classes.items():
        (folder / name).mkdir(parents=True)
        for number in range(n_each):
            Image.new("RGB", (8, 6), (50 + number * 50, green, 7)).save(
                folder / name / f"{number}.png"
            )
    return folder
