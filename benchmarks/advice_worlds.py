"""Planted worlds for "how many to label": a kind of image that training hardly has, a real last layer, and labels that can be had."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.class_findings import ClassFinding, ClassFindingKind
from weakspot.core.dataset import Task, dataset_from_columns
from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.heads import Head
from weakspot.core.rules import ColumnRule
from weakspot.core.run import RunRecord
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.repair.head_training import HeadTrainer

LATENT, WIDTH = 24, 96
PENALTIES = (1e-4, 1e-3, 1e-2)
SPLITS = ("train", "validation", "test", "pool")


@dataclass(frozen=True, kw_only=True, eq=False)
class AdviceWorld:
    """One world.

    Args:
        samples: labels of the pool are hidden.
        truth: the class of every row, hidden ones too.
        is_kind: which rows are of the kind.
        head: the last layer that was trained.
        penalty: with which it was trained.
        record: a run with the finding.
        can_help: whether labels can help in this world at all.
        form: `class` or `slice`.
    """

    samples: SampleSet
    truth: np.ndarray
    is_kind: np.ndarray
    head: Head
    penalty: float
    record: RunRecord
    can_help: bool
    form: str


def plant_world(seed: int) -> AdviceWorld:
    rng = np.random.default_rng(seed)
    form = ("class", "slice")[seed % 2]
    can_help = bool(rng.random() < 0.75)
    n_classes = int(rng.integers(3, 7))
    n_known = int(rng.choice([0, 1, 3, 10]))
    sizes = {
        "train": int(rng.integers(60, 200)),
        "validation": int(rng.integers(25, 60)),
        "test": int(rng.integers(40, 100)),
        "pool": int(rng.integers(40, 120)),
    }
    n_kind = {
        "train": n_known,
        "validation": int(rng.integers(24, 90)),
        "test": int(rng.integers(30, 120)),
        "pool": int(rng.integers(20, 80)),
    }
    means = rng.normal(size=(n_classes, LATENT)) * 0.9
    other = int(rng.integers(1, n_classes))
    nearness = rng.uniform(0.5, 1.0) if can_help else 1.0
    apart = rng.normal(size=LATENT) * (rng.uniform(0.25, 0.9) if can_help else 0.0)
    kind_mean = (1 - nearness) * means[0] + nearness * means[other] + apart
    latent, truth, kinds, splits = [], [], [], []
    for split in SPLITS:
        for code in range(n_classes):
            only_kind = form == "class" and code == 0 and split != "train"
            n_usual = 0 if only_kind else sizes[split]
            latent.append(means[code] + rng.normal(size=(n_usual, LATENT)))
            truth += [code] * n_usual
            kinds += [False] * n_usual
            splits += [split] * n_usual
        latent.append(kind_mean + rng.normal(size=(n_kind[split], LATENT)))
        truth += [0] * n_kind[split]
        kinds += [True] * n_kind[split]
        splits += [split] * n_kind[split]
    return _finish(
        rng,
        np.concatenate(latent),
        np.array(truth),
        np.array(kinds),
        splits,
        form,
        can_help,
        n_classes,
    )


def _finish(rng, latent, truth, kinds, splits, form, can_help, n_classes):  # noqa: ANN001, ANN202, PLR0913, PLR0917
    features = _view(rng, latent)
    clip = _view(rng, latent)
    is_train = np.array(splits) == "train"
    penalty = float(rng.choice(PENALTIES))
    head = (
        HeadTrainer(penalty=penalty)
        .train(
            features[is_train],
            truth[is_train],
            np.ones(is_train.sum()),
            task=Task.SINGLE_LABEL,
            n_classes=n_classes,
        )
        .head
    )
    probabilities = head.probabilities(features)
    names = [f"class {code}" for code in range(n_classes)]
    dataset = dataset_from_columns(
        class_names=names,
        labels=np.where(np.array(splits) == "pool", -1, truth),
        splits=splits,
        metadata={"odd": kinds.tolist()},
        predictions=probabilities.argmax(axis=1),
        probabilities=probabilities,
    )
    spaces = {
        "features": EmbeddingSpace(encoder_id="features", embeddings=features),
        "clip": EmbeddingSpace(encoder_id="clip", embeddings=clip),
    }
    samples = SampleSet(dataset=dataset, rows=np.arange(len(dataset)), spaces=spaces)
    return AdviceWorld(
        samples=samples,
        truth=truth,
        is_kind=kinds,
        head=head,
        penalty=penalty,
        record=_record(form, samples, kinds),
        can_help=can_help,
        form=form,
    )


def _view(rng, latent):  # noqa: ANN001, ANN202
    mixing = rng.normal(size=(LATENT, WIDTH)) / np.sqrt(LATENT)
    return (np.maximum(latent @ mixing, -0.5) + 0.3 * rng.normal(size=(len(latent), WIDTH))).astype(
        np.float32
    )


def _record(form, samples, kinds):  # noqa: ANN001, ANN202
    record = RunRecord(run_id="world", command="", started="", seed=0)
    dataset = samples.dataset
    rows = np.flatnonzero(kinds & (dataset.splits == 1))
    n_failed = int((dataset.predictions[rows] != 0).sum())
    if form == "class":
        finding = ClassFinding(
            kind=ClassFindingKind.WHOLE,
            class_name="class 0",
            verdict=Verdict.CONFIRMED,
            sentence="planted",
            n_samples=len(rows),
            n_failed=n_failed,
        )
        return record.model_copy(update={"class_findings": (finding,)})
    found = FailureSlice(
        class_name="class 0",
        rule=ColumnRule(column="odd", values=(True,)),
        method="planted",
        found_on=DataUse.nothing(),
    )
    half = Interval(low=0.0, high=1.0)
    rate = n_failed / max(len(rows), 1)
    entry = Evidence(
        slice_id=found.slice_id,
        verifier="planted",
        measured_on=DataUse.nothing(),
        n_inside=len(rows),
        failures_inside=n_failed,
        n_outside=1,
        failures_outside=0,
        rate_inside=rate,
        rate_outside=0.0,
        interval_inside=half,
        interval_outside=half,
        gap=rate,
        p_value=0.0,
        q_value=0.0,
        n_tested=1,
        verdict=Verdict.CONFIRMED,
    )
    return record.model_copy(update={"slices": (found,), "evidence": (entry,)})
