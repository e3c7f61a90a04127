"""The images of a project as a generator that composes may ask for them: with a place or in a colour that words name."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, IntArray, generator, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import DataError
from weakspot.core.generated import OwnImages, nothing_found
from weakspot.core.roles import ObjectMask
from weakspot.data.images import decode_image
from weakspot.data.locations import join_location, read_location
from weakspot.generate.compose.prompts import COLOURS
from weakspot.run.model_map import Box, ObjectMasks, mask_in_box, read_box
from weakspot.run.preparation import CLIP, Prepared
from weakspot.run.settings import Settings
from weakspot.words.captions import Caption, built_in_attributes, content_words, noun_of

MIN_SCORE = 1.0
MIN_IMAGES = 3
MAX_SHOWN = 60
PLACE_ATTRIBUTES = ("background", "place")
_PREPOSITIONS = frozenset(
    {"on", "in", "at", "by", "under", "behind", "near", "among", "with", "beside", "against"}
)


@dataclass(frozen=True, kw_only=True, eq=False)
class BackgroundWords:
    """Images against words for places: an image shows the place that suits it better than all other places, in two ways.

    By similarity itself, because a set of images from shops shows no meadow, however much greener some are than others; and by
    similarity compared with that of all images, because some words are near to every image. Both must name the same place. It
    is one of those that are known by name, or any other that is asked for, which then competes with them.

    Args:
        embeddings: unit vectors of the images [n, d].
        embed_texts: phrases to embeddings of the same space; None if there is no text side, and then no words are known.
    """

    embeddings: FloatArray
    embed_texts: EmbedTexts | None

    @classmethod
    def of(cls, embeddings: FloatArray, embed_texts: EmbedTexts) -> "BackgroundWords":
        """Return the words for some images; those without an embedding show nothing."""
        return cls(embeddings=unit_rows(np.nan_to_num(embeddings)), embed_texts=embed_texts)

    @classmethod
    def none(cls) -> "BackgroundWords":
        return cls(embeddings=np.zeros((0, 1), dtype=np.float32), embed_texts=None)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Return the places by name that enough images show."""
        if self.embed_texts is None:
            return ()
        names, known = self._known
        best = known.best()
        counts = np.bincount(best[best >= 0], minlength=len(names))
        return tuple(
            name for name, count in zip(names, counts.tolist(), strict=True) if count >= MIN_IMAGES
        )

    def places(self, words: str) -> IntArray:
        """Return the images that show a place, best first, at most so many that the choice stays a good one."""
        if self.embed_texts is None or not words.strip():
            return np.zeros(0, dtype=np.int64)
        names, known = self._known
        named = [place for place, name in enumerate(names) if _content(name) == _content(words)]
        own = known.only(named[:1]) if named else self._likeness([_phrases(words)])
        together = own.beside(known, [not _is_same(words, name) for name in names])
        return together.rows(0, order=own.compared[:, 0])[:MAX_SHOWN]

    @cached_property
    def _known(self) -> tuple[tuple[str, ...], "Likeness"]:
        values = [
            (value, [f"a photo {words}" for words in wordings])
            for one in built_in_attributes()
            if one.name in PLACE_ATTRIBUTES
            for value, wordings in one.values.items()
        ]
        return tuple(value for value, _ in values), self._likeness([said for _, said in values])

    def _likeness(self, phrases: Sequence[Sequence[str]]) -> "Likeness":
        if self.embed_texts is None:
            return Likeness(plain=np.zeros((len(self.embeddings), len(phrases)), dtype=np.float32))
        flat = unit_rows(self.embed_texts([phrase for each in phrases for phrase in each]))
        ends = np.cumsum([len(each) for each in phrases])
        prototypes = unit_rows(np.stack([part.mean(axis=0) for part in np.split(flat, ends[:-1])]))
        return Likeness(plain=self.embeddings @ prototypes.T)


