"""The images of a project, as a generator that composes new ones may ask for them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import DataError
from weakspot.core.own_images import OwnImages, nothing_found
from weakspot.core.roles import ObjectMask
from weakspot.core.seeding import generator
from weakspot.generation.compose.words import COLOURS
from weakspot.generation.service.background_words import BackgroundWords
from weakspot.generation.service.colour_words import ColourWords
from weakspot.media.images import decode_image
from weakspot.media.locations import join_location, read_location
from weakspot.pipeline.models.object_masks import Box, ObjectMasks, mask_in_box, read_box
from weakspot.pipeline.preparation import CLIP, Prepared
from weakspot.pipeline.settings import Settings

Purpose = Literal["search", "measure", "train"]
"""What composed images are for. To train on, they are made from samples that nothing is measured on; to measure with, from
samples that the classifier was not trained on; to search with, only from those of the discovery half, because what is found is then
put to the confirmation half."""

SPLITS: dict[Purpose, tuple[Split, ...]] = {
    "measure": (Split.VALIDATION, Split.TEST),
    "train": (Split.TRAIN, Split.POOL),
}
MASK_COLUMN, BOX_COLUMN = "mask", "box"
MOST_SEGMENTED = 300
NOT_ASKED = f"it is not among the {MOST_SEGMENTED} images of its class that are looked at"


def own_images(
    prepared: Prepared,
    purpose: Purpose,
    settings: Settings,
    *,
    masks_from: Path | str = "",
    masks: ObjectMasks | None = None,
) -> OwnImages:
    """Return the images of a project that suit a purpose.

    Args:
        prepared: the project's samples and models.
        purpose: decides the samples.
        settings: of the project; they say what the discovery half is.
        masks_from: where relative paths in the metadata column `mask` start.
        masks: finds the objects of images without such a mask; None: nobody does.

    Raises:
        DataError: if none of these samples has an image.
    """
    dataset = prepared.samples.dataset
    rows = _rows(prepared, purpose, settings)
    rows = (
        rows[[location is not None for location in dataset.locations(rows)]] if len(rows) else rows
    )
    if not len(rows):
        where = (
            "of the discovery half"
            if purpose == "search"
            else f"in the splits {' and '.join(SPLITS[purpose])}"
        )
        raise DataError(
            f"There are no images to compose from: none {where}.",
            fix="Add such samples, or choose a generator that needs none ([generator] name).",
        )
    cache = _OwnSamples(prepared=prepared, rows=rows, masks_from=str(masks_from), found_by=masks)
    return OwnImages(
        class_names=dataset.class_names,
        objects=cache.objects,
        backgrounds=cache.backgrounds,
        background_words=cache.words.known,
        image=cache.image,
        mask=cache.mask,
        digest=cache.digest,
        coloured=cache.coloured,
        found=nothing_found if masks is None else cache.found,
    )


def _rows(prepared: Prepared, purpose: Purpose, settings: Settings) -> IntArray:
    if purpose != "search":
        return prepared.samples.dataset.rows_of(*SPLITS[purpose])
    discovery, _ = prepared.halves(settings, settings.failure.criterion())[0]
    return discovery.rows


@dataclass(frozen=True, kw_only=True, eq=False)
class _OwnSamples:
    """Rows of a data set as images by id."""

    prepared: Prepared
    rows: IntArray
    masks_from: str
    found_by: ObjectMasks | None = None

    @property
    def _dataset(self) -> Dataset:
        return self.prepared.samples.dataset

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return dict(zip(self._dataset.sample_ids(self.rows), self.rows.tolist(), strict=True))

    @cached_property
    def digest(self) -> str:
        said = [
            *self._dataset.content_hashes(self.rows),
            *(str(mask) for mask in self._masks.values()),
            *(str(box) for box in self._boxes.values()),
            "" if self.found_by is None else self.found_by.segmenter.segmenter_id,
        ]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]

    @cached_property
    def words(self) -> BackgroundWords:
        embed_texts = self.prepared.assistants.embed_texts
        if embed_texts is None or CLIP not in self.prepared.samples.spaces:
            return BackgroundWords.none()
        embeddings = self.prepared.samples.embeddings(CLIP, self.rows)
        return BackgroundWords.of(np.asarray(embeddings), embed_texts)

    def objects(self, class_name: str) -> tuple[str, ...]:
        dataset, code = self._dataset, self._dataset.class_code(class_name)
        labelled = self.rows[dataset.is_labelled[self.rows]]
        own = (
            dataset.label_matrix[labelled, code]
            if dataset.task is Task.MULTI_LABEL
            else dataset.labels[labelled] == code
        )
        return tuple(sorted(dataset.sample_ids(labelled[own])))

    def backgrounds(self, words: str) -> tuple[str, ...]:
        """Return the samples that show a place, best first."""
        return tuple(self._dataset.sample_ids(self.rows[self.words.places(words)]))

    def image(self, sample_id: str) -> Image.Image:
        location = self._dataset.locations(np.array([self._row_of[sample_id]]))[0]
        return decode_image(read_location(str(location))).image

    def mask(self, sample_id: str) -> Image.Image | None:
        """Return the mask of its object, if the data set has one."""
        named = self._masks.get(sample_id)
        if not named:
            return None
        return decode_image(read_location(join_location(self.masks_from, named))).image.convert("L")

    def coloured(self, class_name: str, colour: str) -> tuple[str, ...]:
        """Return the samples of a class that show a colour, surest first."""
        embed_texts = self.prepared.assistants.embed_texts
        if embed_texts is None or CLIP not in self.prepared.samples.spaces or colour not in COLOURS:
            return ()
        if class_name not in self._colours:
            rows = np.array(
                [self._row_of[name] for name in self.objects(class_name)], dtype=np.int64
            )
            self._colours[class_name] = ColourWords(
                embeddings=np.asarray(self.prepared.samples.embeddings(CLIP, rows)),
                class_name=class_name,
                colours=tuple(COLOURS),
                embed_texts=embed_texts,
            )
        names = self.objects(class_name)
        return tuple(names[row] for row in self._colours[class_name].rows(colour))

    @cached_property
    def _colours(self) -> dict[str, ColourWords]:
        return {}

    def found(self, sample_id: str, class_name: str) -> tuple[FloatArray, str]:
        """Return where the object of a class is in an image; the first question about a class is put for many of its images.

        In an image with a box (a metadata column `box`) it is looked for within that.
        """
        if self.found_by is not None and sample_id in self._boxes:
            boxed = mask_in_box(
                self.found_by.segmenter,
                self.image(sample_id).convert("RGB"),
                self._boxes[sample_id],
                class_name=class_name,
            )
            return boxed.coverage, boxed.refused
        known = self._found.get(class_name)
        if known is None:
            known = self._found[class_name] = self._found_masks(class_name)
        mask = known.get(sample_id)
        if mask is None:
            return np.zeros((1, 1), dtype=np.float32), NOT_ASKED
        return mask.coverage, mask.refused

    def _found_masks(self, class_name: str) -> dict[str, ObjectMask]:
        known = self._masks.keys() | self._boxes.keys()
        names = [name for name in self.objects(class_name) if name not in known]
        order = generator(0, "segmented", class_name).permutation(len(names))[:MOST_SEGMENTED]
        chosen = [names[place] for place in sorted(order.tolist())]
        rows = np.array([self._row_of[name] for name in chosen], dtype=np.int64)
        if self.found_by is None or not len(rows):
            return {}
        return dict(zip(chosen, self.found_by.of(rows, class_name), strict=True))

    @cached_property
    def _found(self) -> dict[str, dict[str, ObjectMask]]:
        return {}

    @cached_property
    def _masks(self) -> dict[str, str]:
        return self._told(MASK_COLUMN)

    @cached_property
    def _boxes(self) -> dict[str, Box]:
        found = {name: read_box(text) for name, text in self._told(BOX_COLUMN).items()}
        return {name: box for name, box in found.items() if box is not None}

    def _told(self, column: str) -> dict[str, str]:
        """Return what a metadata column says of these samples, without those that it says nothing of."""
        if column not in self._dataset.metadata_names:
            return {}
        told: Sequence[object] = self._dataset.metadata(column).to_pylist()
        return {name: str(told[row]) for name, row in self._row_of.items() if told[row]}
