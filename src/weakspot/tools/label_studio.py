"""Tasks of Label Studio, written for people to label, and their answers read back."""

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from xml.sax.saxutils import quoteattr

from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import DataError
from weakspot.tools.bundle import (
    ExchangeBundle,
    ListedSample,
    MarkedSlice,
    Written,
    confidences,
    label_names,
    predicted_names,
    slice_facts,
)
from weakspot.tools.files import FOLDER, image_paths, write_bytes, write_json
from weakspot.tools.tables import AgreedLabels, refuse_extension

TASKS_FILE = "tasks.json"
CONFIG_FILE = "labelling.xml"
CONTROL, OBJECT = "label", "image"
MARKED = "marks of weakspot"
LOCAL_URL = "/data/local-files/?d="


def write_tasks(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write `tasks.json` and `labelling.xml`: one task for every sample that people should label or look at.

    Images are local-files addresses below their common folder, which Label Studio must be allowed to serve.

    Raises:
        DataError: if there is nothing to label.
    """
    places = places_to_label(bundle, folder, below=FOLDER)
    root = os.path.commonpath([str(Path(place).parent) for place in places])
    dataset = bundle.samples.dataset
    words = _Words(bundle)
    tasks = [
        words.task(one, place, root) for one, place in zip(bundle.to_label, places, strict=True)
    ]
    files = (
        write_json(folder / TASKS_FILE, tasks),
        write_bytes(folder / CONFIG_FILE, labelling_config(dataset).encode()),
    )
    sentence = (
        f"{len(places)} samples to label. Start Label Studio with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and "
        f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={root}, paste {CONFIG_FILE} as labelling interface and import {TASKS_FILE}. "
        "Then: weakspot import --from label-studio EXPORT --out labels.csv"
    )
    return Written(files=files, sentence=sentence)


def places_to_label(bundle: ExchangeBundle, folder: Path, *, below: str) -> list[str]:
    """Return where the images of the samples are that people should label; those to be written lie below a folder.

    Raises:
        DataError: if there are none, or one has no image.
    """
    if not bundle.to_label:
        raise DataError(
            "There is nothing to label: no confirmed slice has suspect labels, and none holds pool samples without a label.",
            fix="Run `weakspot run` first; put samples without a label into the split pool.",
        )
    paths = image_paths(bundle, folder, [one.row for one in bundle.to_label], below=below)
    if None in paths:
        raise DataError(
            "Some samples to label have no image.",
            given=paths.count(None),
            fix="Label them in to_label.csv.",
        )
    return [path for path in paths if path is not None]


def labelling_config(dataset: Dataset) -> str:
    """Return the labelling interface: the image, why it is asked about, and one choice a class."""
    choice = "single" if dataset.task is Task.SINGLE_LABEL else "multiple"
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in dataset.class_names)
    return (
        "<View>\n"
        '  <Header name="why" value="$why" size="4"/>\n'
        f'  <Image name="{OBJECT}" value="${OBJECT}" zoom="true"/>\n'
        f'  <Choices name="{CONTROL}" toName="{OBJECT}" choice="{choice}" showInline="true">\n'
        f"{choices}\n"
        "  </Choices>\n"
        "</View>\n"
    )


class _Words:
    """What is said of samples in tasks."""

    def __init__(self, bundle: ExchangeBundle) -> None:
        dataset = bundle.samples.dataset
        self._ids = dataset.sample_ids()
        self._labels, self._said, self._sure = (
            label_names(dataset),
            predicted_names(dataset),
            confidences(dataset),
        )
        self._tags = bundle.tags()
        self._slices: dict[str, MarkedSlice] = {one.tag: one for one in bundle.slices}
        self._version = (
            f"weakspot {bundle.record.run_id}" if bundle.record is not None else "weakspot"
        )

    def task(self, listed: ListedSample, path: str, root: str) -> dict[str, object]:
        """Return one task; what a person suggests, or the classifier's answer, is a prediction, the present label is only told."""
        row = listed.row
        said = list(listed.suggested) or self._said[row]
        task: dict[str, object] = {
            "data": {
                OBJECT: LOCAL_URL + quote(os.path.relpath(path, root)),
                "sample_id": self._ids[row],
                "path": path,
                "why": listed.why,
                "present_label": " | ".join(self._labels[row] or []),
            },
            "meta": {"slices": [slice_facts(self._slices[tag]) for tag in self._tags[row]]},
        }
        if said:
            result = {
                "from_name": CONTROL,
                "to_name": OBJECT,
                "type": "choices",
                "value": {"choices": said},
            }
            is_sure = self._sure[row] is not None and not listed.suggested
            score = {"score": self._sure[row]} if is_sure else {}
            version = MARKED if listed.suggested else self._version
            task["predictions"] = [{"model_version": version, **score, "result": [result]}]
        return task


_ANNOTATIONS = ("annotations", "completions")
_NAMES = (CONTROL, "labels", "choice", "choices", "class")
_IMAGES = (OBJECT, "img", "picture", "url")


_Answer = tuple[Mapping[str, Any], tuple[str, ...]]
"""The data of a task, and what one person said of it; no labels if nothing was said."""


def read_annotations(source: Path, target: Path) -> Written:
    """Write a table of the labels that people gave; where they disagree, the sample is left out and counted.

    Raises:
        DataError: if this is no export of Label Studio, or it has no labels.
    """
    refuse_extension(target)
    labels = AgreedLabels()
    for data, chosen in _answers(source):
        sample_id, path = _text(data.get("sample_id")), _path(data)
        if not sample_id and not path:
            raise DataError(
                "A task names neither a sample nor an image.",
                where=str(source),
                given=str(dict(data))[:120],
            )
        labels.add(chosen, sample_id=sample_id, path=path)
    return labels.written(source, target)


def _answers(source: Path) -> Iterator[_Answer]:
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(source, "it is no UTF-8 text") from error
    if source.suffix.lower() in (".csv", ".tsv"):
        lines = csv.DictReader(
            io.StringIO(text, newline=""),
            delimiter="," if source.suffix.lower() == ".csv" else "\t",
        )
        for line in lines:
            yield line, _choices(_answer_cell(line))
        return
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(source, "it is no JSON") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise _unreadable(source, "it is no list of tasks")
    for task in tasks:
        yield from _of_task(task)


def _of_task(task: Mapping[str, Any]) -> Iterator[_Answer]:
    given = next((task[name] for name in _ANNOTATIONS if isinstance(task.get(name), list)), None)
    if given is None:
        yield task, _choices(_answer_cell(task))
        return
    data = task.get("data")
    known = data if isinstance(data, dict) else {}
    finished = [one for one in given if isinstance(one, dict) and not one.get("was_cancelled")]
    if not finished:
        yield known, ()
    for one in finished:
        listed = one.get("result")
        given = listed if isinstance(listed, list) else []
        results = [
            result
            for result in given
            if isinstance(result, dict) and result.get("type") == "choices"
        ]
        chosen = [choice for result in results for choice in _choices(result.get("value"))]
        yield known, tuple(dict.fromkeys(chosen))


def _answer_cell(line: Mapping[str, Any]) -> object:
    return next((line[name] for name in _NAMES if line.get(name)), None)


def _choices(value: object) -> tuple[str, ...]:
    """Return the choices in a value: a word, a list, or an object with `choices`, also written as JSON text."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            return _choices(json.loads(value))
        except (ValueError, RecursionError):
            return (value,)
    if isinstance(value, dict):
        return _choices(value.get("choices"))
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return (str(value),) if value else ()


def _path(data: Mapping[str, Any]) -> str:
    given = _text(data.get("path")) or next(
        (_text(data[name]) for name in _IMAGES if data.get(name)), ""
    )
    return unquote(given.partition(LOCAL_URL)[2]) if LOCAL_URL in given else given


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _unreadable(source: Path, why: str) -> DataError:
    return DataError(
        f"This is no export of Label Studio: {why}.",
        where=str(source),
        fix="Export as JSON, JSON-MIN, CSV or TSV.",
    )
