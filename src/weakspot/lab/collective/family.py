"""Several projects on (mostly) the same images, seen as a family of classifiers that can be retrained."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.compare.comparison import failure_iou
from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError, StoreError
from weakspot.core.evidence import Share
from weakspot.core.failures import class_problems, describe_criterion
from weakspot.core.samples import SampleSet
from weakspot.core.training_sets import TrainingSelection
from weakspot.pipeline.preparation import FEATURES
from weakspot.project.project import Project
from weakspot.repair.bench import RepairBench
from weakspot.repair.measure.predictions import is_measurable

PLAIN = "plain"


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnRepair:
    """What a model's own repair trains on.

    Args:
        selection: the samples and their weights.
        obstacle: why it is retraining alone, with nothing to add to a set; empty if it is a repair.
    """

    selection: TrainingSelection
    obstacle: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class FamilyMember:
    """One project of a family.

    Args:
        name: of its folder.
        bench: its material, trainer and measurement.
    """

    name: str
    bench: RepairBench

    @classmethod
    def of(cls, project: Project) -> "FamilyMember":
        """Return a project at its newest verified run.

        Raises:
            StoreError: if there is no verified run.
            ModelError: if the last layer of the classifier is not known.
            NotEnoughDataError: if there are no training or test samples.
        """
        name = project_name(project)
        record, prepared = project.repairable(_verified_run(project, name))
        refuse_unrepairable(name, prepared.samples)
        slices = [found for found in record.findings() if not found.rule.reads_predictions]
        criterion = project.settings.failure.criterion()
        return cls(
            name=name,
            bench=RepairBench.of(prepared, project.settings, criterion, slices, record.evidence),
        )

    @property
    def samples(self) -> SampleSet:
        return self.bench.samples

    @property
    def dataset(self) -> Dataset:
        return self.bench.samples.dataset

    @cached_property
    def allowed(self) -> IntArray:
        """Return the rows that may be trained on: labelled, with features."""
        material = self.bench.material
        parts = [
            part.rows
            for part in (material.training, material.pool, material.synthetic)
            if part is not None
        ]
        rows = np.unique(np.concatenate(parts))
        return rows[self.dataset.is_labelled[rows]]

    @cached_property
    def used(self) -> set[str]:
        """Return the images that were trained on or may be, or that slices were found or confirmed on."""
        rows = [self.dataset.rows_of(Split.TRAIN, Split.POOL, Split.SYNTHETIC)]
        rows += [half.rows for pair in self.bench.pairs for half in pair]
        return set(self.dataset.content_hashes(np.unique(np.concatenate(rows))))

    def half(self, number: int) -> SampleSet:
        """Return the discovery half (0) or the confirmation half (1), of samples whose features and predictions are known."""
        half = self.bench.pairs[0][number]
        is_known = np.isfinite(np.asarray(self.samples.space(FEATURES).embeddings[half.rows])).all(
            axis=1
        ) & is_measurable(half)
        return half.only(half.rows[is_known])

    def own_repair(self, method: str) -> OwnRepair:
        """Return what the model's own repair trains on; retraining alone, and why, where there is nothing else to do."""
        if not self.bench.slices:
            return self._retrain("No slice of this model was confirmed")
        try:
            selection = self.bench.selection(method)
        except NotEnoughDataError as error:
            return self._retrain(error.what.rstrip("."))
        n_waiting = len(self.bench.unlabelled(selection))
        if n_waiting:
            return self._retrain(
                f"{n_waiting} pool samples that {method} chooses have no label (see `weakspot repair`)"
            )
        return OwnRepair(selection=selection)

    def _retrain(self, why: str) -> OwnRepair:
        return OwnRepair(
            selection=self.bench.selection(PLAIN, {}),
            obstacle=f"{why}; the model's own repair is retraining alone.",
        )


def project_name(project: Project) -> str:
    return project.folder.resolve().name


def _verified_run(project: Project, name: str) -> str:
    runs = project.store.runs
    for run_id in reversed(runs.run_ids()):
        record = runs.load(run_id)
        if record.evidence or any(stage.stage == "verify" for stage in record.stages):
            return run_id
    raise StoreError(
        f"The project {name} has no verified run.",
        where=str(project.folder),
        fix="Run `weakspot run` there first.",
    )


