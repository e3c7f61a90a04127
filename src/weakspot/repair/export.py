"""Export of a repair: the classifier with its new last layer, the layer alone, the plan, and lists for one's own training."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.errors import ConfigError, DataError, WeakspotError, raise_all
from weakspot.core.heads import Head, TrainingSelection
from weakspot.core.repairs import GroupChange, RepairPlan
from weakspot.core.roles import Classifier, TakesHead
from weakspot.core.slices import FailureSlice
from weakspot.data.locations import shown_location
from weakspot.models.files import (
    files_in,
    new_files,
    plain_model_of,
    refuse_existing,
    write_head,
)
from weakspot.models.training_weights import COLUMNS
from weakspot.repair.bench import RepairBench
from weakspot.repair.reproduction import (
    FIGURES_FILE,
    PREPROCESSING_FILE,
    SCRIPT_FILE,
    filled,
    write_reproduction,
)
from weakspot.store.csv_tables import csv_text

FORMAT = "weakspot repair plan"
VERSION = 1
REWRITE = "Use a plan.json that weakspot repair wrote."
_N_SHOWN = 5


def plan_with(plan: RepairPlan, slices: Sequence[FailureSlice]) -> RepairPlan:
    """Return a plan that holds its slices themselves.

    Raises:
        ConfigError: if a slice of the plan is not among those given.
    """
    by_id = {found.slice_id: found for found in slices}
    missing = [name for name in plan.slice_ids if name not in by_id]
    if missing:
        raise ConfigError("The plan names slices that are not there.", where="plan", given=missing)
    return plan.model_copy(update={"slices": tuple(by_id[name] for name in plan.slice_ids)})


def plan_text(plan: RepairPlan) -> str:
    """Return a plan as the content of a file."""
    return (
        json.dumps(
            {"format": FORMAT, "version": VERSION, "plan": json.loads(plan.model_dump_json())},
            indent=1,
        )
        + "\n"
    )


def read_plan(path: Path) -> RepairPlan:
    """Read a plan that `plan_text` made, with its slices.

    Raises:
        ConfigError: if the file is no plan, of another version, has unknown or wrong fields, or no slices; with what is wrong.
    """
    plan = _parse(_content(path), where=str(path))
    if not plan.slices:
        raise ConfigError(
            "The plan holds no slices, so there is nothing to repair.", where=str(path), fix=REWRITE
        )
    own = tuple(found.slice_id for found in plan.slices)
    if own != plan.slice_ids:
        raise ConfigError(
            "The slices of the plan are not those that slice_ids names: one of the two was edited.",
            where=str(path),
            given=list(plan.slice_ids)[:_N_SHOWN],
            fix=f"Set slice_ids to {list(own)[:_N_SHOWN]}, or use the plan as it was written.",
        )
    return plan


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"The plan cannot be read: {error.strerror or error}.",
            where=str(path),
            fix="Correct the path.",
        ) from error
    except ValueError as error:
        raise ConfigError(f"The plan is no JSON: {error}.", where=str(path), fix=REWRITE) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ConfigError("This is no repair plan.", where=str(path), fix=REWRITE)
    if content.get("version") != VERSION:
        raise ConfigError(
            f"The plan is of another version than {VERSION}.",
            where=str(path),
            given=content.get("version"),
            fix="Update weakspot.",
        )
    unknown = sorted(set(content) - {"format", "version", "plan"})
    if unknown:
        raise ConfigError(
            "The plan has unknown fields.", where=str(path), given=unknown, fix="Remove them."
        )
    return content


def _parse(content: dict[str, Any], *, where: str) -> RepairPlan:
    try:
        return RepairPlan.model_validate_json(json.dumps(content.get("plan")))
    except ValidationError as error:
        found = error.errors(include_url=False)
        problems = [
            f"{'.'.join(map(str, one['loc'])) or 'plan'}: {one['msg']}" for one in found[:_N_SHOWN]
        ]
        raise_all(
            problems, error=ConfigError, what="The plan cannot be used:", where=where, fix=REWRITE
        )
        raise


WEIGHTS_FILE = "training_weights.csv"
KEY = "key"
ROWS_FILE = "training_rows.txt"
GROUP_OBJECTIVES_FILE = "group_objectives.json"
TRAINED_ON = (Split.TRAIN, Split.POOL, Split.SYNTHETIC)


def write_training_lists(
    folder: Path, selection: TrainingSelection, dataset: Dataset
) -> tuple[Path, ...]:
    """Write which samples a repair trains on and how much each counts, in the order of the data set.

    Args:
        folder: where to; files of the same names are replaced.
        selection: what is trained on.
        dataset: the samples.

    Returns:
        `training_weights.csv`; `training_rows.txt`, positions among the training samples; `group_objectives.json` if there are any.

    Raises:
        DataError: if validation or test samples are selected.
    """
    _refuse_measured(selection.rows, dataset)
    order = np.argsort(selection.rows, kind="stable")
    rows = selection.rows[order]
    files = [folder / WEIGHTS_FILE, folder / ROWS_FILE]
    _write_weights(files[0], rows, selection.weights[order].tolist(), dataset)
    training = dataset.rows_of(Split.TRAIN)
    positions = np.searchsorted(
        training, rows[dataset.splits[rows] == SPLIT_ORDER.index(Split.TRAIN)]
    )
    files[1].write_text(
        "".join(f"{position}\n" for position in positions.tolist()), encoding="ascii"
    )
    if selection.group_objectives:
        files.append(folder / GROUP_OBJECTIVES_FILE)
        files[2].write_text(
            json.dumps(_group_objectives(selection, dataset), indent=1) + "\n", encoding="utf-8"
        )
    return tuple(files)


def _write_weights(path: Path, rows: IntArray, weights: Sequence[float], dataset: Dataset) -> None:
    ids, places, splits, keys = (
        dataset.sample_ids(rows),
        dataset.locations(rows),
        dataset.splits[rows].tolist(),
        keys_of(rows, dataset),
    )
    labels = shown_labels(rows, dataset)
    lines = [
        [
            name,
            shown_location(place) if place else "",
            label,
            repr(float(weight)),
            SPLIT_ORDER[split].value,
            key,
        ]
        for name, place, label, weight, split, key in zip(
            ids, places, labels, weights, splits, keys, strict=True
        )
    ]
    path.write_text(csv_text((*COLUMNS, KEY), lines, is_data=True), encoding="utf-8")


def keys_of(rows: IntArray, dataset: Dataset) -> list[str]:
    """Return the user's own names of samples: what the column `key` says, else which row or file it was."""
    return [str(key) for key in dataset.table.column("key").take(rows).to_pylist()]


