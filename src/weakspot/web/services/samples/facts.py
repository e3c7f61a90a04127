"""What is known of samples; without the places of their files."""

import math
import os

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Task
from weakspot.core.errors import WeakspotError
from weakspot.core.failures import predicted_classes, predicted_labels
from weakspot.core.run import RunRecord
from weakspot.media.locations import is_local, local_path, shown_location, split_range
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MOST_PROBABILITIES = 5
MOST_COLUMNS = 100
LONGEST_VALUE = 500


class ClassProbability(View):
    """What the classifier gave to a class."""

    class_name: str
    probability: float


class SampleColumn(View):
    """A free column of a sample, as text."""

    name: str
    value: str


class SampleSlice(View):
    """A slice that a sample is a member of."""

    slice_id: str
    title: str
    verdict: str


class SampleFacts(View):
    """What is known of a sample.

    Args:
        row: its row.
        tables: what the row belongs to.
        sample_id: content hash, with a number behind it when the same content occurs again.
        name: file name, or what the source calls it.
        file: the same with its folders below the project's, if it is there.
        split: what it is for.
        width: pixels; 0 without an image.
        height: pixels; 0 without an image.
        labels: true labels; empty if it has none.
        given_labels: what the source gives, if people corrected it; null if they did not.
        answers: what the classifier answered; empty if unknown.
        is_failure: whether that counts as a failure; null if it is not known.
        probabilities: of the likeliest classes, likeliest first.
        columns: what else was given or measured of it.
        slices: slices of the newest run that it is a member of.
        has_heat_map: whether the classifier can be asked about its covered image.
    """

    row: int
    tables: str
    sample_id: str
    name: str
    file: str
    split: str
    width: int
    height: int
    labels: list[str]
    given_labels: list[str] | None
    answers: list[str]
    is_failure: bool | None
    probabilities: list[ClassProbability]
    columns: list[SampleColumn]
    slices: list[SampleSlice]
    has_heat_map: bool = False


def sample_facts(workspace: Workspace, row: int, *, with_slices: bool = True) -> SampleFacts | None:
    """Return what is known of a sample, None if there is none.

    Args:
        workspace: the project.
        row: which sample.
        with_slices: whether slices are listed, which not everybody may see.
    """
    samples = workspace.samples
    if not 0 <= row < len(samples.dataset):
        return None
    record = workspace.record() if with_slices else None
    dataset = samples.dataset
    whole = dataset.table.slice(row, 1)
    return SampleFacts(
        row=row,
        tables=workspace.tables_key,
        sample_id=str(whole.column("sample_id")[0].as_py()),
        name=names_of(dataset, np.array([row]))[0],
        file=files_of(workspace, np.array([row]))[0],
        split=SPLIT_ORDER[int(dataset.splits[row])].value,
        width=int(whole.column("width")[0].as_py() or 0),
        height=int(whole.column("height")[0].as_py() or 0),
        labels=_labels(dataset, row),
        given_labels=list(dataset.given_labels[row] or ()) if row in dataset.given_labels else None,
        answers=_answers(dataset, row),
        is_failure=_is_failure(workspace, row),
        probabilities=_probabilities(dataset, row),
        columns=_columns(dataset, whole),
        slices=[] if record is None else _slices(workspace, record, row),
        has_heat_map=workspace.prepared.classifier is not None
        and dataset.locations(np.array([row]))[0] is not None,
    )


class SampleFile(View):
    """Where the image of a sample is; for owners only, as it is a place on their machine or in their storage.

    Args:
        path: where, without user names, passwords and signatures; null without an image.
        is_there: whether something can be read there; null if it is not on this machine and was not asked.
    """

    path: str | None
    is_there: bool | None


def sample_file(workspace: Workspace, row: int) -> SampleFile:
    (location,) = workspace.samples.dataset.locations(np.array([row]))
    if location is None:
        return SampleFile(path=None, is_there=None)
    place, _ = split_range(location)
    is_there = local_path(place).is_file() if is_local(place) else None
    return SampleFile(path=shown_location(location), is_there=is_there)


def names_of(dataset: Dataset, rows: IntArray) -> list[str]:
    """Return file names; of images inside larger files what the source calls them, and without either the beginning of the id."""
    columns = zip(
        dataset.locations(rows), _keys(dataset, rows), dataset.sample_ids(rows), strict=True
    )
    return [_name(location, key) or sample_id[:12] for location, key, sample_id in columns]


