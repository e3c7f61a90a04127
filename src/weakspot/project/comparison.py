"""Several classifiers on the same samples: which failures they share, where they differ, and the record of it.

They are those of several projects, compared on the samples that the projects share.
"""

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np
from pydantic import Field

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.dataset import Split, Task, several_to_a_group
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.evidence import Interval
from weakspot.core.failures import Side, class_problems, predicted_classes
from weakspot.core.group_tests import (
    count_groups,
    effective_number,
    group_change_interval,
    group_interval,
    group_p,
    paired_group_p,
)
from weakspot.core.questions import QuestionKeys
from weakspot.core.record import Record
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.core.statistics import q_values
from weakspot.data.charts import heat_map, interval_chart
from weakspot.project.project import Project
from weakspot.report.document import paragraph, small_page, table, text_cell
from weakspot.report.wording import p_value
from weakspot.run.halves import split_in_halves, used_rows
from weakspot.run.ledger import AskedData, AskedTest, Ledger
from weakspot.run.reporting import written
from weakspot.run.verdicts import ledger_at

LEVEL = 0.95
MIN_SUPPORT = 5


class SliceOnModel(Record):
    """How one classifier does on one slice.

    Args:
        slice_id: which slice.
        title: the slice in words.
        found_on: the classifier that it was found on.
        model: the classifier that was measured.
        n_inside: samples of the class inside the slice; none of them was used to find it.
        failures_inside: failures among them.
        n_outside: samples of the class outside.
        failures_outside: failures among them.
        interval_inside: of the failure rate inside.
        interval_outside: of the failure rate outside.
        p_value: chance of such a gap if members failed no more often than the rest of the class.
        q_value: over everything that was ever asked about this classifier, or, without ledgers, over this comparison.
        holds: whether the slice is a failure slice of this classifier too.
        n_units: groups on the smaller side, None if every sample is on its own.
    """

    slice_id: str
    title: str
    found_on: str
    model: str
    n_inside: int
    failures_inside: int
    n_outside: int
    failures_outside: int
    interval_inside: Interval
    interval_outside: Interval
    p_value: float
    q_value: float = 1.0
    holds: bool = False
    n_units: int | None = None

    @property
    def rate_inside(self) -> float:
        """Return the failure rate inside, 0 without samples."""
        return self.failures_inside / self.n_inside if self.n_inside else 0.0

    @property
    def rate_outside(self) -> float:
        """Return the failure rate outside, 0 without samples."""
        return self.failures_outside / self.n_outside if self.n_outside else 0.0


class SliceDifference(Record):
    """How two classifiers differ on the members of one slice.

    Args:
        slice_id: which slice.
        title: the slice in words.
        first: a classifier.
        second: another.
        n_samples: members that both were measured on.
        only_first_fails: members on which only the first fails.
        only_second_fails: members on which only the second fails.
        difference: failure rate of the first minus that of the second.
        interval: of the difference; paired.
        p_value: McNemar's exact test; groups count once.
        q_value: over all slices and pairs of the comparison.
    """

    slice_id: str
    title: str
    first: str
    second: str
    n_samples: int
    only_first_fails: int
    only_second_fails: int
    difference: float
    interval: Interval
    p_value: float
    q_value: float = 1.0


class SlicePredictions(Record):
    """One slice and what every classifier does on samples that were not used to find it.

    Args:
        slice_id: which slice.
        title: the slice in words.
        found_on: the classifier that it was found on.
        inside: which of the class's samples are members.
        failed: by classifier, which of the samples failed.
        groups: number of the group of every sample; empty if every one is its own.
        questions: by classifier, the name of the question whether the slice holds on it, for the ledger.
    """

    slice_id: str
    title: str
    found_on: str
    inside: tuple[bool, ...]
    failed: Mapping[str, tuple[bool, ...]]
    groups: tuple[int, ...] = ()
    questions: Mapping[str, str] = Field(default_factory=dict)

    @property
    def together(self) -> IntArray | None:
        """Return the groups [n], None if every sample is its own."""
        return several_to_a_group(np.array(self.groups)) if self.groups else None


def measured_slices(slices: Sequence[SlicePredictions]) -> tuple[SliceOnModel, ...]:
    """Measure every slice on every classifier; nothing is judged yet."""
    return tuple(_on_model(one, model) for one in slices for model in one.failed)


