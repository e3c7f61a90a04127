"""A script that gives the figures of a repair again, without this package, and the list of images and claims that it reads."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Task
from weakspot.core.failures import FailureCriterion
from weakspot.core.repairs import GroupChange, GroupKind
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.data.locations import is_local, local_path, read_location, split_range
from weakspot.models.files import PlainModel, plain_model_of
from weakspot.repair.bench import RepairBench

LIBRARIES = {"onnx": "onnxruntime", "torchscript": "torch"}


def filled(template: str, **facts: object) -> str:
    """Return a text file of a repair, written from facts."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("weakspot.repair"),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters["repr"] = repr
    return environment.get_template(template).render(**facts)


def script_text(plain: PlainModel, figures_file: str) -> str:
    """Return the script; it reads `figures_file` beside it, prints every figure and ends with 1 if one is not as claimed."""
    return filled(
        "reproduce.py.txt",
        plain=plain,
        made=plain.preprocessing,
        library=LIBRARIES[plain.kind],
        figures_file=figures_file,
    )


SCRIPT_FILE = "reproduce.py"
FIGURES_FILE = "figures.json"
PREPROCESSING_FILE = "preprocessing.json"
IMAGES_FOLDER = "test_images"
MAX_COPIED = 2_000
DEEP_NOTES = frozenset({"16-bit", "32-bit", "float"})


def write_reproduction(
    staging: Path,
    folder: Path,
    bench: RepairBench,
    *,
    repaired: Path | None,
    changes: Sequence[GroupChange],
) -> str:
    """Write how images are prepared, and where it can be done a script that gives the claimed figures again.

    Args:
        staging: where to write.
        folder: where that will be in the end; paths in the files are relative to it.
        bench: whose classifier, measured samples and slices these are.
        repaired: the repaired model in `staging`, None if it was not written.
        changes: what is claimed: right before and after, by group; empty if nothing was measured.

    Returns:
        Why there is no script although there might be one; empty otherwise.
    """
    plain = plain_model_of(bench.prepared.classifier)
    if plain is None:
        return ""
    _write_json(staging / PREPROCESSING_FILE, preprocessing_facts(plain))
    if repaired is None or not changes:
        return ""
    samples = bench.measured
    note = _obstacle(samples, bench.criterion, plain)
    if note:
        return note
    dataset, rows = samples.dataset, _labelled(samples)
    labels = [dataset.class_names[code] for code in dataset.labels[rows].tolist()]
    places = _image_places(samples, rows, staging, folder)
    content = {
        "model_before": _relative(plain.path, folder),
        "model_after": repaired.relative_to(staging).as_posix(),
        "class_names": list(plain.class_names or dataset.class_names),
        "images": [
            {"path": place, "label": label} for place, label in zip(places, labels, strict=True)
        ],
        "figures": _figures(samples, rows, bench.slices, changes),
    }
    _write_json(staging / FIGURES_FILE, content)
    (staging / SCRIPT_FILE).write_text(script_text(plain, FIGURES_FILE), encoding="utf-8")
    return ""


def preprocessing_facts(plain: PlainModel) -> dict[str, object]:
    """Return how an image becomes the input of a model, number by number."""
    settings = plain.preprocessing.as_settings()
    side = plain.preprocessing.needed_side
    return {
        **settings,
        "resize_side": None
        if settings["crop"] == "none"
        else settings["resize_side"] or max(settings["height"], settings["width"]),
        "jpeg_decoded_at": f"1/8, 1/4 or 1/2 where its shorter side stays at least {side} pixels, else whole",
        "orientation": "turned upright as EXIF says",
        "transparency": "on white",
        "class_names": None if plain.class_names is None else list(plain.class_names),
    }


def _obstacle(samples: SampleSet, criterion: FailureCriterion, plain: PlainModel) -> str:
    """Return why a script cannot give the figures; empty if it can."""
    dataset, rows = samples.dataset, _labelled(samples)
    is_usual = dataset.task is Task.SINGLE_LABEL and criterion.kind == "top-1"
    if not is_usual or plain.has_one_score:
        return f"{SCRIPT_FILE} was not written: it is for one label an image, one score a class and failures of the kind top-1."
    places = dataset.locations(rows)
    if not places or any(place is None for place in places):
        return f"{SCRIPT_FILE} was not written: not every measured sample has an image of its own."
    n_copied = sum(not _is_plain_file(place) for place in places if place is not None)
    if n_copied > MAX_COPIED:
        return f"{SCRIPT_FILE} was not written: {n_copied:,} measured images lie in archives or elsewhere."
    if any(DEEP_NOTES & set(notes or ()) for notes in _notes(samples, rows)):
        return (
            f"{SCRIPT_FILE} was not written: some measured images have more than 8 bits a channel."
        )
    return ""


def _notes(samples: SampleSet, rows: IntArray) -> list[list[str] | None]:
    table = samples.dataset.table
    if "notes" not in table.column_names:
        return []
    notes: list[list[str] | None] = table.column("notes").take(rows).to_pylist()
    return notes


def _labelled(samples: SampleSet) -> IntArray:
    return samples.rows[samples.dataset.is_labelled[samples.rows]]


def _is_plain_file(place: str) -> bool:
    return is_local(place) and split_range(place)[1] is None


def _image_places(samples: SampleSet, rows: IntArray, staging: Path, folder: Path) -> list[str]:
    """Return where the images are, seen from the folder; those that are no files of their own are copied into it."""
    found = []
    ids, places = samples.dataset.sample_ids(rows), samples.dataset.locations(rows)
    for name, place in zip(ids, places, strict=True):
        if place is None:
            continue
        if _is_plain_file(place):
            found.append(_relative(local_path(place), folder))
            continue
        copy = Path(IMAGES_FOLDER) / name
        (staging / copy).parent.mkdir(exist_ok=True)
        (staging / copy).write_bytes(read_location(place))
        found.append(copy.as_posix())
    return found


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.resolve().as_posix()


def _figures(
    samples: SampleSet,
    rows: IntArray,
    slices: Sequence[FailureSlice],
    changes: Sequence[GroupChange],
) -> list[dict[str, object]]:
    """Return the claims on all samples, slices and classes, each with the positions of its images in the list."""
    members = _members(samples, rows, slices)
    return [
        {
            "of": change.group,
            "rows": np.flatnonzero(np.isin(rows, members[change.kind, change.group])).tolist(),
            "right_before": change.right_before,
            "right_after": change.right_after,
        }
        for change in changes
        if (change.kind, change.group) in members
        and len(members[change.kind, change.group]) == change.n_samples
    ]


def _members(
    samples: SampleSet, rows: IntArray, slices: Sequence[FailureSlice]
) -> dict[tuple[GroupKind, str], IntArray]:
    dataset = samples.dataset
    found = {(GroupKind.OVERALL, "overall"): rows}
    for code, name in enumerate(dataset.class_names):
        found[GroupKind.CLASS, name] = rows[dataset.labels[rows] == code]
    for slice_ in slices:
        own = slice_.class_rows(samples.only(rows))
        found[GroupKind.SLICE, slice_.title] = own[slice_.rule.members(samples, own)]
    return found


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
