"""A user's images at working size, with their objects cut out, kept in memory as far as there is room for them."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from threading import Lock
from typing import Generic, TypeVar

import cv2
import numpy as np
from PIL import Image

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray, IntArray, generator
from weakspot.core.errors import ModelError, RefusedPromptError, WeakspotError
from weakspot.core.generated import OwnImages
from weakspot.generate.compose.placing import (
    Backdrop,
    Cut,
    cut_by_coverage,
    cut_by_mask,
    emptied,
    tone_of,
)
from weakspot.generate.compose.prompts import ObjectRequirement, Place

THUMBNAIL = 48
MIDDLE = 0.5
STEPS = (25.0, 16.0, 16.0)
N_STEPS = (5, 16, 16)
RARE = 2e-3
MIN_TYPICAL = 0.0


def typical_colours(images: Iterable[ByteArray]) -> FloatArray:
    """Return for every colour the log ratio of its share in the middle of some images [h, w, 3] and its share around it."""
    is_middle = _middle()
    counts = np.zeros((2, int(np.prod(N_STEPS))))
    for pixels in images:
        colours = _colours(pixels)
        for row, part in enumerate((is_middle, ~is_middle)):
            counts[row] += np.bincount(colours[part], minlength=counts.shape[1]) / part.sum()
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
    return np.asarray(np.log((shares[0] + RARE) / (shares[1] + RARE)), dtype=np.float32)


def typicality(typical: FloatArray, cut: Cut) -> float:
    """Return the mean log ratio over an object: above zero for colours of the middle, below for colours of the surroundings."""
    colours = _colours(cut.pixels)
    small = cv2.resize(cut.alpha, (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA)
    is_object = small > MIDDLE
    return float(typical[colours[is_object]].mean()) if is_object.any() else 0.0


def _colours(pixels: ByteArray) -> IntArray:
    small = cv2.resize(pixels, (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA)
    lab = cv2.cvtColor(small.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB) + np.array(
        [0.0, 128.0, 128.0], dtype=np.float32
    )
    steps = np.clip(np.floor(lab / np.array(STEPS)), 0, np.array(N_STEPS) - 1).astype(np.int64)
    return np.asarray(
        (steps[..., 0] * N_STEPS[1] + steps[..., 1]) * N_STEPS[2] + steps[..., 2], dtype=np.int64
    )


def _middle() -> BoolArray:
    away = np.abs((np.arange(THUMBNAIL) + 0.5) / THUMBNAIL - 0.5)
    return np.asarray(np.maximum(away[:, None], away[None, :]) < MIDDLE / 2)


N_BEST = 12
MIN_TONES = 3
MAX_TONES = 24
MAX_KEPT = 96
MAX_REASONS = 65_536
N_TYPICAL = 64
UNTYPICAL = "its colours are those of the surroundings of this class"
UNREADABLE = "the image cannot be read"
NO_COVERAGE: FloatArray = np.zeros((1, 1), dtype=np.float32)
NOT_WHOLE = "the object reaches beyond the edge"
NO_ROOM = "the object reaches beyond the edge and leaves too little of what is behind it"

Kept = TypeVar("Kept")


class _Memory(Generic[Kept]):
    """Keeps what was made last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str, make: Callable[[], Kept]) -> Kept:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