def is_tested(one: SliceOnModel, min_support: int = MIN_SUPPORT) -> bool:
    """Return whether a slice has enough groups, or samples on their own, to be tested on a classifier."""
    n_units = min(one.n_inside, one.n_outside) if one.n_units is None else one.n_units
    return n_units >= min_support


def measure_slices(
    slices: Sequence[SlicePredictions], *, alpha: float = 0.05, min_support: int = MIN_SUPPORT
) -> tuple[SliceOnModel, ...]:
    """Measure every slice on every classifier and judge them; error rates hold over all of it, and over nothing else."""
    found = measured_slices(slices)
    tested = [is_tested(one, min_support) for one in found]
    adjusted = iter(
        q_values(
            [one.p_value for one, has_test in zip(found, tested, strict=True) if has_test]
        ).tolist()
    )
    judged = []
    for one, has_test in zip(found, tested, strict=True):
        q_value = next(adjusted) if has_test else 1.0
        holds = q_value <= alpha and one.rate_inside > one.rate_outside
        judged.append(one.model_copy(update={"q_value": q_value, "holds": holds}))
    return tuple(judged)


def _on_model(one: SlicePredictions, model: str) -> SliceOnModel:
    inside, failed = (
        np.array(one.inside, dtype=np.bool_),
        np.array(one.failed[model], dtype=np.bool_),
    )
    groups = one.together
    n_inside, n_outside = int(inside.sum()), int((~inside).sum())
    failures_inside, failures_outside = int(failed[inside].sum()), int(failed[~inside].sum())
    return SliceOnModel(
        slice_id=one.slice_id,
        title=one.title,
        found_on=one.found_on,
        model=model,
        n_inside=n_inside,
        failures_inside=failures_inside,
        n_outside=n_outside,
        failures_outside=failures_outside,
        interval_inside=_interval(failures_inside, effective_number(groups, inside), n_inside),
        interval_outside=_interval(failures_outside, effective_number(groups, ~inside), n_outside),
        p_value=group_p(inside, failed, groups),
        n_units=None
        if groups is None
        else min(count_groups(groups, inside), count_groups(groups, ~inside)),
    )


def _interval(failures: int, effective: float, n_samples: int) -> Interval:
    low, high = group_interval(failures, n_samples, effective, level=LEVEL)
    return Interval(low=low, high=high, level=LEVEL)


def differences(slices: Sequence[SlicePredictions]) -> tuple[SliceDifference, ...]:
    """Return how every two classifiers differ on every slice, largest difference first."""
    found = [
        _difference(one, first, second)
        for one in slices
        for first, second in itertools.combinations(one.failed, 2)
        if any(one.inside)
    ]
    adjusted = q_values([one.p_value for one in found])
    judged = [
        one.model_copy(update={"q_value": float(q_value)})
        for one, q_value in zip(found, adjusted, strict=True)
    ]
    return tuple(
        sorted(judged, key=lambda one: (-abs(one.difference), one.slice_id, one.first, one.second))
    )


def _difference(one: SlicePredictions, first: str, second: str) -> SliceDifference:
    inside = np.array(one.inside, dtype=np.bool_)
    fails, fails_too = (
        np.array(one.failed[name], dtype=np.bool_)[inside] for name in (first, second)
    )
    only_first, only_second, n_samples = (
        int((fails & ~fails_too).sum()),
        int((fails_too & ~fails).sum()),
        int(inside.sum()),
    )
    groups = None if one.together is None else one.together[inside]
    low, high = paired_interval(fails, fails_too, groups)
    return SliceDifference(
        slice_id=one.slice_id,
        title=one.title,
        first=first,
        second=second,
        n_samples=n_samples,
        only_first_fails=only_first,
        only_second_fails=only_second,
        difference=(only_first - only_second) / n_samples,
        interval=Interval(low=low, high=high, level=LEVEL),
        p_value=paired_group_p(fails & ~fails_too, fails_too & ~fails, groups),
    )


def paired_interval(
    first: BoolArray, second: BoolArray, groups: IntArray | None = None, *, level: float = LEVEL
) -> tuple[float, float]:
    """Return the interval of the difference of two rates on the same samples (Bonett and Price's adjusted Wald interval).

    Samples in groups [n] count as what they are worth.

    >>> low, high = paired_interval(np.array([True] * 8 + [False] * 12), np.array([True] * 2 + [False] * 18))
    >>> round(low, 3), round(high, 3)
    (0.048, 0.497)
    """
    from scipy.special import ndtri

    if groups is not None:
        return group_change_interval(first & ~second, second & ~first, groups, level=level)
    n_samples = len(first) + 2
    only_first, only_second = (
        (int((first & ~second).sum()) + 1) / n_samples,
        (int((second & ~first).sum()) + 1) / n_samples,
    )
    middle = only_first - only_second
    spread = float(ndtri(0.5 + level / 2)) * float(
        np.sqrt((only_first + only_second - middle**2) / n_samples)
    )
    return max(-1.0, middle - spread), min(1.0, middle + spread)


