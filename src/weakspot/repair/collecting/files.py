"""The files of a repair without retraining: rows to collect, how many, weights for one's own training, the plan."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weakspot.backends.new_files import files_in, new_files
from weakspot.core.dataset import Dataset
from weakspot.core.repairs import RepairPlan, SliceNeed
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import TrainingSelection
from weakspot.media.locations import shown_location
from weakspot.repair.collecting.pool_rows import PoolRows
from weakspot.repair.collecting.wording import readme_text
from weakspot.repair.export import (
    PLAN_FILE,
    README_FILE,
    keys_of,
    shown_labels,
    write_training_lists,
)
from weakspot.repair.labels.requests import suggested_classes
from weakspot.repair.plans import plan_text, plan_with

COLLECT_FILE = "to_collect.csv"
NEEDS_FILE = "how_many.csv"
WEIGHTS_FOLDER = "weights"
COLLECT_COLUMNS = (
    "slice_id",
    "slice",
    "rank",
    "sample_id",
    "image",
    "label",
    "prediction",
    "is_wrong",
    "key",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectedFiles:
    """What goes into the folder.

    Args:
        plan: slices and strategy.
        slices: the slices that the plan names.
        pool: pool rows by slice.
        needs: how many rows every slice lacks.
        selections: training weights by strategy; the configured one first.
        notes: what could not be written, and why.
    """

    plan: RepairPlan
    slices: Sequence[FailureSlice]
    pool: Sequence[PoolRows]
    needs: Sequence[SliceNeed]
    selections: Mapping[str, TrainingSelection]
    notes: Sequence[str]


def write_collected(folder: Path, content: CollectedFiles, samples: SampleSet) -> tuple[Path, ...]:
    """Write everything into a folder, all of it or nothing; files that are there are never overwritten.

    Raises:
        ModelError: if files of the same names are there.
    """
    dataset = samples.dataset
    with new_files(folder) as staging:
        plan = plan_with(content.plan, content.slices)
        (staging / PLAN_FILE).write_text(plan_text(plan), encoding="utf-8")
        _write_table(staging / NEEDS_FILE, *_needs_table(content.needs))
        if any(len(own.rows) for own in content.pool):
            _write_table(staging / COLLECT_FILE, *_collect_table(content.pool, dataset))
        for number, (name, selection) in enumerate(content.selections.items()):
            place = staging if number == 0 else staging / WEIGHTS_FOLDER / name
            place.mkdir(parents=True, exist_ok=True)
            write_training_lists(place, selection, dataset)
        names = [path.as_posix() for path in files_in(staging)]
        text = readme_text(content.needs, names, content.selections, content.notes)
        (staging / README_FILE).write_text(text, encoding="utf-8")
        written = files_in(staging)
    return tuple(folder / name for name in written)


def _write_table(path: Path, columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(lines)


def _collect_table(
    pool: Sequence[PoolRows], dataset: Dataset
) -> tuple[tuple[str, ...], list[list[object]]]:
    """Return the pool rows of every slice in order, with the columns that its rule reads, so that one sees why."""
    read = sorted(
        {name for own in pool for name in own.found.rule.columns} & set(dataset.metadata_names)
    )
    lines: list[list[object]] = []
    for own in pool:
        rows = own.rows
        parts = zip(
            dataset.sample_ids(rows),
            dataset.locations(rows),
            shown_labels(rows, dataset),
            suggested_classes(dataset, rows),
            own.is_labelled.tolist(),
            own.is_wrong.tolist(),
            keys_of(rows, dataset),
            *(dataset.metadata(name).take(rows).to_pylist() for name in read),
            strict=True,
        )
        for rank, (name, place, label, said, is_labelled, is_wrong, key, *values) in enumerate(
            parts, 1
        ):
            known = ("yes" if is_wrong else "no") if is_labelled and said else ""
            shown = shown_location(place) if place else ""
            first = [
                own.found.slice_id,
                own.found.title,
                rank,
                name,
                shown,
                label,
                said,
                known,
                key,
            ]
            lines.append([*first, *("" if value is None else value for value in values)])
    return (*COLLECT_COLUMNS, *(f"column {name}" for name in read)), lines


def _needs_table(needs: Sequence[SliceNeed]) -> tuple[tuple[str, ...], list[list[object]]]:
    columns = ("slice_id", "slice", "what", "value", "kind")
    lines: list[list[object]] = []
    for need in needs:
        for what, value, kind in _facts(need):
            lines.append([need.slice_id, need.title, what, value, kind])
    return columns, lines


def _facts(need: SliceNeed) -> list[tuple[str, object, str]]:
    facts: list[tuple[str, object, str]] = [
        ("failure rate inside", round(need.rate_inside, 4), "measured"),
        ("failure rate of the rest of the class", round(need.rate_outside, 4), "measured"),
        ("evaluation rows inside", need.n_inside, "counted"),
        ("pool rows that fit", need.n_pool, "counted"),
        ("pool rows that fit and are labelled", need.n_pool_labelled, "counted"),
        (
            "fall of the failure rate over all rows if it failed as seldom as the rest",
            round(need.largest_gain, 4),
            "estimate",
        ),
    ]
    if need.n_training is not None:
        facts += [
            ("training rows inside", need.n_training, "counted"),
            ("training rows of the class", need.n_class_training, "counted"),
        ]
    if need.n_to_match is not None:
        what = "rows to add for the share that it has in evaluation"
        facts.append((what, need.n_to_match, "counted"))
    facts += [
        (f"rows to add for a failure rate lower by {one.gain:.4f}", one.n_rows, "estimate")
        for one in need.estimates
    ]
    if need.why_no_estimate:
        why = f"cannot be estimated: {need.why_no_estimate}"
        facts.append(("rows to add for a given gain", "", why))
    return facts