class CutoutCache:
    """Cuts and backdrops by sample id.

    Args:
        own: the images.
        longest: pixels of the longer side at which images are kept.
        n_tried: how many images of a class are tried before giving up.
    """

    def __init__(self, own: OwnImages, *, longest: int, n_tried: int) -> None:
        self.own = own
        self._longest = longest
        self._n_tried = n_tried
        self._cuts: _Memory[Cut] = _Memory(MAX_KEPT)
        self._backdrops: _Memory[Backdrop] = _Memory(MAX_KEPT)
        self._usable: _Memory[tuple[str, ...]] = _Memory(MAX_KEPT)
        self._typical: _Memory[FloatArray] = _Memory(MAX_KEPT)
        self._tones: _Memory[FloatArray] = _Memory(MAX_KEPT)
        self._sorted: _Memory[tuple[str, ...]] = _Memory(MAX_KEPT)
        self._movable: _Memory[frozenset[str]] = _Memory(MAX_KEPT)
        self._reasons: _Memory[str] = _Memory(MAX_REASONS)

    def objects(
        self,
        class_name: str,
        *,
        n: int,
        seed: int,
        demand: ObjectRequirement = "found",
    ) -> list[Cut]:
        """Return so many objects of a class, or fewer but at least one where no more can be cut out; the seed alone decides which.

        Args:
            class_name: the class.
            n: how many.
            seed: decides which.
            demand: what is asked of them.

        Raises:
            ModelError: if the class has no images, or none of those tried can be cut out.
        """
        names = self._names(class_name)
        if not names:
            raise ModelError(
                f"There are no images of the class {class_name!r} to compose from.",
                where="generator compose",
            )
        order = generator(seed, "object", class_name).permutation(len(names))[: self._n_tried]
        found: list[Cut] = []
        reasons: Counter[str] = Counter()
        for name in (names[position] for position in order):
            cut = self._typical_cut(name, class_name)
            cut = cut if isinstance(cut, str) else _lack(cut, demand) or cut
            if isinstance(cut, str):
                reasons[cut] += 1
                continue
            found.append(cut)
            if len(found) == n:
                break
        if not found:
            raise _nothing_cut(class_name, n_tried=len(order), n_images=len(names), reasons=reasons)
        return found

    def names_of_objects(
        self, class_name: str, *, seed: int, demand: ObjectRequirement
    ) -> tuple[str, ...]:
        """Return the sample of the object that a seed decides on; which samples can be used is looked up once a class.

        Raises:
            ModelError: if the class has no images, or none of those tried can be cut out.
        """
        names = self._names(class_name)
        order = generator(seed, "object", class_name).permutation(len(names))[: self._n_tried]
        key = f"{class_name}\n{demand}"
        usable = self._movable.get(key, lambda: self._usable_names(class_name, demand))
        found = next((names[place] for place in order if names[place] in usable), None)
        if found is None:
            return (self.objects(class_name, n=1, seed=seed, demand=demand)[0].sample_id,)
        return (found,)

    def _names(self, class_name: str) -> tuple[str, ...]:
        return self._sorted.get(class_name, lambda: tuple(sorted(self.own.objects(class_name))))

    def _usable_names(self, class_name: str, demand: ObjectRequirement) -> frozenset[str]:
        cuts = {name: self._typical_cut(name, class_name) for name in self.own.objects(class_name)}
        return frozenset(
            name for name, cut in cuts.items() if isinstance(cut, Cut) and not _lack(cut, demand)
        )

    def cut(self, sample_id: str, class_name: str) -> Cut | str:
        """Return the object of a class in an image, or why it cannot be used."""
        key = f"{class_name}\n{sample_id}"
        reason = self._reasons.get(key, lambda: self._reason(sample_id, class_name))
        return reason or self._cuts.get(key, lambda: self._usable_cut(sample_id, class_name))

    def _typical_cut(self, sample_id: str, class_name: str) -> Cut | str:
        """Return the object of an image if its colours may be those of the class; masks need no such check."""
        cut = self.cut(sample_id, class_name)
        if isinstance(cut, str) or cut.is_given:
            return cut
        typical = self._typical.get(class_name, partial(self._typical_colours, class_name))
        return cut if typicality(typical, cut) >= MIN_TYPICAL else UNTYPICAL

    def _typical_colours(self, class_name: str) -> FloatArray:
        names = sorted(self.own.objects(class_name))
        order = generator(0, "typical", class_name).permutation(len(names))[:N_TYPICAL]
        return typical_colours(
            found
            for found in map(self._readable_pixels, (names[position] for position in order))
            if found is not None
        )

    def _readable_pixels(self, sample_id: str) -> ByteArray | None:
        try:
            return self._pixels(sample_id)
        except WeakspotError:
            return None

    def tone(self, class_name: str, colour: str) -> FloatArray | None:
        """Return how a colour looks on objects of a class in these images, as CIE Lab [3]; None where too few of them show it."""
        found = self._tones.get(
            f"{class_name}\n{colour}", partial(self._tone_of_objects, class_name, colour)
        )
        return found if len(found) else None

    def _tone_of_objects(self, class_name: str, colour: str) -> FloatArray:
        tones: list[FloatArray] = []
        for name in self.own.coloured(class_name, colour)[:MAX_TONES]:
            # An outline that is not sure does for a mean colour.
            cut = self._new_cut(name, class_name, is_sure=False)
            tone = tone_of(cut, colour) if isinstance(cut, Cut) else None
            tones += [] if tone is None else [tone]
        if len(tones) < MIN_TONES:
            return np.zeros(0, dtype=np.float32)
        return np.asarray(np.median(tones, axis=0), dtype=np.float32)

    def own_backdrop(self, cut: Cut) -> Backdrop:
        return self._backdrops.get(cut.sample_id, lambda: emptied(cut))

    def backdrop(
        self, place: Place, *, class_name: str, seed: int, without: frozenset[str]
    ) -> tuple[str, Backdrop]:
        """Return an image that shows a place, and its id: by seed, one of the best.

        Raises:
            RefusedPromptError: if all of them show something of another class that cannot be removed, or cannot be read.
        """
        usable = self._usable.get(
            f"{class_name}\n{place.words}", partial(self._usable_backdrops, place, class_name)
        )
        if not usable:
            raise RefusedPromptError(
                f"The images that show {place.words!r} cannot be read, or also show things of other classes for good.",
                where="generator compose",
                given=list(place.candidates[:N_BEST]),
                fix="Give images of the empty place, or masks; or choose another place.",
            )
        names = [name for name in usable if name not in without] or list(usable)
        chosen = names[int(generator(seed, "backdrop", place.words).integers(len(names)))]
        return chosen, self._backdrops.get(chosen, partial(self._background, chosen))

    def _usable_backdrops(self, place: Place, class_name: str) -> tuple[str, ...]:
        """Return the best images that show a place and nothing of another class; own ones as they are only if need be.

        An image in which something of another class is left would be wrongly labelled with the class of what is put on it.
        """
        own = frozenset(self.own.objects(class_name))
        empty, as_they_are = [], []
        for name, backdrop in self._readable(iter(place.candidates)):
            if backdrop.hole is not None or name not in self._class_images:
                empty.append(name)
            elif name in own:
                as_they_are.append(name)
            if len(empty) >= N_BEST:
                break
        return tuple((empty + as_they_are)[:N_BEST])

    def _readable(self, names: Iterator[str]) -> Iterator[tuple[str, Backdrop]]:
        for name in names:
            try:
                yield name, self._backdrops.get(name, partial(self._background, name))
            except WeakspotError:
                continue

    def _background(self, sample_id: str) -> Backdrop:
        of_class = self._class_images.get(sample_id)
        cut = self.cut(sample_id, of_class) if of_class is not None else ""
        return emptied(cut) if isinstance(cut, Cut) else Backdrop(pixels=self._pixels(sample_id))

    @cached_property
    def _class_images(self) -> dict[str, str]:
        """Return which class each image is of; of several the first."""
        found: dict[str, str] = {}
        for class_name in self.own.class_names:
            for name in self.own.objects(class_name):
                found.setdefault(name, class_name)
        return found

    def _reason(self, sample_id: str, class_name: str) -> str:
        cut = self._new_cut(sample_id, class_name)
        if isinstance(cut, str):
            return cut
        self._cuts.get(f"{class_name}\n{sample_id}", lambda: cut)
        return ""

    def _usable_cut(self, sample_id: str, class_name: str) -> Cut:
        cut = self._new_cut(sample_id, class_name)
        if isinstance(cut, str):
            raise ModelError(
                f"The object of an image can no longer be cut out: {cut}.", where=sample_id
            )
        return cut

    def _new_cut(self, sample_id: str, class_name: str, *, is_sure: bool = True) -> Cut | str:
        try:
            mask = self.own.mask(sample_id)
        except WeakspotError:
            return UNREADABLE
        coverage, refused = (
            self.own.found(sample_id, class_name) if mask is None else (NO_COVERAGE, "")
        )
        refused = refused if is_sure else ""
        pixels = None if refused else self._readable_pixels(sample_id)
        if refused or pixels is None:
            return refused or UNREADABLE
        cut = (
            cut_by_coverage(pixels, coverage)
            if mask is None
            else cut_by_mask(pixels, np.asarray(mask.convert("L"), dtype=np.uint8))
        )
        return replace(cut, sample_id=sample_id) if isinstance(cut, Cut) else cut

    def _pixels(self, sample_id: str) -> ByteArray:
        image = self.own.image(sample_id).convert("RGB")
        factor = self._longest / max(image.size)
        if factor < 1.0 or max(image.size) * 2 < self._longest:
            wanted = (max(8, round(image.width * factor)), max(8, round(image.height * factor)))
            image = image.resize(wanted, Image.Resampling.LANCZOS)
        return np.array(image, dtype=np.uint8)


def _lack(cut: Cut, demand: ObjectRequirement) -> str:
    """Return why an object does not meet a demand; empty if it does."""
    if demand == "found" or cut.is_whole:
        return ""
    if demand == "whole":
        return NOT_WHOLE
    return "" if cut.has_room else NO_ROOM


def _nothing_cut(
    class_name: str, *, n_tried: int, n_images: int, reasons: Counter[str]
) -> ModelError:
    why = "; ".join(f"{count} times {reason}" for reason, count in reasons.most_common())
    return ModelError(
        f"No object of the class {class_name!r} could be cut out: {n_tried} of {n_images} images were tried ({why}).",
        where="generator compose",
        fix="Give masks (a column `mask`), more images, or another segmenter ([segmenter]); or choose another generator.",
    )
