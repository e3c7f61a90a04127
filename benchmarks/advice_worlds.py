"""Worlds for "how many to label": a kind of image that training hardly has, a real last layer, and labels that can be had."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import SPLIT_ORDER, Split, Task, dataset_from_columns
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Evidence, Interval, Verdict
from weakspot.core.heads import Head
from weakspot.core.rules import ColumnRule
from weakspot.core.run import RunRecord
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.preparation import EmbedResult, Prepared

LATENT, WIDTH = 24, 96
PENALTIES = (1e-4, 1e-3, 1e-2)
FORMS = ("class", "slice")
TRAIN, VALIDATION, TEST, POOL = "train", "validation", "test", "pool"


@dataclass(frozen=True)
class OwnHead:
    """A classifier of which only the last layer is known."""

    head: Head
    class_names: tuple[str, ...]
    classifier_id: str = "own head"


@dataclass(frozen=True, kw_only=True, eq=False)
class AdviceWorld:
    """One world.

    Args:
        name: what it is called.
        prepared: samples, and the last layer; labels of the pool are hidden.
        record: a run with the finding.
        truth: the class of every row, hidden ones too.
        is_kind: which rows are of the kind; its class is `code`.
        code: the class.
        penalty: with which the layer was trained.
        can_help: whether the kind can be told from other classes at all.
    """

    name: str
    prepared: Prepared
    record: RunRecord
    truth: IntArray
    is_kind: BoolArray
    code: int
    penalty: float
    can_help: bool

    @property
    def samples(self) -> SampleSet:
        return self.prepared.samples

    def rows(self, split: Split) -> IntArray:
        return self.samples.dataset.rows_of(split)

    @property
    def features(self) -> FloatArray:
        return np.asarray(self.samples.spaces["features"].embeddings)


def planted_world(seed: int) -> AdviceWorld:
    """Return a world of Gaussian kinds; in one of four the kind is just like another class, so that no label can help."""
    rng = np.random.default_rng(seed)
    form, can_help = FORMS[seed % 2], bool(rng.random() < 0.75)
    n_classes, n_known = int(rng.integers(3, 7)), int(rng.choice([0, 1, 3, 10]))
    usual = {TRAIN: (60, 200), VALIDATION: (25, 60), TEST: (40, 100), POOL: (40, 120)}
    of_kind = {VALIDATION: (24, 90), TEST: (30, 120), POOL: (20, 80)}
    means = rng.normal(size=(n_classes, LATENT)) * 0.9
    other = int(rng.integers(1, n_classes))
    nearness = rng.uniform(0.5, 1.0) if can_help else 1.0
    apart = rng.normal(size=LATENT) * (rng.uniform(0.25, 0.9) if can_help else 0.0)
    kind_mean = (1 - nearness) * means[0] + nearness * means[other] + apart
    latent: list[FloatArray] = []
    marks: list[tuple[str, int, bool]] = []
    for split, bounds in usual.items():
        n_usual = int(rng.integers(*bounds))
        n_kind = n_known if split == TRAIN else int(rng.integers(*of_kind[split]))
        for code in range(n_classes):
            n_here = 0 if form == "class" and code == 0 and split != TRAIN else n_usual
            latent.append(means[code] + rng.normal(size=(n_here, LATENT)))
            marks += [(split, code, False)] * n_here
        latent.append(kind_mean + rng.normal(size=(n_kind, LATENT)))
        marks += [(split, 0, True)] * n_kind
    views = [_view(rng, np.concatenate(latent)) for _ in range(2)]
    penalty = float(rng.choice(PENALTIES))
    return _world(f"planted {seed}", form, views, marks, code=0, penalty=penalty, can_help=can_help)


def _view(rng: np.random.Generator, latent: FloatArray) -> FloatArray:
    mixing = rng.normal(size=(LATENT, WIDTH)) / np.sqrt(LATENT)
    noise = 0.3 * rng.normal(size=(len(latent), WIDTH))
    return (np.maximum(latent @ mixing, -0.5) + noise).astype(np.float32)


def photograph_worlds(work: Path, *, seed: int) -> list[AdviceWorld]:
    """Return a world for every kind of apple, pear and melon, which training hardly has; features are the embedded default's."""
    from weakspot.project.demo import groceries

    photographs = groceries()
    embeddings = _embedded(work, [photo.data for photo in photographs])
    classes = sorted({photo.coarse for photo in photographs})
    codes = np.array([classes.index(photo.coarse) for photo in photographs])
    fine = np.array([photo.fine for photo in photographs])
    several = [
        (code, kind)
        for code in range(len(classes))
        for kind in sorted(set(fine[codes == code]))
        if len(set(fine[codes == code])) > 1
    ]
    found = []
    for number, (code, kind) in enumerate(several):
        rng = np.random.default_rng([seed, number])
        form, n_known = FORMS[number % 2], int(rng.choice([0, 1, 3]))
        is_kind = fine == kind
        splits = rng.choice([TRAIN, VALIDATION, TEST, POOL], len(codes), p=[0.5, 0.2, 0.2, 0.1])
        own = rng.permutation(np.flatnonzero(is_kind))
        splits[own] = rng.choice([VALIDATION, TEST, POOL], len(own), p=[0.4, 0.35, 0.25])
        splits[own[:n_known]] = TRAIN
        kept = is_kind | (codes != code) | (splits == TRAIN) | (form == "slice")
        marks = list(zip(splits[kept], codes[kept].tolist(), is_kind[kept].tolist(), strict=True))
        views = [embeddings[kept], embeddings[kept]]
        name, penalty = f"photographs {seed}, {kind}", float(rng.choice(PENALTIES))
        found.append(_world(name, form, views, marks, code=code, penalty=penalty, can_help=True))
    return found


