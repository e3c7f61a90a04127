"""FiftyOne: a project as a data set on disk with one saved view per slice, and an exported data set read back as a manifest."""

import base64
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import DataError
from weakspot.data.json_stream import read_members
from weakspot.tools.bundle import (
    ExchangeBundle,
    Names,
    Written,
    confidences,
    label_names,
    predicted_names,
    sample_tags,
    slice_facts,
    slice_sentence,
)
from weakspot.tools.files import image_paths, replacing, write_json
from weakspot.tools.tables import refuse_extension, write_manifest

_FIELDS = "fiftyone.core.fields."
_LABELS = "fiftyone.core.labels."
# Fields that every sample has, or that weakspot writes itself.
RESERVED = frozenset(
    {
        "id",
        "filepath",
        "tags",
        "metadata",
        "created_at",
        "last_modified_at",
        "ground_truth",
        "predictions",
        "embedding",
        "sample_id",
    }
)
Json = dict[str, object]


def object_id(*parts: str) -> Json:
    """Return an id of the kind that FiftyOne uses; the same parts give the same id."""
    return {"$oid": hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]}


def random_number(name: str) -> float:
    """Return a number from 0 to 1 that only the name decides; FiftyOne shuffles by such numbers."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:13], 16) / 16**13


def packed_embedding(embedding: AnyArray) -> Json:
    """Return an embedding as FiftyOne keeps it: a NumPy file, compressed."""
    stream = BytesIO()
    np.save(stream, np.ascontiguousarray(embedding), allow_pickle=False)
    return {
        "$binary": {
            "base64": base64.b64encode(zlib.compress(stream.getvalue())).decode(),
            "subType": "00",
        }
    }


def field(name: str, kind: str, **more: object) -> Json:
    plain: Json = {
        "name": name,
        "ftype": _FIELDS + kind,
        "embedded_doc_type": None,
        "subfield": None,
        "fields": [],
        "db_field": "_id" if name == "id" else name,
        "description": None,
        "info": None,
        "read_only": False,
        "created_at": None,
    }
    return {**plain, **more}


def label_field(name: str, *, is_many: bool) -> Json:
    """Return the description of a field with one class, or with several."""
    parts = [
        field("id", "ObjectIdField"),
        field("tags", "ListField", subfield=f"{_FIELDS}StringField"),
        field("label", "StringField"),
        field("confidence", "FloatField"),
        field("logits", "VectorField"),
    ]
    if not is_many:
        return field(
            name,
            "EmbeddedDocumentField",
            embedded_doc_type=f"{_LABELS}Classification",
            fields=parts,
        )
    inner = field(
        "classifications",
        "ListField",
        subfield=f"{_FIELDS}EmbeddedDocumentField",
        embedded_doc_type=f"{_LABELS}Classification",
        fields=parts,
    )
    fields = [inner, field("logits", "VectorField")]
    return field(
        name, "EmbeddedDocumentField", embedded_doc_type=f"{_LABELS}Classifications", fields=fields
    )


def default_fields() -> list[Json]:
    sizes = [field(name, "IntField") for name in ("size_bytes", "width", "height", "num_channels")]
    image = "fiftyone.core.metadata.ImageMetadata"
    return [
        field("id", "ObjectIdField"),
        field("filepath", "StringField"),
        field("tags", "ListField", subfield=f"{_FIELDS}StringField"),
        field(
            "metadata",
            "EmbeddedDocumentField",
            embedded_doc_type=image,
            fields=[*sizes, field("mime_type", "StringField")],
        ),
        field("_media_type", "StringField"),
        field("_rand", "FloatField"),
        field("_dataset_id", "ObjectIdField"),
        field("created_at", "DateTimeField", read_only=True),
        field("last_modified_at", "DateTimeField", read_only=True),
    ]


def kind_of_column(column: pa.DataType) -> str:
    if pa.types.is_boolean(column):
        return "BooleanField"
    if pa.types.is_integer(column):
        return "IntField"
    return "FloatField" if pa.types.is_floating(column) else "StringField"


def field_names(names: tuple[str, ...]) -> dict[str, str]:
    """Return a name that FiftyOne accepts for every column; different columns have different names.

    >>> field_names(("box share", "tags", "box_share"))
    {'box share': 'box_share', 'tags': 'meta_tags', 'box_share': 'box_share_2'}
    """
    chosen: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"\W", "_", name).strip("_") or "column"
        plain = f"meta_{plain}" if plain in RESERVED or plain[0].isdigit() else plain
        number, free = 2, plain
        while free in chosen.values():
            free, number = f"{plain}_{number}", number + 1
        chosen[name] = free
    return chosen


def saved_view(dataset_id: Json, name: str, tags: list[str], description: str) -> Json:
    stage = {
        "_cls": "fiftyone.core.stages.MatchTags",
        "kwargs": [["tags", tags], ["bool", True], ["all", False]],
    }
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return {
        "_id": object_id("view", name),
        "_dataset_id": dataset_id,
        "name": name,
        "slug": slug,
        "description": description,
        "color": None,
        "view_stages": [json.dumps(stage)],
        "created_at": None,
        "last_modified_at": None,
        "last_loaded_at": None,
    }


# The layout of this version; every later one reads it.
VERSION = "1.0.0"
MAX_EMBEDDING_BYTES = 256 * 1024 * 1024
EMBEDDINGS_FILE = "embeddings.npy"
_BLOCK_ROWS = 4096


def write_dataset(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write `metadata.json` and `samples.json`, and images that are no files of their own yet.

    Embeddings go into the field `embedding`; above 256 MB together, into `embeddings.npy` beside it, in the same order.

    Raises:
        DataError: if no sample has an image.
    """
    return _Writer(bundle=bundle, folder=folder).write()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Writer:
    """One export."""

    bundle: ExchangeBundle
    folder: Path

    def write(self) -> Written:
        """Write everything; samples last, so that an interrupted export cannot be loaded."""
        n_missing = sum(path is None for path in self.paths)
        if n_missing == len(self.paths):
            raise DataError(
                "No sample has an image, and FiftyOne shows only images.",
                fix="Export to spotlight or cleanlab.",
            )
        files = [self.folder / "metadata.json", self.folder / "samples.json"]
        if self.embeddings is not None and not self.has_embeddings_inside:
            files.append(self._write_embeddings(self.embeddings))
        write_json(files[0], self._metadata())
        with replacing(files[1]) as temporary, temporary.open("w", encoding="utf-8") as stream:
            stream.write('{"samples": [\n')
            for number, sample in enumerate(self._samples()):
                stream.write(
                    (",\n" if number else "")
                    + json.dumps(sample, ensure_ascii=False, allow_nan=False)
                )
            stream.write("\n]}\n")
        left_out = f" {n_missing} samples without an image were left out." if n_missing else ""
        load = f"fiftyone.Dataset.from_dir({str(self.folder)!r}, dataset_type=fiftyone.types.FiftyOneDataset)"
        return Written(files=tuple(files), sentence=f"Load it with: {load}.{left_out}")

    @property
    def dataset(self) -> Dataset:
        return self.bundle.samples.dataset

    @cached_property
    def paths(self) -> list[str | None]:
        top = f"{self.folder.resolve()}{os.sep}"
        return [
            None if path is None else path.removeprefix(top)
            for path in image_paths(self.bundle, self.folder)
        ]

    @cached_property
    def embeddings(self) -> AnyArray | None:
        return self.bundle.embeddings()

    @property
    def has_embeddings_inside(self) -> bool:
        """Return whether embeddings are few enough to be fields of samples."""
        return self.embeddings is not None and self.embeddings.size * 4 <= MAX_EMBEDDING_BYTES

    @property
    def has_probabilities_inside(self) -> bool:
        found = self.dataset.probabilities
        return (
            found is not None
            and self.dataset.task is Task.SINGLE_LABEL
            and found.size * 4 <= MAX_EMBEDDING_BYTES
        )

    @cached_property
    def columns(self) -> dict[str, str]:
        return field_names(self.dataset.metadata_names)

    def _metadata(self) -> Json:
        bundle, is_many = self.bundle, self.dataset.task is Task.MULTI_LABEL
        fields = [
            *default_fields(),
            field("sample_id", "StringField"),
            label_field("ground_truth", is_many=is_many),
            label_field("predictions", is_many=is_many),
            *([field("embedding", "VectorField")] if self.has_embeddings_inside else []),
            *(
                field(self.columns[name], kind_of_column(self.dataset.metadata(name).type))
                for name in self.columns
            ),
        ]
        dataset_id = object_id("dataset", bundle.name)
        views = [
            saved_view(dataset_id, one.found.title, [one.tag], slice_sentence(one))
            for one in bundle.slices
        ]
        views.append(
            saved_view(
                dataset_id, "failed", ["failed"], "Everything on which the classifier failed."
            )
        )
        names = list(self.dataset.class_names)
        return {
            "_id": dataset_id,
            "name": bundle.name,
            "slug": bundle.name.lower(),
            "version": VERSION,
            "media_type": "image",
            "group_media_types": {},
            "tags": ["weakspot"],
            "info": {
                "run": bundle.record.run_id if bundle.record else "",
                "slices": [slice_facts(one) for one in bundle.slices],
            },
            "classes": {"ground_truth": names, "predictions": names},
            "default_classes": names,
            "mask_targets": {},
            "default_mask_targets": {},
            "skeletons": {},
            "sample_fields": fields,
            "frame_fields": [],
            "saved_views": list({view["name"]: view for view in views}.values()),
            "workspaces": [],
            "annotation_runs": {},
            "brain_methods": {},
            "evaluations": {},
            "runs": {},
        }

    def _samples(self) -> Iterator[Json]:
        dataset = self.dataset
        ids, tags = dataset.sample_ids(), sample_tags(self.bundle)
        truth, said, sure = label_names(dataset), predicted_names(dataset), confidences(dataset)
        sizes = zip(
            dataset.table.column("width").to_pylist(),
            dataset.table.column("height").to_pylist(),
            strict=True,
        )
        for row, (columns, size) in enumerate(zip(self._column_values(), sizes, strict=True)):
            if self.paths[row] is None:
                continue
            predicted = self._labels(ids[row], "predictions", said[row])
            if predicted is not None and sure[row] is not None:
                predicted |= {"confidence": sure[row], **self._logits(row)}
            sample: Json = {
                "_id": object_id(ids[row]),
                "filepath": self.paths[row],
                "tags": tags[row],
                "metadata": {"_cls": "ImageMetadata", "width": size[0], "height": size[1]}
                if size[0]
                else None,
                "_media_type": "image",
                "_rand": random_number(ids[row]),
                "sample_id": ids[row],
                "ground_truth": self._labels(ids[row], "ground_truth", truth[row]),
                "predictions": predicted,
                "embedding": self._embedding(row),
                **columns,
            }
            yield {name: value for name, value in sample.items() if value is not None}

    def _labels(self, sample_id: str, name: str, found: Names) -> Json | None:
        if found is None:
            return None
        ones: list[Json] = [
            {
                "_id": object_id(sample_id, name, label),
                "_cls": "Classification",
                "tags": [],
                "label": label,
            }
            for label in found
        ]
        is_many = self.dataset.task is Task.MULTI_LABEL
        return {"_cls": "Classifications", "classifications": ones} if is_many else ones[0]

    def _column_values(self) -> Iterator[Json]:
        """Yield the metadata columns of every sample; block by block, since they may be many."""
        names = list(self.columns.items())
        for start in range(0, len(self.dataset), _BLOCK_ROWS):
            stop = min(len(self.dataset), start + _BLOCK_ROWS)
            values = [
                self.dataset.metadata(name).slice(start, stop - start).to_pylist()
                for name, _ in names
            ]
            for row in range(start, stop):
                yield {
                    other: _plain(column[row - start])
                    for (_, other), column in zip(names, values, strict=True)
                }

    def _embedding(self, row: int) -> Json | None:
        if (
            not self.has_embeddings_inside
            or self.embeddings is None
            or not np.isfinite(self.embeddings[row]).all()
        ):
            return None
        return packed_embedding(np.asarray(self.embeddings[row], dtype=np.float32))

    def _logits(self, row: int) -> Json:
        probabilities = self.dataset.probabilities
        if not self.has_probabilities_inside or probabilities is None:
            return {}
        known = np.maximum(
            np.asarray(probabilities[row], dtype=np.float32), np.finfo(np.float32).tiny
        )
        return {"logits": packed_embedding(np.log(known))}

    def _write_embeddings(self, embeddings: AnyArray) -> Path:
        kept = [row for row, path in enumerate(self.paths) if path is not None]
        path = self.folder / EMBEDDINGS_FILE
        with replacing(path) as temporary, temporary.open("wb") as stream:
            header = {
                "descr": "<f4",
                "fortran_order": False,
                "shape": (len(kept), embeddings.shape[1]),
            }
            np.lib.format.write_array_header_2_0(stream, header)
            for start in range(0, len(kept), _BLOCK_ROWS):
                stream.write(
                    np.asarray(embeddings[kept[start : start + _BLOCK_ROWS]], dtype="<f4").tobytes()
                )
        return path


def _plain(value: object) -> object:
    """Return a value that JSON and FiftyOne take, None for what they do not."""
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


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