Ledgers = Mapping[tuple[str, str], Ledger]
"""By the project that slices were found on and the classifier that is asked about."""
PROMISE = (
    "That a slice holds on a classifier is said over everything that its samples were ever asked about that classifier; how two "
    "classifiers differ is corrected within this comparison only."
)


def judged_slices(
    found: Sequence[SliceOnModel], slices: Sequence[SlicePredictions], ledgers: Ledgers
) -> tuple[SliceOnModel, ...]:
    """Return slices on classifiers with what the ledgers say of them; what was asked before keeps its answer."""
    questions = {one.slice_id: one.questions for one in slices}
    said: dict[tuple[str, str, str], tuple[float, bool]] = {}
    ordered = sorted(filter(is_tested, found), key=lambda one: (one.found_on, one.model))
    for place, own in groupby(ordered, key=lambda one: (one.found_on, one.model)):
        asked = list(own)
        tests = [
            AskedTest(
                key=questions[one.slice_id][one.model],
                p_value=one.p_value if one.rate_inside > one.rate_outside else 1.0,
                about=f"{one.title} on {one.model}",
            )
            for one in asked
        ]
        answers = ledgers[place].ask(tests, source="compare")
        for one, answer in zip(asked, answers, strict=True):
            said[(*place, one.slice_id)] = answer.q_value, answer.is_found
    return tuple(
        one.model_copy(update={"q_value": q_value, "holds": is_found})
        for one in found
        for q_value, is_found in [said.get((one.found_on, one.model, one.slice_id), (1.0, False))]
    )


def note_differences(
    found: Sequence[SliceDifference], slices: Sequence[SlicePredictions], ledgers: Ledgers
) -> None:
    """Write down which pairs of classifiers were compared on which slices."""
    owners = {one.slice_id: one for one in slices}
    by_owner: dict[str, list[AskedTest]] = {}
    for one in found:
        own = owners[one.slice_id]
        named = "\n".join(sorted((own.questions[one.first], own.questions[one.second])))
        test = AskedTest(
            key=f"differ {hashlib.sha256(named.encode()).hexdigest()[:24]}",
            p_value=one.p_value,
            about=f"{one.title}: {one.first} or {one.second}",
        )
        by_owner.setdefault(own.found_on, []).append(test)
    for owner, tests in by_owner.items():
        ledgers[owner, owner].note(tests, source="compare")


