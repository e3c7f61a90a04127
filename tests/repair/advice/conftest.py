"""Small worlds with a real last layer: herons that stand in reeds, which training hardly has, are taken for cranes."""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.build import evidence_of, slice_of

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import Task, dataset_from_columns
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Interval, Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.heads import Head
from weakspot.core.repairs import GroupChange, RepairArm, RepairPlan, RepairResult
from weakspot.core.run import RunRecord
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse
from weakspot.repair.advice.kinds import kinds_of
from weakspot.repair.bench import RepairBench
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.preparation import EmbedResult, Prepared
from weakspot.run.settings import Settings

CLASSES = ("heron", "crane", "gull")
WIDTH = 16
CRITERION = FailureCriterion()


@dataclass(frozen=True)
class OwnHead:
    """A classifier of which only the last layer is known."""

    head: Head
    class_names: tuple[str, ...] = CLASSES
    classifier_id: str = "own head"


@dataclass(frozen=True, eq=False)
class World:
    prepared: Prepared
    record: RunRecord
    settings: Settings
    truth: np.ndarray
    in_reeds: np.ndarray

    @property
    def samples(self):
        return self.prepared.samples

    @property
    def dataset(self):
        return self.prepared.samples.dataset

    @property
    def bench(self):
        return RepairBench(self.prepared, self.settings)

    def kind(self):
        return kinds_of(self.record, self.bench)[0]


def make_world(
    *,
    n_known=0,
    n_pool=20,
    form="class",
    is_learnable=True,
    with_features=True,
    are_pool_labels_known=False,
    with_test=True,
    n_evaluated=40,
    seed=0,
):
    """Plant a world; `form` is whether the finding is a class, or a slice by the column `reeds`."""
    rng = np.random.default_rng(seed)
    means = 2.0 * np.eye(WIDTH)[:3]
    reeds = means[1] + (1.8 * np.eye(WIDTH)[5] if is_learnable else 0.0)
    parts = []
    for split, n_usual, n_reeds in (
        ("train", 60, n_known),
        ("validation", 40, n_evaluated),
        ("test", 40 if with_test else 0, 40 if with_test else 0),
        ("pool", 30 if n_pool else 0, n_pool),
    ):
        for code in range(3):
            usual = 0 if form == "class" and code == 0 and split != "train" else n_usual
            parts += [(split, code, False, means[code])] * usual
        parts += [(split, 0, True, reeds)] * n_reeds
    splits, truth, in_reeds, centres = (list(column) for column in zip(*parts, strict=True))
    embeddings = (np.array(centres) + rng.normal(size=(len(parts), WIDTH)) * 0.7).astype(np.float32)
    truth, in_reeds = np.array(truth), np.array(in_reeds)
    is_train = np.array(splits) == "train"
    head = HeadTrainer(penalty=1e-2).train(
        embeddings[is_train],
        truth[is_train],
        np.ones(is_train.sum()),
        task=Task.SINGLE_LABEL,
        n_classes=3,
    )
    probabilities = head.head.probabilities(embeddings)
    hidden = np.zeros(len(truth), bool) if are_pool_labels_known else np.array(splits) == "pool"
    dataset = dataset_from_columns(
        class_names=CLASSES,
        labels=np.where(hidden, -1, truth),
        splits=splits,
        locations=[f"/photos/{number}.jpg" for number in range(len(parts))],
        metadata={"reeds": in_reeds.tolist()},
        predictions=probabilities.argmax(axis=1),
        probabilities=probabilities,
    )
    space = EmbeddingSpace(encoder_id="planted", embeddings=embeddings)
    spaces = {"clip": space, **({"features": space} if with_features else {})}
    samples = SampleSet(dataset=dataset, rows=np.arange(len(dataset)), spaces=spaces)
    prepared = Prepared(
        samples=samples,
        assistants=NO_ASSISTANTS,
        embedder=None,
        classifier=OwnHead(head.head),
        summary=EmbedResult(),
        inputs={},
    )
    rows = np.flatnonzero(in_reeds & (np.array(splits) == "validation"))
    n_failed = int((dataset.predictions[rows] != 0).sum())
    record = RunRecord(run_id="planted", command="", started="", seed=0)
    finding = class_record if form == "class" else slice_record
    return World(prepared, finding(record, len(rows), n_failed), Settings(), truth, in_reeds)


def class_record(record, n_samples, n_failed):
    finding = ClassFinding(
        kind=ClassFindingKind.WHOLE,
        class_name="heron",
        verdict=Verdict.CONFIRMED,
        sentence="heron fails as a whole",
        n_samples=n_samples,
        n_failed=n_failed,
        words_here=("standing in reeds",),
        words_there=("flying",),
    )
    return record.model_copy(update={"class_findings": (finding,)})


def slice_record(record, n_samples, n_failed):
    found = slice_of("reeds", class_name="heron")
    entry = evidence_of(found, inside=(n_failed, n_samples), outside=(0, 40))
    return record.model_copy(update={"slices": (found,), "evidence": (entry,)})


@pytest.fixture(scope="session")
def world():
    """Herons fail as a whole; training has none in reeds, the pool has twenty without a label."""
    return make_world()


@pytest.fixture(scope="session")
def sliced():
    """The same as a slice of a class that is right otherwise; training has three in reeds."""
    return make_world(form="slice", n_known=3)


@pytest.fixture
def criterion():
    return CRITERION


@pytest.fixture
def plant():
    return make_world


@pytest.fixture
def make_change():
    wide = Interval(low=0.0, high=1.0)

    def build(group, kind, gained, lost=0, p_value=0.01):
        return GroupChange(
            group=group,
            kind=kind,
            n_samples=40,
            right_before=4,
            right_after=4 + gained - lost,
            gained=gained,
            lost=lost,
            interval_before=wide,
            interval_after=wide,
            p_value=p_value,
        )

    return build


@pytest.fixture
def make_result():
    def build(method, *changes, slice_ids=(), n_added=0, is_baseline=False):
        arm = RepairArm(
            arm=method,
            is_baseline=is_baseline,
            note="",
            n_trained=9,
            changes=changes,
            n_added=n_added,
        )
        plan = RepairPlan(slice_ids=slice_ids, repairer=method)
        return RepairResult(plan=plan, measured_on=DataUse.nothing(), arms=(arm,))

    return build
