"""Comparing the classifiers of several projects on the samples that they share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from weakspot.compare.across import SlicePredictions
from weakspot.compare.comparison import Comparison, compare_failures, comparison_page
from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.failures import class_problems
from weakspot.core.groups import several_to_a_group
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.pipeline.halves import split_in_halves
from weakspot.project.project import Project

FEWEST_MODELS = 2
PAGE, DATA = "comparison.html", "comparison.json"


def compare_projects(
    folders: Sequence[Path], *, alpha: float = 0.05, progress: StageProgress = no_stage_progress
) -> Comparison:
    """Compare the classifiers of two or more projects; each is named after its folder.

    Raises:
        ConfigError: if fewer than two projects are given, or two of the same name.
        DataError: if they share no evaluation sample or disagree on the classes.
    """
    names = [folder.resolve().name for folder in folders]
    if len(names) < FEWEST_MODELS or len(set(names)) != len(names):
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
    failed = {model.name: model.failed(sorted(shared)) for model in models}
    slices = [
        predictions for model in models for predictions in model.slice_predictions(models, shared)
    ]
    notes = [
        f"{model.name} has no verified run, so no slices of it were compared."
        for model in models
        if not model.confirmed
    ]
    return compare_failures(failed, slices, alpha=alpha, notes=notes)


def write_comparison(comparison: Comparison, folder: Path) -> tuple[Path, ...]:
    """Write the page and the record of a comparison into a folder; the page comes first."""
    contents = {PAGE: comparison_page(comparison), DATA: comparison.model_dump_json(indent=2)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"The comparison cannot be written: {error.strerror}.", where=str(folder)
        ) from error
    return tuple(folder / name for name in contents)


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

    def failed(self, sample_ids: Sequence[str]) -> BoolArray:
        rows = np.array([self.row_of[one] for one in sample_ids], dtype=np.int64)
        has_failed = np.zeros(len(self.samples.dataset), dtype=np.bool_)
        for problem in class_problems(
            self.samples.dataset, np.sort(rows), self.project.settings.failure.criterion()
        ):
            has_failed[problem.rows[problem.failed]] = True
        return has_failed[rows]

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
            for first, second in split_in_halves(
                self.samples, self.project.settings, criterion, slices=self.confirmed
            )
        }
        predictions = []
        for found in self.confirmed:
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
                together = several_to_a_group(self.samples.dataset.groups[rows])
                predictions.append(
                    SlicePredictions(
                        slice_id=found.slice_id,
                        title=found.title,
                        found_on=self.name,
                        inside=tuple(inside.tolist()),
                        groups=tuple(() if together is None else together.tolist()),
                        failed={
                            name: tuple(one.tolist())
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