def shown_labels(rows: IntArray, dataset: Dataset) -> list[str]:
    """Return labels as a manifest has them: several with `;` between them, or as a JSON list if a name holds a separator."""
    names = dataset.class_names
    if dataset.task is Task.SINGLE_LABEL:
        return [names[code] if code >= 0 else "" for code in dataset.labels[rows].tolist()]
    is_plain = not any(mark in name for name in names for mark in ";|")
    lists = [[names[code] for code in np.flatnonzero(has)] for has in dataset.label_matrix[rows]]
    return [";".join(own) if is_plain else json.dumps(own, ensure_ascii=False) for own in lists]


def _group_objectives(selection: TrainingSelection, dataset: Dataset) -> list[dict[str, object]]:
    return [
        {
            "weight": float(sum(selection.weights[group].sum() for group in group_objective)),
            "groups": [dataset.sample_ids(selection.rows[group]) for group in group_objective],
        }
        for group_objective in selection.group_objectives
    ]


def _refuse_measured(rows: IntArray, dataset: Dataset) -> None:
    wrong = rows[~np.isin(dataset.splits[rows], [SPLIT_ORDER.index(split) for split in TRAINED_ON])]
    if len(wrong):
        raise DataError(
            f"{len(wrong)} samples are for measuring, so nothing may be trained on them.",
            where="training selection",
            given=dataset.sample_ids(wrong[:3]),
        )


HEAD_FILE = "repaired_head.safetensors"
PLAN_FILE = "plan.json"
README_FILE = "README.txt"
MODEL_FOLDER = "model"
OWN_FILES = (
    HEAD_FILE,
    PLAN_FILE,
    README_FILE,
    WEIGHTS_FILE,
    ROWS_FILE,
    GROUP_OBJECTIVES_FILE,
    SCRIPT_FILE,
    FIGURES_FILE,
    PREPROCESSING_FILE,
)
WIDE_KINDS = frozenset({"float32", "float64"})


def export_repair(
    folder: Path,
    bench: RepairBench,
    *,
    head: Head,
    selection: TrainingSelection,
    plan: RepairPlan,
    changes: Sequence[GroupChange] = (),
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write everything of a repair that a user takes away into a folder, all of it or nothing.

    Args:
        folder: made if need be; no file in it is overwritten.
        bench: samples, slices and the user's classifier; one that is not known or cannot be written becomes a note.
        head: the repaired last layer, rows in the order of the data set's classes.
        selection: what the head was trained on.
        plan: what was meant to be changed.
        changes: what is claimed of it, which a script in the folder gives again; empty if nothing was measured.

    Returns:
        Every file, the main one of the classifier first if it could be written; then what could not be written, and what to know.

    Raises:
        ModelError: if files of the same names are there; they are listed.
    """
    refuse_existing(folder, OWN_FILES)
    classifier, dataset = bench.prepared.classifier, bench.samples.dataset
    with new_files(folder) as staging:
        write_head(staging / HEAD_FILE, head, dataset.class_names)
        text = plan_text(plan_with(plan, bench.slices))
        (staging / PLAN_FILE).write_text(text, encoding="utf-8")
        write_training_lists(staging, selection, dataset)
        model, notes = _write(classifier, head, dataset.class_names, staging / MODEL_FOLDER)
        main = [path.relative_to(staging) for path in model]
        repaired = model[0] if model else None
        note = write_reproduction(staging, folder, bench, repaired=repaired, changes=changes)
        notes = (*notes, *filter(None, [note]))
        plain = plain_model_of(classifier)
        text = filled(
            "readme.txt",
            model=main,
            notes=notes,
            has_groups=bool(selection.group_objectives),
            has_script=(staging / SCRIPT_FILE).exists(),
            made=None if plain is None else plain.preprocessing,
        )
        (staging / README_FILE).write_text(text, encoding="utf-8")
        names = [*main, *(name for name in files_in(staging) if name not in main)]
    return tuple(folder / name for name in names), notes


def _write(
    classifier: Classifier | None, head: Head, class_names: Sequence[str], folder: Path
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the classifier's own files with the head in them, the main one first, or why there are none."""
    if classifier is None:
        return (), (
            "The classifier itself is not known here, only its predictions, so it was not written.",
        )
    if not isinstance(classifier, TakesHead):
        return (), (
            f"A classifier of this kind ({type(classifier).__name__}) cannot be written with another last layer.",
        )
    try:
        files = classifier.write_repaired(
            head.reordered(class_names, classifier.class_names), folder
        )
    except WeakspotError as error:
        return (), (f"The classifier was not written: {error.what}",)
    kind = getattr(classifier, "layer_kind", None)
    is_rounded = kind is not None and kind not in WIDE_KINDS
    return files, (
        (f"The classifier keeps its last layer in {kind}, so the head was rounded to that.",)
        if is_rounded
        else ()
    )
