"""Any path to the right kind of source."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError, UnavailableError
from weakspot.data.coco import CocoSource, coco_files, is_coco_start
from weakspot.data.columns import did_you_mean
from weakspot.data.hf_dataset import SHARD_EXTENSIONS, HfDatasetSource, is_saved_folder
from weakspot.data.image_folder import ImageFolderSource, is_image_name
from weakspot.data.locations import (
    TAR_EXTENSIONS,
    UnreadableLocationError,
    is_folder,
    is_local,
    is_pattern,
    is_there,
    list_files,
    local_path,
    open_location,
    shown_location,
)
from weakspot.data.remote import is_web
from weakspot.data.settings import BoxSettings
from weakspot.data.source import SampleSource, parse_split, split_names
from weakspot.data.table_source import ManifestSource, PredictionsSource
from weakspot.data.tables import TABLE_EXTENSIONS
from weakspot.data.webdataset import WebDatasetSource
from weakspot.data.yolo import YoloSource, is_yolo_file, yolo_data_file

KINDS = (
    "auto",
    "image-folder",
    "manifest",
    "hf-dataset",
    "webdataset",
    "predictions",
    "coco",
    "yolo",
)
IMAGE_ROLES = ("path", "bytes", "image", "url", "file_name")
_FIRST_BYTES = 4096
_MAX_LOOKED_AT = 20_000


def open_source(
    path: str,
    *,
    kind: str = "auto",
    columns: Mapping[str, str] | None = None,
    default_split: str | None = None,
    class_names: Sequence[str] | None = None,
    boxes: BoxSettings | None = None,
    fractions: tuple[float, float] = (0.25, 0.25),
) -> SampleSource:
    """Return the source at a path; its attribute `kind` says what it was taken for.

    Args:
        path: file, folder, URL or pattern; with the kind `hf-dataset` also a name on the hub.
        kind: one of `KINDS`; `auto` looks at what is there and refuses to guess between two readings.
        columns: role to column name, for tables.
        default_split: split of samples that name none.
        class_names: names of the classes in the order of codes and listed probabilities, for tables.
        boxes: how boxes become samples, for detection data.
        fractions: shares of images without a split put in validation and in test, for detection data.
    """
    wanted = kind.replace("_", "-").lower()
    if wanted not in KINDS:
        raise DataError(
            f"There is no kind of source {kind!r}{did_you_mean(wanted, KINDS)}.",
            given=kind,
            fix=f"Choose one of {', '.join(KINDS)}.",
        )
    split = _parsed_split(default_split)
    chosen = guess_kind(path) if wanted == "auto" else wanted
    if chosen in ("table", "manifest", "predictions"):
        names = None if class_names is None else tuple(class_names)
        return _open_table(path, chosen, dict(columns or {}), split, names)
    if chosen in ("coco", "yolo"):
        _need(path)
        return (CocoSource if chosen == "coco" else YoloSource)(
            location=path, boxes=boxes or BoxSettings(), default_split=split, fractions=fractions
        )
    if chosen == "image-folder":
        _need(path, is_image_folder=True)
        return ImageFolderSource(location=path, default_split=split)
    if chosen == "webdataset":
        return WebDatasetSource(location=path, columns=dict(columns or {}), default_split=split)
    return HfDatasetSource(location=path, columns=dict(columns or {}), default_split=split)


def guess_kind(path: str) -> str:
    """Return what is at a path: `image-folder`, `hf-dataset`, `webdataset`, `coco`, `yolo`, or `table` for rows."""
    name = PurePosixPath(path.partition("::")[0].partition("?")[0])
    if is_pattern(path) or path.lower().endswith(TAR_EXTENSIONS):
        return "webdataset"
    if not is_web(path):
        if not is_there(path):
            raise _nothing_there(path)
        if is_folder(path):
            return (
                "hf-dataset"
                if is_saved_folder(path)
                else _kind_of_boxes(path) or _kind_of_folder(path)
            )
    if name.suffix.lower() in TABLE_EXTENSIONS:
        return "table"
    if name.suffix.lower() == ".json" and _is_coco_file(path):
        return "coco"
    if name.suffix.lower() in (".yaml", ".yml") and is_yolo_file(path):
        return "yolo"
    if is_image_name(name.name):
        raise DataError(
            "This is one image.",
            where=shown_location(path),
            fix="Point to the folder that holds the images.",
        )
    raise DataError(
        f"The extension {name.suffix!r} is none that weakspot reads{did_you_mean(name.suffix, tuple(TABLE_EXTENSIONS))}.",
        where=shown_location(path),
        fix=f"Give a folder, a tar file or a table ({', '.join(TABLE_EXTENSIONS)}); write JSON as one object a line.",
    )


def _is_coco_file(path: str) -> bool:
    try:
        with open_location(path) as stream:
            return is_coco_start(stream.read(_FIRST_BYTES))
    except UnreadableLocationError:
        return False


def _kind_of_boxes(path: str) -> str | None:
    """Return the kind of detection data that a folder holds, None if it holds none by the usual names."""
    if yolo_data_file(path) is not None:
        return "yolo"
    return "coco" if any(_is_coco_file(file) for file in coco_files(path)) else None


def _kind_of_folder(path: str) -> str:
    found: Counter[str] = Counter()
    tables: list[str] = []
    for file in islice(list_files(path), _MAX_LOOKED_AT):
        group = _group_of(file.relative)
        found[group] += 1
        if group == "table":
            tables.append(file.relative)
    kinds = [kind for kind in ("image-folder", "hf-dataset", "webdataset", "table") if found[kind]]
    if len(kinds) == 1 and kinds != ["table"]:
        return kinds[0]
    where = shown_location(path)
    if kinds == ["table"]:
        raise DataError(
            "The folder holds tables but no images.",
            where=where,
            given=tables[:5],
            fix="Point to one of the tables.",
        )
    if kinds:
        listed = ", ".join(f"{found[kind]} of {_SAID[kind]}" for kind in kinds)
        fix = "Point to the table itself, or say what it is with kind = 'image-folder', 'hf-dataset' or 'webdataset'."
        raise DataError(
            f"The folder can be read in several ways: {listed}.",
            where=where,
            given=tables[:5] or None,
            fix=fix,
        )
    what = "The folder is empty." if not found else "The folder holds nothing that weakspot reads."
    raise DataError(
        what, where=where, fix="Point to a folder of images, Parquet shards or tar shards."
    )


_SAID = {
    "image-folder": "images",
    "hf-dataset": "Parquet or Arrow files",
    "webdataset": "tar files",
    "table": "tables",
}


def _group_of(relative: str) -> str:
    lower = relative.lower()
    if is_image_name(lower):
        return "image-folder"
    if lower.endswith(TAR_EXTENSIONS):
        return "webdataset"
    if lower.endswith(SHARD_EXTENSIONS):
        return "hf-dataset"
    # Tables deep inside are notes on single folders; those at the top may be the manifest.
    return (
        "table" if PurePosixPath(lower).suffix in TABLE_EXTENSIONS and "/" not in lower else "other"
    )


def _open_table(
    path: str,
    chosen: str,
    columns: dict[str, str],
    split: Split | None,
    class_names: tuple[str, ...] | None,
) -> SampleSource:
    _need(path)
    told: dict[str, Any] = {
        "location": path,
        "columns": columns,
        "default_split": split,
        "class_names": class_names,
    }
    manifest, predictions = ManifestSource(**told), PredictionsSource(**told)
    if chosen == "table":
        roles = manifest.apparent_roles
        chosen = "predictions" if roles.has_predictions and roles.image is None else "manifest"
        if roles.has_predictions and (n_absent := manifest.n_images_absent()):
            return _without_images(predictions, n_absent)
    return manifest if chosen == "manifest" else predictions


def _without_images(predictions: PredictionsSource, n_absent: int) -> PredictionsSource:
    columns = {role: name for role, name in predictions.columns.items() if role not in IMAGE_ROLES}
    note = (
        f"The table names images, but none of the first {n_absent} is there, so it is read without images; "
        'kind = "manifest" in [data] insists on them.'
    )
    return replace(predictions, columns=columns, note=note)


def _parsed_split(name: str | None) -> Split | None:
    if name is None:
        return None
    found = parse_split(name)
    if found is None:
        raise DataError(
            f"The split {name!r} is unknown.", given=name, fix=f"Use one of {split_names()}."
        )
    return found


def _need(path: str, *, is_image_folder: bool = False) -> None:
    """Refuse a path at which there is nothing, or no folder where one must be."""
    if (is_image_folder or not is_web(path)) and not is_there(path):
        raise _nothing_there(path)
    if is_image_folder and not is_folder(path):
        raise DataError(
            "This is a file, not a folder.",
            where=shown_location(path),
            fix="Point to the folder, or leave the kind out.",
        )


def _nothing_there(path: str) -> UnavailableError:
    hint = ""
    if is_local(path):
        parent = local_path(path).parent
        names = (
            tuple(sorted(item.name for item in islice(parent.iterdir(), 1000)))
            if parent.is_dir()
            else ()
        )
        hint = did_you_mean(Path(path).name, names)
    return UnavailableError(
        f"There is nothing at this path{hint}.",
        where=shown_location(path),
        fix="Correct the path; for a data set on the hub say kind = 'hf-dataset'.",
    )
