"""Samples to label as tasks of Label Studio: suspect labels and pool samples, with what the classifier says as a suggestion."""

import os
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import DataError
from weakspot.neighbours.bundle import ExchangeBundle, MarkedSlice, Written
from weakspot.neighbours.picture_files import picture_paths
from weakspot.neighbours.sample_words import confidences, label_names, predicted_names, slice_facts
from weakspot.neighbours.written_files import write_bytes, write_json

TASKS_FILE = "tasks.json"
CONFIG_FILE = "labelling.xml"
CONTROL, OBJECT = "label", "image"
LOCAL_URL = "/data/local-files/?d="


def write_tasks(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write `tasks.json` and `labelling.xml`: one task for every sample that people should label or look at.

    Pictures are local-files addresses below their common folder, which Label Studio must be allowed to serve.

    Raises:
        DataError: if there is nothing to label.
    """
    listed = nothing_to_label(bundle)
    rows = [one.row for one in bundle.to_label]
    paths = picture_paths(bundle, folder, rows)
    if None in paths:
        raise DataError("Some samples to label have no picture.", given=paths.count(None), fix="Label them in to_label.csv.")
    places = [path for path in paths if path is not None]
    root = os.path.commonpath([str(Path(place).parent) for place in places])
    dataset = bundle.samples.dataset
    words = _Words(bundle)
    tasks = [words.task(one.row, one.why, place, root) for one, place in zip(bundle.to_label, places, strict=True)]
    files = (
        write_json(folder / TASKS_FILE, tasks),
        write_bytes(folder / CONFIG_FILE, labelling_config(dataset).encode()),
    )
    sentence = (
        f"{listed} samples to label. Start Label Studio with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and "
        f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={root}, paste {CONFIG_FILE} as labelling interface and import {TASKS_FILE}. "
        "Then: weakspot import --from label-studio EXPORT --out labels.csv"
    )
    return Written(files=files, sentence=sentence)


def nothing_to_label(bundle: ExchangeBundle) -> int:
    """Return how many samples are to be labelled.

    Raises:
        DataError: if there are none.
    """
    if not bundle.to_label:
        raise DataError(
            "There is nothing to label: no confirmed slice has suspect labels, and none holds pool samples without a label.",
            fix="Run `weakspot run` first; put samples without a label into the split pool.",
        )
    return len(bundle.to_label)


def labelling_config(dataset: Dataset) -> str:
    """Return the labelling interface: the picture, why it is asked about, and one choice a class."""
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
        self._labels, self._said, self._sure = label_names(dataset), predicted_names(dataset), confidences(dataset)
        self._tags = bundle.tags()
        self._slices: dict[str, MarkedSlice] = {one.tag: one for one in bundle.slices}
        self._version = f"weakspot {bundle.record.run_id}" if bundle.record is not None else "weakspot"

    def task(self, row: int, why: str, path: str, root: str) -> dict[str, object]:
        """Return one task; the classifier's answer is a prediction, the present label is only told."""
        said = self._said[row]
        task: dict[str, object] = {
            "data": {
                OBJECT: LOCAL_URL + quote(os.path.relpath(path, root)),
                "sample_id": self._ids[row],
                "path": path,
                "why": why,
                "present_label": " | ".join(self._labels[row] or []),
            },
            "meta": {"slices": [slice_facts(self._slices[tag]) for tag in self._tags[row]]},
        }
        if said:
            result = {"from_name": CONTROL, "to_name": OBJECT, "type": "choices", "value": {"choices": said}}
            score = {} if self._sure[row] is None else {"score": self._sure[row]}
            task["predictions"] = [{"model_version": self._version, **score, "result": [result]}]
        return task