@dataclass(frozen=True, kw_only=True, eq=False)
class Likeness:
    """How near images are to words [n, k]."""

    plain: FloatArray

    @cached_property
    def compared(self) -> FloatArray:
        """Return how much nearer than images usually are to the same words, in standard deviations [n, k]."""
        spread = np.maximum(self.plain.std(axis=0), 1e-6)
        return np.asarray((self.plain - np.median(self.plain, axis=0)) / spread, dtype=np.float32)

    def only(self, columns: Sequence[int]) -> "Likeness":
        return Likeness(plain=self.plain[:, list(columns)])

    def beside(self, other: "Likeness", chosen: Sequence[bool]) -> "Likeness":
        return Likeness(plain=np.hstack([self.plain, other.plain[:, list(chosen)]]))

    def best(self) -> IntArray:
        """Return for every image [n] the words that suit it best in both ways, -1 if there are none."""
        first, second = self.plain.argmax(axis=1), self.compared.argmax(axis=1)
        is_clear = (first == second) & (self.compared.max(axis=1) >= MIN_SCORE)
        return np.where(is_clear, first, -1)

    def rows(self, column: int, *, order: FloatArray | None = None) -> IntArray:
        """Return the images that some words suit best, the nearest first; none if they are fewer than MIN_IMAGES."""
        shown = np.flatnonzero(self.best() == column)
        if len(shown) < MIN_IMAGES:
            return np.zeros(0, dtype=np.int64)
        nearness = self.compared[:, column] if order is None else order
        return shown[np.argsort(-nearness[shown], kind="stable")]


def _phrases(words: str) -> list[str]:
    """Return captions of a place that comes with or without its preposition."""
    return (
        [f"a photo {words}"]
        if words.split(maxsplit=1)[0].lower() in _PREPOSITIONS
        else [f"a photo of {words}", f"a photo with {words}"]
    )


def _content(words: str) -> frozenset[str]:
    return frozenset(content_words(words))


def _is_same(first: str, second: str) -> bool:
    """Return whether two names of places share what they are about."""
    return bool(_content(first) & _content(second))


def colour_likeness(embeddings: FloatArray, class_name: str, embed_texts: EmbedTexts) -> Likeness:
    """Return how near images of a class are to it in every colour: an image shows the colour that suits it best, in two ways.

    How a colour looks depends on the light and on the things themselves: green apples in a shop are nearer to yellow than to a
    painter's green. So a colour is taken from the images that words find, not from a table, where there are enough of them.

    Args:
        embeddings: unit vectors of the images [n, d].
        class_name: what they show.
        embed_texts: phrases to embeddings of the same space.
    """
    noun = noun_of(class_name)
    phrases = [Caption(noun=noun, adjective=colour).phrase for colour in COLOURS]
    return Likeness(plain=unit_rows(np.nan_to_num(embeddings)) @ unit_rows(embed_texts(phrases)).T)


Purpose = Literal["search", "measure", "train"]
"""What composed images are for. To train on, they are made from samples that nothing is measured on; to measure with, from
samples that the classifier was not trained on; to search with, only from those of the discovery half, because what is found is then
put to the confirmation half."""

SPLITS: dict[Purpose, tuple[Split, ...]] = {
    "measure": (Split.VALIDATION, Split.TEST),
    "train": (Split.TRAIN, Split.POOL),
}
MASK_COLUMN, BOX_COLUMN = "mask", "box"
MAX_SEGMENTED = 300
NOT_ASKED = f"it is not among the {MAX_SEGMENTED} images of its class that are looked at"


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
    rows = (
        prepared.halves(settings, settings.failure.criterion())[0][0].rows
        if purpose == "search"
        else dataset.rows_of(*SPLITS[purpose])
    )
    has_image = np.array([one is not None for one in dataset.locations(rows)], dtype=np.bool_)
    rows = rows[has_image]
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _OwnSamples:
    """Rows of a data set as images by id."""

    prepared: Prepared
    rows: IntArray
    masks_from: str
    found_by: ObjectMasks | None = None
    _colours: dict[str, Likeness] = field(default_factory=dict)
    _found: dict[str, dict[str, ObjectMask]] = field(default_factory=dict)

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
            self._colours[class_name] = colour_likeness(
                np.asarray(self.prepared.samples.embeddings(CLIP, rows)), class_name, embed_texts
            )
        names, column = self.objects(class_name), list(COLOURS).index(colour)
        return tuple(names[row] for row in self._colours[class_name].rows(column))

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
        order = generator(0, "segmented", class_name).permutation(len(names))[:MAX_SEGMENTED]
        chosen = [names[place] for place in sorted(order.tolist())]
        rows = np.array([self._row_of[name] for name in chosen], dtype=np.int64)
        if self.found_by is None or not len(rows):
            return {}
        return dict(zip(chosen, self.found_by.of(rows, class_name), strict=True))

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