def failure_iou(failed: Sequence[BoolArray]) -> DoubleArray:
    """Return for every two classifiers [m, m] the failures they share, as a part of the failures of either.

    Two classifiers without any failure share everything there is: 1.

    >>> failure_iou([np.array([True, True, False]), np.array([True, False, False])]).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    if not failed or len({len(one) for one in failed}) != 1:
        raise DataError(
            "Every classifier needs a prediction for the same samples.",
            given=[len(one) for one in failed],
        )
    matrix = np.stack(failed).astype(np.float64)
    shared = matrix @ matrix.T
    counts = matrix.sum(axis=1)
    either = counts[:, None] + counts[None, :] - shared
    return np.where(either > 0, shared / np.where(either > 0, either, 1.0), 1.0)


def families(
    names: Sequence[str], overlaps: DoubleArray, *, least: float = 0.5
) -> tuple[tuple[str, ...], ...]:
    """Group classifiers whose failures overlap: within a family the mean overlap is at least `least`.

    Average linkage on one minus the overlap; families and their members keep the order of names.
    """
    if len(names) == 1:
        return ((names[0],),)
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = 1.0 - (overlaps + overlaps.T) / 2
    np.fill_diagonal(distances, 0.0)
    groups = fcluster(
        linkage(squareform(distances, checks=False), method="average"),
        t=1.0 - least,
        criterion="distance",
    )
    return tuple(
        tuple(name for name, own in zip(names, groups, strict=True) if own == group)
        for group in dict.fromkeys(groups)
    )


MAX_SHOWN = 12


class Comparison(Record):
    """Several classifiers on the same samples.

    Args:
        models: their names.
        n_samples: samples that all of them were measured on.
        failure_rates: by name.
        overlaps: share of common failures of every two, in the order of models.
        families: groups of models whose failures overlap.
        slices: every confirmed slice of every model, measured on every model.
        differences: how two models differ on a slice, largest first.
        notes: what could not be compared, and why.
    """

    models: tuple[str, ...]
    n_samples: int
    failure_rates: dict[str, float]
    overlaps: tuple[tuple[float, ...], ...]
    families: tuple[tuple[str, ...], ...]
    slices: tuple[SliceOnModel, ...] = ()
    differences: tuple[SliceDifference, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def shared(self) -> tuple[str, ...]:
        held = [
            {one.slice_id for one in self.slices if one.model == model and one.holds}
            for model in self.models
        ]
        common = set.intersection(*held) if held else set()
        return tuple(dict.fromkeys(one.slice_id for one in self.slices if one.slice_id in common))


def compare_failures(
    failed: Mapping[str, BoolArray],
    slices: Sequence[SlicePredictions],
    *,
    alpha: float = 0.05,
    notes: Sequence[str] = (),
    ledgers: Ledgers | None = None,
) -> Comparison:
    """Compare classifiers.

    Args:
        failed: by classifier, which of the shared samples failed.
        slices: confirmed slices of every classifier on all of them.
        alpha: error rate of this comparison, without ledgers.
        notes: what could not be compared, and why.
        ledgers: what the samples were asked; verdicts are read off them.
    """
    names = tuple(failed)
    pairs = differences(slices)
    if ledgers is None:
        on_models = measure_slices(slices, alpha=alpha)
    else:
        on_models = judged_slices(measured_slices(slices), slices, ledgers)
        note_differences(pairs, slices, ledgers)
    promised = [PROMISE] if ledgers is not None and on_models else []
    overlaps = failure_iou(list(failed.values()))
    return Comparison(
        models=names,
        n_samples=len(next(iter(failed.values()))),
        failure_rates={
            name: float(one.mean()) if len(one) else 0.0 for name, one in failed.items()
        },
        overlaps=tuple(tuple(float(value) for value in line) for line in overlaps),
        families=families(names, overlaps),
        slices=on_models,
        differences=pairs,
        notes=(*notes, *promised),
    )


def comparison_page(comparison: Comparison) -> str:
    """Return the comparison as one HTML page without outside references."""
    overlaps = heat_map(
        comparison.models, comparison.overlaps, title="Shared failures (intersection over union)"
    )
    charts = _slice_charts(comparison)
    return small_page(
        f"{len(comparison.models)} classifiers on {comparison.n_samples} samples",
        [
            overlaps,
            "<h2>Families</h2>",
            *[paragraph(", ".join(family)) for family in comparison.families],
            "<h2>Slices on every classifier</h2>",
            *(charts or [paragraph("None of the classifiers has a confirmed slice.")]),
            "<h2>Where two classifiers differ most</h2>",
            _difference_table(comparison),
            *map(paragraph, comparison.notes),
        ],
    )


def _slice_charts(comparison: Comparison) -> list[str]:
    charts = []
    for slice_id in list(dict.fromkeys(one.slice_id for one in comparison.slices))[:MAX_SHOWN]:
        entries = [one for one in comparison.slices if one.slice_id == slice_id]
        rows = [
            (
                f"{one.model}{' (holds)' if one.holds else ''}",
                one.interval_inside.low,
                one.rate_inside,
                one.interval_inside.high,
            )
            for one in entries
        ]
        title = f"{entries[0].title}: failure rate of members, found on {entries[0].found_on}, {entries[0].n_inside} samples"
        charts.append(f"<figure>{interval_chart(rows, title=title)}</figure>")
    return charts


def _difference_table(comparison: Comparison) -> str:
    if not comparison.differences:
        return paragraph("There is no slice on which two classifiers could be compared.")
    rows = [
        (
            one.title,
            *map(text_cell, (one.first, one.second, str(one.n_samples))),
            text_cell(f"{100 * one.difference:+.0f} points"),
            text_cell(f"{100 * one.interval.low:+.0f} to {100 * one.interval.high:+.0f}"),
            text_cell(p_value(one.q_value)),
        )
        for one in comparison.differences[:MAX_SHOWN]
    ]
    return table(["slice", "first", "second", "samples", "difference", "interval", "q"], rows)


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
        (owner.name, model.name): replace(
            ledger_at(owner.project.store, model.asked, owner.project.settings), alpha=alpha
        )
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