def _embedded(work: Path, images: list[bytes]) -> FloatArray:
    from weakspot.data.images import decode_image
    from weakspot.models.embedded.encoder import EmbeddedDefault

    path = work / "groceries.npy"
    if not path.exists():
        embedder = EmbeddedDefault()
        side = embedder.image_side
        parts = [
            embedder.embed_prepared([embedder.prepare(decode_image(data, image_side=side).image)])
            for data in images
        ]
        work.mkdir(parents=True, exist_ok=True)
        np.save(path, np.concatenate(parts))
    return np.asarray(np.load(path), dtype=np.float32)


def _world(
    name: str,
    form: str,
    views: list[FloatArray],
    marks: list[tuple[str, int, bool]],
    *,
    code: int,
    penalty: float,
    can_help: bool,
) -> AdviceWorld:
    splits, labels, kinds = (list(column) for column in zip(*marks, strict=True))
    truth, is_kind = np.array(labels), np.array(kinds)
    is_train, is_pool = np.array(splits) == TRAIN, np.array(splits) == POOL
    names = tuple(f"class {number}" for number in range(int(truth.max()) + 1))
    head = HeadTrainer(penalty=penalty).train(
        views[0][is_train],
        truth[is_train],
        np.ones(is_train.sum()),
        task=Task.SINGLE_LABEL,
        n_classes=len(names),
    )
    probabilities = head.head.probabilities(views[0])
    dataset = dataset_from_columns(
        class_names=names,
        labels=np.where(is_pool, -1, truth),
        splits=splits,
        metadata={"kind": kinds},
        predictions=probabilities.argmax(axis=1),
        probabilities=probabilities,
    )
    spaces = {
        space: EmbeddingSpace(encoder_id=space, embeddings=view)
        for space, view in zip(("features", "clip"), views, strict=True)
    }
    samples = SampleSet(dataset=dataset, rows=np.arange(len(dataset)), spaces=spaces)
    prepared = Prepared(
        samples=samples,
        assistants=NO_ASSISTANTS,
        embedder=None,
        classifier=OwnHead(head.head, names),  # type: ignore[arg-type]
        summary=EmbedResult(),
        inputs={},
    )
    return AdviceWorld(
        name=f"{name}, {form}",
        prepared=prepared,
        record=_record(form, samples, is_kind, code),
        truth=truth,
        is_kind=is_kind,
        code=code,
        penalty=penalty,
        can_help=can_help,
    )


def _record(form: str, samples: SampleSet, is_kind: BoolArray, code: int) -> RunRecord:
    record = RunRecord(run_id="world", command="", started="", seed=0)
    dataset = samples.dataset
    rows = np.flatnonzero(is_kind & (dataset.splits == SPLIT_ORDER.index(Split.VALIDATION)))
    predictions = np.asarray(dataset.predictions)
    n_failed, name = int((predictions[rows] != code).sum()), dataset.class_names[code]
    if form == "class":
        finding = ClassFinding(
            kind=ClassFindingKind.WHOLE,
            class_name=name,
            verdict=Verdict.CONFIRMED,
            sentence="planted",
            n_samples=len(rows),
            n_failed=n_failed,
        )
        return record.model_copy(update={"class_findings": (finding,)})
    slice_ = FailureSlice(
        class_name=name,
        rule=ColumnRule(column="kind", values=(True,)),
        method="planted",
        found_on=DataUse.nothing(),
    )
    rate, wide = n_failed / max(len(rows), 1), Interval(low=0.0, high=1.0)
    entry = Evidence(
        slice_id=slice_.slice_id,
        verifier="planted",
        measured_on=DataUse.nothing(),
        n_inside=len(rows),
        failures_inside=n_failed,
        n_outside=1,
        failures_outside=0,
        rate_inside=rate,
        rate_outside=0.0,
        interval_inside=wide,
        interval_outside=wide,
        gap=rate,
        p_value=0.0,
        q_value=0.0,
        n_tested=1,
        verdict=Verdict.CONFIRMED,
    )
    return record.model_copy(update={"slices": (slice_,), "evidence": (entry,)})
