"""A data set that FiftyOne exported, read back as a manifest: labels as they are now, tags and all plain fields."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.integrations.bundle import Written
from weakspot.integrations.manifest_files import refuse_extension, write_manifest
from weakspot.media.json_stream import read_members

SAMPLES_FILE = "samples.json"
FAILED, SLICE_TAG = "failed", "weakspot-"
TRUTH, SAID = "ground_truth", "predictions"
_SPLITS = {**{split.value: split.value for split in Split}, "val": Split.VALIDATION.value}
_NOT_COLUMNS = frozenset(
    {
        "id",
        "filepath",
        "tags",
        "metadata",
        "sample_id",
        "created_at",
        "last_modified_at",
        TRUTH,
        SAID,
    }
)


def read_dataset(source: Path, target: Path) -> Written:
    """Write a manifest with a row for every sample of a `FiftyOneDataset` folder: what people changed there is in it.

    `ground_truth` becomes the label and `predictions` the prediction; where there is no `ground_truth`, the only other field with
    classes does. A tag named after a split is the split; tags of people are joined in the column `tags`.

    Raises:
        DataError: if this is no such folder, or it is unclear which field holds the labels.
    """
    refuse_extension(target)
    folder = source if source.is_dir() else source.parent
    path = folder / SAMPLES_FILE
    if not path.exists():
        raise DataError(
            "The folder holds no samples.json.",
            where=str(folder),
            fix="Export with dataset_type=fiftyone.types.FiftyOneDataset and point to the folder.",
        )
    rows = [_row(sample, folder, path) for sample in _samples(path)]
    if not rows:
        raise DataError("The data set has no samples.", where=str(path))
    names = dict.fromkeys(name for row in rows for name in row)
    written = write_manifest(target, {name: [row.get(name) for row in rows] for name in names})
    n_unlabelled = sum("label" not in row and "labels" not in row for row in rows)
    note = f" {n_unlabelled} of them have no label." if n_unlabelled else ""
    return Written(
        files=(written,),
        sentence=f"{len(rows)} samples.{note} Set [data] source = {str(target)!r} and run weakspot ingest.",
    )


def _samples(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open("rb") as stream:
        for name, value in read_members(stream, where=str(path)):
            if name == "samples" and isinstance(value, dict):
                yield value


def _row(sample: Mapping[str, Any], folder: Path, where: Path) -> dict[str, object]:
    place = sample.get("filepath")
    if not isinstance(place, str):
        raise DataError("A sample has no filepath.", where=str(where), given=str(sample.get("_id")))
    given = sample.get("tags")
    tags = [str(tag) for tag in given] if isinstance(given, list) else []
    splits = [_SPLITS[tag.lower()] for tag in tags if tag.lower() in _SPLITS]
    row: dict[str, object] = {
        "sample_id": sample.get("sample_id"),
        "path": str(folder.resolve() / place),
        **_labels(sample.get(_truth_field(sample, where)), "label", "labels"),
        **_labels(sample.get(SAID), "prediction", "predictions"),
        "split": splits[0] if splits else None,
        "tags": "|".join(tag for tag in tags if not _is_ours(tag)) or None,
    }
    for name, value in sample.items():
        if (
            name not in _NOT_COLUMNS
            and not name.startswith("_")
            and name not in row
            and isinstance(value, str | int | float | bool)
        ):
            row[name] = value
    return {name: value for name, value in row.items() if value is not None}


def _is_ours(tag: str) -> bool:
    # Whether the classifier failed must not come back as something to explain its failures with.
    return tag.lower() in _SPLITS or tag == FAILED or tag.startswith(SLICE_TAG)


def _truth_field(sample: Mapping[str, Any], where: Path) -> str:
    if TRUTH in sample:
        return TRUTH
    others = [
        name
        for name, value in sample.items()
        if name != SAID and isinstance(value, dict) and _is_label(value)
    ]
    if len(others) > 1:
        raise DataError(
            "It is not clear which field holds the labels.",
            where=str(where),
            given=others,
            fix="Rename one to ground_truth: dataset.rename_sample_field(old, 'ground_truth').",
        )
    return others[0] if others else TRUTH


def _is_label(value: Mapping[str, Any]) -> bool:
    return value.get("_cls") in ("Classification", "Classifications")


def _labels(value: object, one: str, many: str) -> dict[str, object]:
    if not isinstance(value, dict):
        return {}
    if value.get("_cls") == "Classifications":
        items = value.get("classifications")
        ones = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        return {many: [str(item["label"]) for item in ones if item.get("label") is not None]}
    label = value.get("label")
    if label is None:
        return {}
    return (
        {one: str(label) if not isinstance(label, str) else label}
        if _is_label(value)
        else {one: json.dumps(label)}
    )