def files_of(workspace: Workspace, rows: IntArray) -> list[str]:
    """Return the same with the folders below the project's own, where files are there: never a place outside of it."""
    dataset, folder = workspace.samples.dataset, f"{workspace.project.folder.resolve()}{os.sep}"
    places = dataset.locations(rows)
    names = names_of(dataset, rows)
    return [
        place[len(folder) :] if place and "#" not in place and place.startswith(folder) else name
        for place, name in zip(places, names, strict=True)
    ]


def _name(location: str | None, key: str) -> str:
    place, part = split_range(location or "")
    if not place or part is not None:
        return key.rstrip("/").rpartition("/")[2]
    return shown_location(place).rstrip("/").rpartition("/")[2]


def _keys(dataset: Dataset, rows: IntArray) -> list[str]:
    column = dataset.table.column("key").take(pa.array(rows))
    return [str(key or "") for key in column.to_pylist()]


def answers_of(dataset: Dataset, rows: IntArray, failed: BoolArray) -> list[str]:
    """Return what the classifier answered of rows, in the words of the report."""
    if dataset.task is Task.SINGLE_LABEL:
        return [dataset.class_names[code] for code in predicted_classes(dataset, rows)]
    return ["wrong" if one else "right" for one in failed]


def _labels(dataset: Dataset, row: int) -> list[str]:
    if dataset.task is Task.SINGLE_LABEL:
        return [dataset.class_names[int(dataset.labels[row])]] if dataset.is_labelled[row] else []
    return [
        name
        for name, has in zip(dataset.class_names, dataset.label_matrix[row], strict=True)
        if has
    ]


def _answers(dataset: Dataset, row: int) -> list[str]:
    if not dataset.has_predictions:
        return []
    if dataset.task is Task.MULTI_LABEL:
        return [
            name
            for name, is_answer in zip(
                dataset.class_names, predicted_labels(dataset, np.array([row]))[0], strict=True
            )
            if is_answer
        ]
    if dataset.predictions is not None:
        code = int(dataset.predictions[row])
    else:
        chances = np.asarray(dataset.probabilities)[row]
        code = int(np.argmax(chances)) if np.isfinite(chances).all() else -1
    return [dataset.class_names[code]] if code >= 0 else []


def _is_failure(workspace: Workspace, row: int) -> bool | None:
    """Return whether a single-label result failed; of several labels some may be right and some wrong."""
    dataset = workspace.samples.dataset
    if (
        dataset.task is not Task.SINGLE_LABEL
        or not dataset.is_labelled[row]
        or not _answers(dataset, row)
    ):
        return None
    try:
        return bool(workspace.criterion.failed(dataset, np.array([row]))[0])
    except WeakspotError:
        return None


def _probabilities(dataset: Dataset, row: int) -> list[ClassProbability]:
    if dataset.probabilities is None:
        return []
    chances = np.asarray(dataset.probabilities[row], dtype=np.float64)
    order = np.argsort(-chances, kind="stable")[:MOST_PROBABILITIES]
    return [
        ClassProbability(class_name=dataset.class_names[code], probability=float(chances[code]))
        for code in order.tolist()
        if math.isfinite(chances[code])
    ]


def _columns(dataset: Dataset, whole: pa.Table) -> list[SampleColumn]:
    names = dataset.metadata_names[:MOST_COLUMNS]
    values = ((name, whole.column(f"meta.{name}")[0].as_py()) for name in names)
    return [
        SampleColumn(name=name, value=str(value)[:LONGEST_VALUE])
        for name, value in values
        if value is not None
    ]


def _slices(workspace: Workspace, record: RunRecord, row: int) -> list[SampleSlice]:
    """Return the slices of its class that a sample is in; rules that read what is not there now are passed over."""
    samples = workspace.samples.only(np.array([row]))
    verdicts = {entry.slice_id: entry.verdict.value for entry in record.evidence}
    hidden = record.dismissed()
    found = []
    for one in record.slices:
        try:
            is_member = (
                one.slice_id not in hidden
                and len(one.class_rows(samples))
                and len(one.members(samples))
            )
        except WeakspotError:
            continue
        if is_member:
            found.append(
                SampleSlice(
                    slice_id=one.slice_id, title=one.title, verdict=verdicts.get(one.slice_id, "")
                )
            )
    return found