def refuse_unrepairable(name: str, samples: SampleSet) -> None:
    """Refuse a project whose last layer cannot be retrained, or not measured afterwards.

    Raises:
        ModelError: if the last layer of the classifier is not known.
        NotEnoughDataError: if there are no training or test samples.
    """
    if FEATURES not in samples.spaces:
        raise ModelError(
            "The features under the classifier's last layer are not known, so it cannot be retrained here.",
            where=name,
            fix="Give a classifier whose last layer can be read (ONNX, torch, timm, scikit-learn), or embeddings of its features.",
        )
    for split in (Split.TRAIN, Split.TEST):
        if not len(samples.dataset.rows_of(split)):
            raise NotEnoughDataError(
                f"The project {name} has no {split.value} samples.",
                fix="Set [data] fractions or splits.",
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """Projects on (mostly) the same images.

    Args:
        members: two or more, of the same classes.
    """

    members: tuple[FamilyMember, ...]

    @classmethod
    def of(cls, members: Sequence[FamilyMember]) -> "Family":
        """Return the family of several projects.

        Raises:
            DataError: if they have other classes or tasks.
        """
        first = members[0].dataset
        for member in members[1:]:
            if (
                set(member.dataset.class_names) != set(first.class_names)
                or member.dataset.task is not first.task
            ):
                raise DataError(
                    f"The projects {members[0].name} and {member.name} have different classes or tasks.",
                    given=(sorted(first.class_names)[:5], sorted(member.dataset.class_names)[:5]),
                    fix="Set [data] class_names and task alike.",
                )
        return cls(members=tuple(members))

    @cached_property
    def shared_ids(self) -> frozenset[str]:
        """Return the test samples of all models that none of them was trained, chosen or looked at on."""
        used = set[str]().union(*[member.used for member in self.members])
        kept = []
        for member in self.members:
            rows = member.bench.measured.rows
            pairs = zip(
                member.dataset.sample_ids(rows), member.dataset.content_hashes(rows), strict=True
            )
            kept.append({sample_id for sample_id, content in pairs if content not in used})
        shared = frozenset(set.intersection(*kept))
        if not shared:
            raise DataError(
                "The projects share no labelled test sample that none of them was trained, chosen or looked at on.",
                given=[member.name for member in self.members],
                fix="Repair projects together that have the same images in the same splits.",
            )
        return shared

    def measured(self, member: FamilyMember) -> SampleSet:
        return _only(member.bench.measured, lambda sample_id, _: sample_id in self.shared_ids)

    def held_out(self, member: FamilyMember, sources: Sequence[FamilyMember]) -> SampleSet:
        """Return the confirmation samples of a model, without images that slices behind the repair set were found on."""
        looked_at = set[str]()
        for other in sources:
            looked_at.update(other.dataset.content_hashes(other.bench.pairs[0][0].rows))
        return _only(member.half(1), lambda _, content: content not in looked_at)

    def overlaps(self) -> tuple[tuple[float, ...], ...]:
        """Return the share of common failures of every two models before any repair."""
        return tuple(tuple(float(value) for value in line) for line in failure_iou(self._failed))

    def common(self) -> Share:
        """Return, of the samples that any model fails on before any repair, those that all fail on."""
        failed = np.stack(self._failed)
        return Share.of(int(failed.all(axis=0).sum()), int(failed.any(axis=0).sum()))

    @cached_property
    def _failed(self) -> list[BoolArray]:
        """Return of every model which of the shared samples it fails on."""
        failed = []
        for member in self.members:
            has_failed = dict.fromkeys(sorted(self.shared_ids), False)
            for problem in class_problems(
                member.dataset, self.measured(member).rows, member.bench.criterion
            ):
                has_failed.update(
                    dict.fromkeys(member.dataset.sample_ids(problem.rows[problem.failed]), True)
                )
            failed.append(np.array(list(has_failed.values()), dtype=np.bool_))
        return failed

    def notes(self) -> list[str]:
        criteria = {describe_criterion(member.bench.criterion) for member in self.members}
        return (
            [f"The projects count different things as failures: {'; '.join(sorted(criteria))}."]
            if len(criteria) > 1
            else []
        )


def _only(samples: SampleSet, is_kept: Callable[[str, str], bool]) -> SampleSet:
    rows, dataset = samples.rows, samples.dataset
    pairs = zip(dataset.sample_ids(rows), dataset.content_hashes(rows), strict=True)
    return samples.only(rows[np.array([is_kept(*pair) for pair in pairs], dtype=np.bool_)])
