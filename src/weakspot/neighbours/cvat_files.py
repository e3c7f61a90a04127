"""Samples to label for CVAT: pictures, the labels of a task, and what the classifier says as tags in "CVAT for images 1.1"."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from weakspot.core.errors import DataError
from weakspot.neighbours.bundle import ExchangeBundle, Written
from weakspot.neighbours.label_studio_files import nothing_to_label
from weakspot.neighbours.picture_files import picture_paths
from weakspot.neighbours.sample_words import Names, predicted_names
from weakspot.neighbours.written_files import write_bytes, write_json

TAGS_FILE = "annotations.xml"
LABELS_FILE = "labels.json"
LIST_FILE = "to_label.csv"
PICTURES_FOLDER = "images"
SUGGESTED = "auto"


def write_tasks(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write pictures named after sample ids, `labels.json` for the task, suggestions as `annotations.xml`, and the reasons as CSV.

    Raises:
        DataError: if there is nothing to label, or a sample to label has no picture.
    """
    listed = nothing_to_label(bundle)
    rows = [one.row for one in bundle.to_label]
    paths = picture_paths(replace(bundle, copies_pictures=True), folder, rows, below=PICTURES_FOLDER)
    if None in paths:
        raise DataError("Some samples to label have no picture.", given=paths.count(None), fix="Label them in to_label.csv.")
    names = [Path(path).name for path in paths if path is not None]
    dataset = bundle.samples.dataset
    sizes = [(dataset.table.column("width")[row].as_py(), dataset.table.column("height")[row].as_py()) for row in rows]
    suggested = predicted_names(dataset)
    said = [suggested[row] for row in rows]
    files = (
        write_json(folder / LABELS_FILE, [{"name": name, "type": "tag", "attributes": []} for name in dataset.class_names]),
        write_bytes(folder / TAGS_FILE, _tags(dataset.class_names, names, sizes, said).encode()),
        write_bytes(folder / LIST_FILE, _list(bundle, names, said).encode()),
    )
    create = f"cvat-cli task create {bundle.name} --labels @{LABELS_FILE} local {PICTURES_FOLDER}/*"
    sentence = (
        f"{listed} samples to label. In the folder: {create}. {TAGS_FILE} holds the classifier's answers; import it only to "
        'start from them. Then export as "CVAT for images 1.1" and: weakspot import --from cvat annotations.xml --out labels.csv'
    )
    return Written(files=files, sentence=sentence)


def _tags(class_names: tuple[str, ...], names: list[str], sizes: list[tuple[int, int]], said: list[Names]) -> str:
    labels = "".join(f"<label><name>{escape(name)}</name><type>tag</type><attributes></attributes></label>" for name in class_names)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<annotations>", "  <version>1.1</version>"]
    lines.append(f"  <meta><task><size>{len(names)}</size><mode>annotation</mode><labels>{labels}</labels></task></meta>")
    for number, (name, size, suggested) in enumerate(zip(names, sizes, said, strict=True)):
        tags = "".join(f'<tag label={quoteattr(label)} source="{SUGGESTED}"></tag>' for label in suggested or ())
        lines.append(f'  <image id="{number}" name={quoteattr(name)} width="{size[0]}" height="{size[1]}">{tags}</image>')
    return "\n".join([*lines, "</annotations>", ""])


def _list(bundle: ExchangeBundle, names: list[str], said: list[Names]) -> str:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["sample_id", "picture", "suggested_class", "why", "label"])
    ids = bundle.samples.dataset.sample_ids()
    for one, name, suggested in zip(bundle.to_label, names, said, strict=True):
        writer.writerow([ids[one.row], name, "|".join(suggested or ()), one.why, ""])
    return stream.getvalue()
