"""What a repair trains on, written for users' own training loops."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weakspot.backends.training_weights import COLUMNS
from weakspot.core.arrays import IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.errors import DataError
from weakspot.core.training_sets import TrainingSelection
from weakspot.media.locations import shown_location

WEIGHTS_FILE = "training_weights.csv"
ROWS_FILE = "training_rows.txt"
CONTESTS_FILE = "contests.json"
TRAINED_ON = (Split.TRAIN, Split.POOL, Split.SYNTHETIC)


def write_training_lists(folder: Path, selection: TrainingSelection, dataset: Dataset) -> tuple[Path, ...]:
    """Write which samples a repair trains on and how much each counts, in the order of the data set.

    Args:
        folder: where to; files of the same names are replaced.
        selection: what is trained on.
        dataset: the samples.

    Returns:
        `training_weights.csv`; `training_rows.txt`, positions among the training samples; `contests.json` if groups compete.

    Raises:
        DataError: if validation or test samples are selected.
    """
    _refuse_measured(selection.rows, dataset)
    order = np.argsort(selection.rows, kind="stable")
    rows = selection.rows[order]
    files = [folder / WEIGHTS_FILE, folder / ROWS_FILE]
    _write_weights(files[0], rows, selection.weights[order].tolist(), dataset)
    training = dataset.rows_of(Split.TRAIN)
    positions = np.searchsorted(training, rows[dataset.splits[rows] == SPLIT_ORDER.index(Split.TRAIN)])
    files[1].write_text("".join(f"{position}\n" for position in positions.tolist()), encoding="ascii")
    if selection.contests:
        files.append(folder / CONTESTS_FILE)
        files[2].write_text(json.dumps(_contests(selection, dataset), indent=1) + "\n", encoding="utf-8")
    return tuple(files)


def _write_weights(path: Path, rows: IntArray, weights: Sequence[float], dataset: Dataset) -> None:
    ids, places, splits = dataset.sample_ids(rows), dataset.locations(rows), dataset.splits[rows].tolist()
    labels = _labels(rows, dataset)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name, place, label, weight, split in zip(ids, places, labels, weights, splits, strict=True):
            writer.writerow([name, shown_location(place) if place else "", label, repr(float(weight)), SPLIT_ORDER[split].value])


def _labels(rows: IntArray, dataset: Dataset) -> list[str]:
    """Return labels as a manifest has them: several with `;` between them, or as a JSON list if a name holds a separator."""
    names = dataset.class_names
    if dataset.task is Task.SINGLE_LABEL:
        return [names[code] if code >= 0 else "" for code in dataset.labels[rows].tolist()]
    is_plain = not any(mark in name for name in names for mark in ";|")
    lists = [[names[code] for code in np.flatnonzero(has)] for has in dataset.label_matrix[rows]]
    return [";".join(own) if is_plain else json.dumps(own, ensure_ascii=False) for own in lists]


def _contests(selection: TrainingSelection, dataset: Dataset) -> list[dict[str, object]]:
    """Return each contest as its weight and the sample ids of its groups."""
    return [
        {
            "weight": float(sum(selection.weights[group].sum() for group in contest)),
            "groups": [dataset.sample_ids(selection.rows[group]) for group in contest],
        }
        for contest in selection.contests
    ]


def _refuse_measured(rows: IntArray, dataset: Dataset) -> None:
    wrong = rows[~np.isin(dataset.splits[rows], [SPLIT_ORDER.index(split) for split in TRAINED_ON])]
    if len(wrong):
        raise DataError(
            f"{len(wrong)} samples are for measuring, so nothing may be trained on them.",
            where="training selection",
            given=dataset.sample_ids(wrong[:3]),
        )
