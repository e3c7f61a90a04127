"""Lists of samples to label: written for people and labelling tools, and taken back."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import DataError, raise_all
from weakspot.core.failures import predicted_classes, predicted_labels
from weakspot.core.repairs import LabellingRequest
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.repair.labels.joining import LabelTaker
from weakspot.repair.labels.selection import chosen_for
from weakspot.repair.labels.tables import (
    IMAGE,
    LABEL,
    SAMPLE_ID,
    LabelTable,
    read_table,
    table_bytes,
)
from weakspot.store.atomic import write_bytes

LIST_FILE = "to_label.csv"
IMAGE_FILE = "to_label.txt"
SUGGESTED = "suggested_class"
WHY = "why"
COLUMNS = (SAMPLE_ID, IMAGE, SUGGESTED, WHY, LABEL)
MOST_LISTED = 200


def write_labelling_list(
    folder: Path,
    rows: IntArray,
    samples: SampleSet,
    slices: Sequence[FailureSlice],
    *,
    roles: Mapping[int, str],
) -> LabellingRequest:
    """Write the samples to label as a CSV table and as a plain list of images; labels filled in before are kept.

    Args:
        folder: where to, usually the run's folder.
        rows: the samples to label.
        samples: the data set they are rows of.
        slices: what is repaired; a row inside one of them is listed with its title.
        roles: what else a row was chosen for, by row: the strategy.

    Raises:
        DataError: if a list is there that cannot be read; it is never overwritten.
    """
    wanted = _lines(rows, samples, slices, roles)
    merged = write_label_table(folder / LIST_FILE, COLUMNS, wanted)
    images = [line[IMAGE] for line in wanted if len(line[IMAGE].splitlines()) == 1]
    write_bytes(folder / IMAGE_FILE, "".join(f"{image}\n" for image in images).encode())
    n_labelled = sum(bool(line[LABEL]) for line in merged[: len(wanted)])
    return LabellingRequest(
        file=LIST_FILE, image_list=IMAGE_FILE, n_samples=len(wanted), n_labelled=n_labelled
    )


def write_label_table(
    path: Path, columns: Sequence[str], wanted: Sequence[dict[str, str]]
) -> list[dict[str, str]]:
    """Write lines of samples to label, and return them with what people wrote into the file before, and the labelled lines of others.

    Raises:
        DataError: if a list is there that cannot be read; it is never overwritten.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    old = read_table(path) if path.exists() else LabelTable(columns=tuple(columns), lines=())
    _refuse_faults(old, path)
    merged = _merge(wanted, old, columns)
    every = (*columns, *(name for name in old.columns if name not in columns))
    if not path.exists() or merged != [dict(line.cells) for line in old.lines]:
        write_bytes(path, table_bytes(every, merged))
    return merged


def read_labels(path: Path, dataset: Dataset) -> Dataset:
    """Return the data set with the labels of a table, which may come from another tool; samples without one stay unlabelled.

    Lines are joined by sample id, else by image. Several labels of a sample are separated by `|` or `;`, and `none` says that a
    sample of a multi-label task has none of them. Only pool samples are labelled so.

    Raises:
        DataError: with every line that cannot be used.
    """
    taker = LabelTaker(dataset)
    faults = [
        (line.number, line.fault or taker.take(line))
        for line in read_table(path).lines
        if line.label or line.fault
    ]
    problems = [f"Line {number}: {fault}." for number, fault in faults if fault]
    if len(problems) > MOST_LISTED:
        problems = [*problems[:MOST_LISTED], f"And {len(problems) - MOST_LISTED} more lines."]
    raise_all(
        problems,
        error=DataError,
        what="Some labels cannot be used:",
        where=str(path),
        fix="Correct these lines; leave the label empty where there is none yet.",
    )
    return taker.labelled()


def _lines(
    rows: IntArray, samples: SampleSet, slices: Sequence[FailureSlice], roles: Mapping[int, str]
) -> list[dict[str, str]]:
    dataset = samples.dataset
    titles = chosen_for(rows, slices, samples)
    columns = (dataset.sample_ids(rows), dataset.locations(rows), suggested_classes(dataset, rows))
    return [
        {
            SAMPLE_ID: name,
            IMAGE: location or "",
            SUGGESTED: likely,
            WHY: _why(titles.get(row), roles.get(row)),
            LABEL: "",
        }
        for row, name, location, likely in zip(rows.tolist(), *columns, strict=True)
    ]


def _why(title: str | None, role: str | None) -> str:
    return f"{title} ({role})" if title and role else title or role or ""


def suggested_classes(dataset: Dataset, rows: IntArray) -> list[str]:
    """Return the prediction of every row, empty where nothing is known."""
    names = dataset.class_names
    if not dataset.has_predictions:
        return [""] * len(rows)
    if dataset.task is Task.MULTI_LABEL:
        predicted = predicted_labels(dataset, rows)
        return [
            "|".join(name for name, is_said in zip(names, line, strict=True) if is_said)
            for line in predicted
        ]
    return [names[code] if code >= 0 else "" for code in predicted_classes(dataset, rows).tolist()]


def _merge(
    wanted: Sequence[dict[str, str]], old: LabelTable, columns: Sequence[str]
) -> list[dict[str, str]]:
    """Return the wanted lines with what people wrote before, then the lines of others that were labelled."""
    before = {line.cells.get(SAMPLE_ID, ""): dict(line.cells) for line in old.lines}
    lines = []
    for line in wanted:
        written = before.pop(line[SAMPLE_ID], {})
        added = {
            name: cell
            for name, cell in written.items()
            if name not in columns or (name == LABEL and cell)
        }
        lines.append({**line, **added})
    return [*lines, *(written for written in before.values() if written.get(LABEL))]


def _refuse_faults(table: LabelTable, path: Path) -> None:
    raise_all(
        [f"Line {line.number}: {line.fault}." for line in table.lines if line.fault],
        error=DataError,
        what="There is a labelling list already, and it cannot be read:",
        where=str(path),
        fix="Correct these lines, or move the file elsewhere.",
    )
