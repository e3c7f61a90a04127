"""Comparing the classifiers of several projects on the samples that they share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Split, Task, several_to_a_group
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.failures import Side, class_problems, predicted_classes
from weakspot.core.questions import QuestionKeys
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.project.comparison import (
    Comparison,
    SlicePredictions,
    compare_failures,
    comparison_page,
)
from weakspot.project.project import Project
from weakspot.run.halves import split_in_halves, used_rows
from weakspot.run.ledger import AskedData, Ledger
from weakspot.run.reporting import written
from weakspot.run.verdicts import ledger_at

MIN_MODELS = 2
PAGE, DATA = "comparison.html", "comparison.json"


SharedPredictions = tuple[tuple[str, ...], dict[str, BoolArray], dict[str, tuple[str, ...]]]
"""The samples that classifiers share, on which of them each fails, and what each answers, by name of the classifier; an empty text
where a sample has several labels."""


def compare_projects(
    folders: Sequence[Path],
    *,
    alpha: float = 0.05,
    progress: StageProgress = no_stage_progress,
    watch: Callable[[SharedPredictions], None] | None = None,
) -> Comparison:
    """Compare the classifiers of two or more projects; each is named after its folder.

    Args:
        folders: the projects.
        alpha: the error rate.
        progress: told how far it is.
        watch: told what each says of every shared sample.

    Raises:
        ConfigError: if fewer than two projects are given, or two of the same name.
        DataError: if they share no evaluation sample or disagree on the classes.
    """
    names = [folder.resolve().name for folder in folders]
    if len(names) < MIN_MODELS or len(set(names)) != len(names):
        raise ConfigError(
            "A comparison needs two or more project folders with different names.",
            given=[str(one) for one in folders],
        )
    models = [
        _Model(name=name, project=Project.open(folder, progress=progress))
        for name, folder in zip(names, folders, strict=True)
    ]
    _refuse_other_classes(models)
    shared = set.intersection(*[set(model.row_of) for model in models])
    if not shared:
        raise DataError(
            "The projects share no labelled validation or test sample.",
            given=names,
            fix="Compare projects on the same images.",
        )
    ids = tuple(sorted(shared))
    failed = {model.name: model.failed(ids) for model in models}
    if watch is not None:
        answers = {model.name: model.answers(ids) for model in models}
        watch((ids, failed, answers))
    slices = [
        predictions for model in models for predictions in model.slice_predictions(models, shared)
    ]
    notes = [
        f"{model.name} has no verified run, so no slices of it were compared."
        for model in models
        if not model.confirmed
    ]
    ledgers = {
        (owner.name, model.name): owner.ledger_about(model, alpha)
        for owner in models
        if owner.confirmed
        for model in models
    }
    return compare_failures(failed, slices, notes=notes, ledgers=ledgers)


def write_comparison(comparison: Comparison, folder: Path) -> tuple[Path, ...]:
    """Write the page and the record of a comparison into a folder; the page comes first."""
    data = comparison.model_dump_json(indent=2)
    return written(folder, {PAGE: comparison_page(comparison).encode(), DATA: data.encode()})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Model:
    """A project, seen as one classifier's predictions on its evaluation samples."""

    name: str
    project: Project

    @cached_property
    def samples(self) -> SampleSet:
        return self.project.samples(self.record)

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Row of every evaluation sample with label and prediction, by sample id."""
        dataset = self.samples.dataset
        rows = dataset.rows_of(Split.VALIDATION, Split.TEST)
        problems = class_problems(dataset, rows, self.project.settings.failure.criterion())
        known = (
            np.unique(np.concatenate([problem.rows for problem in problems]))
            if problems
            else rows[:0]
        )
        return dict(zip(dataset.sample_ids(known), known.tolist(), strict=True))

    @cached_property
    def record(self) -> RunRecord | None:
        return self.project.store.runs.latest()

    @property
    def confirmed(self) -> tuple[FailureSlice, ...]:
        return self.record.findings() if self.record is not None else ()

    @cached_property
    def asked(self) -> AskedData:
        """Return the evaluation samples with this classifier's predictions."""
        return AskedData.of(self.samples.dataset, used_rows(self.samples, self.project.settings))

    def ledger_about(self, model: "_Model", alpha: float) -> Ledger:
        """Return what this project's samples were asked about a classifier."""
        own = ledger_at(self.project.store, model.asked, self.project.settings)
        return replace(own, alpha=alpha)

    def failed(self, sample_ids: Sequence[str]) -> BoolArray:
        rows = np.array([self.row_of[one] for one in sample_ids], dtype=np.int64)
        has_failed = np.zeros(len(self.samples.dataset), dtype=np.bool_)
        for problem in class_problems(
            self.samples.dataset, np.sort(rows), self.project.settings.failure.criterion()
        ):
            has_failed[problem.rows[problem.failed]] = True
        return has_failed[rows]

    def answers(self, sample_ids: Sequence[str]) -> tuple[str, ...]:
        dataset = self.samples.dataset
        if dataset.task is not Task.SINGLE_LABEL:
            return ("",) * len(sample_ids)
        rows = np.array([self.row_of[one] for one in sample_ids], dtype=np.int64)
        names = (*dataset.class_names, "")
        return tuple(names[code] for code in predicted_classes(dataset, rows).tolist())

    def failed_in(self, found: FailureSlice, rows: IntArray) -> BoolArray | None:
        """Return which rows failed in the class problem of a slice, None if they are of another class here."""
        problems = class_problems(
            self.samples.dataset, np.sort(rows), self.project.settings.failure.criterion()
        )
        problem = next((one for one in problems if matches(found, one)), None)
        if problem is None or set(problem.rows.tolist()) != set(rows.tolist()):
            return None
        has_failed = dict(zip(problem.rows.tolist(), problem.failed.tolist(), strict=True))
        return np.array([has_failed[int(row)] for row in rows], dtype=np.bool_)

    def slice_predictions(
        self, models: Sequence["_Model"], shared: set[str]
    ) -> list[SlicePredictions]:
        criterion = self.project.settings.failure.criterion()
        kept = {
            first.digest(): second
            for first, second in split_in_halves(self.samples, self.project.settings, criterion)
        }
        predictions, keys = [], QuestionKeys(self.samples.dataset)
        for found in self.confirmed:
            title = f"no {found.class_name}" if found.side is Side.ABSENT else found.class_name
            confirmation = kept.get(found.found_on.digest)
            if confirmation is None:
                continue
            rows = found.class_rows(confirmation)
            ids = [one for one in self.samples.dataset.sample_ids(rows) if one in shared]
            rows = np.array([self.row_of[one] for one in ids], dtype=np.int64)
            failed = {
                model.name: model.failed_in(
                    found, np.array([model.row_of[one] for one in ids], dtype=np.int64)
                )
                for model in models
            }
            if len(rows) and all(one is not None for one in failed.values()):
                inside = found.rule.members(self.samples, rows)
                groups = several_to_a_group(self.samples.dataset.groups[rows])
                predictions.append(
                    SlicePredictions(
                        slice_id=found.slice_id,
                        title=found.title,
                        found_on=self.name,
                        inside=tuple(inside.tolist()),
                        failed={
                            name: tuple(one.tolist())
                            for name, one in failed.items()
                            if one is not None
                        },
                        groups=() if groups is None else tuple(groups.tolist()),
                        questions={
                            name: keys.key(title, rows, inside, one, groups=groups)
                            for name, one in failed.items()
                            if one is not None
                        },
                    )
                )
        return predictions


def _refuse_other_classes(models: Sequence[_Model]) -> None:
    first = models[0]
    for model in models[1:]:
        if set(model.samples.dataset.class_names) != set(first.samples.dataset.class_names):
            raise DataError(
                f"The projects {first.name} and {model.name} have different classes.",
                given=(
                    sorted(first.samples.dataset.class_names)[:5],
                    sorted(model.samples.dataset.class_names)[:5],
                ),
                fix="Set [data] class_names alike.",
            )
