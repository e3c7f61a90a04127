"""A project as a data set of FiftyOne on disk: samples with tags, predictions, embeddings, columns, one saved view per slice."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import DataError
from weakspot.integrations.bundle import ExchangeBundle, Written
from weakspot.integrations.fiftyone_fields import (
    Json,
    default_fields,
    field,
    field_names,
    kind_of_column,
    label_field,
    object_id,
    packed_embedding,
    random_number,
    saved_view,
)
from weakspot.integrations.image_files import image_paths, replacing, write_json
from weakspot.integrations.sample_words import (
    Names,
    confidences,
    label_names,
    predicted_names,
    sample_tags,
    slice_facts,
    slice_sentence,
)

# The layout of this version; every later one reads it.
VERSION = "1.0.0"
MOST_EMBEDDING_BYTES = 256 * 1024 * 1024
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
        return self.embeddings is not None and self.embeddings.size * 4 <= MOST_EMBEDDING_BYTES

    @property
    def has_probabilities_inside(self) -> bool:
        found = self.dataset.probabilities
        return (
            found is not None
            and self.dataset.task is Task.SINGLE_LABEL
            and found.size * 4 <= MOST_EMBEDDING_BYTES
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
