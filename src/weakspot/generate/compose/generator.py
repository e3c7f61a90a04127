"""The image generator that needs no weights: it cuts objects out of a user's own images and composes new ones from them."""

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from threading import Lock
from typing import Annotated, Generic, TypeVar

import cv2
import numpy as np
from PIL import Image

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray, IntArray, generator
from weakspot.core.bounds import Bounds, Count, check_bounds
from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError, WeakspotError
from weakspot.core.generated import OwnImages
from weakspot.core.registry import Sendable, part_class
from weakspot.core.roles import GeneratedImage
from weakspot.data.images import decode_image, sniff_format
from weakspot.data.locations import is_folder, list_files, read_location, shown_location
from weakspot.generate.compose.edits import (
    VIEWS,
    WHOLE_IMAGE,
    another_light,
    another_view,
    blurred,
    mixed,
    partly_hidden,
    recoloured,
)
from weakspot.generate.compose.placing import (
    ANCHORS,
    NUMBERS,
    Backdrop,
    Cut,
    cut_by_coverage,
    cut_by_mask,
    emptied,
    in_light_of,
    own_colours,
    own_view,
    painted,
    placements,
    put_on,
    sprite_of,
    square_view,
    tone_of,
)
from weakspot.generate.compose.prompts import EditRequest, ObjectRequirement, Place, read_prompt
from weakspot.words.captions import noun_of
from weakspot.words.meanings import same_contrast

THUMBNAIL = 48
MIDDLE = 0.5
STEPS = (25.0, 16.0, 16.0)
N_STEPS = (5, 16, 16)
RARE = 2e-3
MIN_TYPICAL = 0.0

BACKGROUNDS = "backgrounds"
MASK_ENDING = "_mask.png"


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
            why = "; ".join(f"{count} times {reason}" for reason, count in reasons.most_common())
            raise ModelError(
                f"No object of the class {class_name!r} could be cut out: {len(order)} of {len(names)} images were tried ({why}).",
                where="generator compose",
                fix="Give masks (a column `mask`), more images, or another segmenter ([segmenter]); or choose another generator.",
            )
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Folder:
    """Locations by path below the folder; paths by class, and by the words of a background."""

    locations: dict[str, str] = field(default_factory=dict)
    masks: dict[str, str] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)

    def backgrounds(self, words: str) -> list[str]:
        exact = self.places.get(words)
        return exact or next(
            (names for place, names in self.places.items() if same_contrast(place, words)), []
        )

    def image(self, name: str) -> Image.Image:
        return decode_image(read_location(self.locations[name])).image

    def mask(self, name: str) -> Image.Image | None:
        """Return the mask beside an image, if there is one: its name, with or without the ending, and `_mask.png`."""
        for mask in (f"{name}{MASK_ENDING}", f"{name.rpartition('.')[0]}{MASK_ENDING}"):
            if mask in self.masks:
                return decode_image(read_location(self.masks[mask])).image.convert("L")
        return None


def images_of_folder(location: str) -> OwnImages:
    """Return the images below a folder: `<class>/image.jpg`, and `backgrounds/<words>/image.jpg`.

    Raises:
        ConfigError: if there is no such folder, or no image in a folder of a class.
    """
    if not is_folder(location):
        raise ConfigError(
            "There is no such folder of images.",
            where="generator.images",
            given=shown_location(location),
        )
    folder, digest = _Folder(), hashlib.sha256()
    for file in list_files(location):
        top, *below = file.relative.split("/")
        data = read_location(file.location) if below else b""
        if sniff_format(data) is None:
            continue
        digest.update(file.relative.encode() + b"\0" + hashlib.sha256(data).digest())
        if file.relative.endswith(MASK_ENDING):
            folder.masks[file.relative] = file.location
            continue
        folder.locations[file.relative] = file.location
        if top != BACKGROUNDS:
            folder.classes.setdefault(top, []).append(file.relative)
        elif len(below) > 1:
            folder.places.setdefault(noun_of(below[0]).lower(), []).append(file.relative)
    if not folder.classes:
        raise ConfigError(
            "The folder holds no images in folders of classes.",
            where="generator.images",
            given=shown_location(location),
            fix="Put the images into one sub-folder a class, and backgrounds into backgrounds/<words>.",
        )
    return OwnImages(
        class_names=tuple(folder.classes),
        objects=lambda class_name: folder.classes.get(class_name, []),
        backgrounds=folder.backgrounds,
        background_words=tuple(folder.places),
        image=folder.image,
        mask=folder.mask,
        digest=digest.hexdigest()[:16],
    )


def _with_segmenter(own: OwnImages, name: str) -> OwnImages:
    """Return the images of a folder with a segmenter that is asked for the object of each when it is needed."""
    if not name:
        return own
    segmenter = part_class("segmenters", name)()

    def found(sample_id: str, class_name: str) -> tuple[FloatArray, str]:
        image = own.image(sample_id).convert("RGB")
        (mask,) = segmenter.segment([image], class_names=[class_name])
        return mask.coverage, mask.refused

    who = hashlib.sha256(segmenter.segmenter_id.encode()).hexdigest()[:8]
    return replace(own, found=found, digest=f"{own.digest}-{who}")


VERSION = 3
MIN_SIDE = 32
MAX_SIDE = 2048
DETAIL = 1.5
LONGEST = (192, 768)
BACKGROUND_BLUR = 1.6


@dataclass(frozen=True, kw_only=True)
class ComposeGenerator(Sendable):
    """Puts objects of a user's own images on backgrounds from these images, and changes them, as a prompt says.

    The same class and seed take the same object and put it in the same place, whatever else the prompt says: prompts that differ in
    the background make images that differ in the background. A prompt without a background leaves the object in its own image;
    `on its own background` cuts it out and puts it back, which is the control for all other backgrounds.

    Args:
        images: a folder with one sub-folder a class, for use without a project; backgrounds are in `backgrounds/<words>`, and the
            mask of `apple/1.jpg`, if there is one, in `apple/1.jpg_mask.png`.
        side: width and height of the new images.
        n_tried: how many images of a class are tried until one can be cut out.
        segmenter: registered name of who finds the objects of a folder's images that have no mask; empty: nobody.
        least_outline: of an earlier cutter; it has no effect any more.
        own: the images of a project; see `with_images`.
    """

    images: str = ""
    side: Annotated[int, Bounds(ge=MIN_SIDE, le=MAX_SIDE)] = 256
    n_tried: Count = 300
    segmenter: str = "embedded"
    least_outline: float = 2.0
    own: OwnImages | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_bounds(self, where="generator")

    @property
    def generator_id(self) -> str:
        return f"compose-{VERSION}-{self.side}-{self._cache.own.digest}"

    def with_images(self, own: OwnImages) -> "ComposeGenerator":
        """Return the same generator with these images instead of a folder's."""
        return replace(self, own=own)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Return one image a prompt.

        Raises:
            ConfigError: if there are no images to compose from, or not as many seeds as prompts.
            RefusedPromptError: if a prompt says something that cannot be composed; the error names what can.
            ModelError: if no object of the class can be cut out.
        """
        if len(prompts) != len(seeds):
            raise ConfigError("Every prompt needs one seed.", given=(len(prompts), len(seeds)))
        return [self._generate(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def check_prompt(self, prompt: str) -> None:
        """Do nothing if a prompt can be composed.

        Raises:
            RefusedPromptError: if not; the error names what can.
        """
        self._read(prompt)

    def parents_of(self, prompt: str, seed: int) -> tuple[str, ...]:
        """Return the samples whose objects an image would show.

        Raises:
            RefusedPromptError: if a prompt says something that cannot be composed.
            ModelError: if no object of the class can be cut out.
        """
        wanted = self._read(prompt)
        return self._cache.names_of_objects(
            wanted.class_name, seed=seed % VIEWS, demand=wanted.demand
        )

    def seed_of_view(self, seed: int, number: int) -> int:
        """Return the seed that shows the same object cropped, turned and lit in another way, on another backdrop of the place."""
        return seed % VIEWS + number * VIEWS

    def control_for(self, prompt: str) -> str:
        """Return what to say so that the object is cut out and put back, or painted in its own colour; empty if it is neither.

        Raises:
            RefusedPromptError: if a prompt says something that cannot be composed.
        """
        wanted = self._read(prompt)
        if wanted.demand != "found":
            return "on its own background"
        return "in its own colour" if "colour" in wanted.changes else ""

    def _generate(self, prompt: str, seed: int) -> GeneratedImage:
        wanted = self._read(prompt)
        pixels, parents = _Composition(
            cache=self._cache, wanted=wanted, side=self.side, seed=seed
        ).made()
        return GeneratedImage(
            image=Image.fromarray(pixels),
            prompt=prompt,
            seed=seed,
            generator_id=self.generator_id,
            parents=parents,
        )

    def _read(self, prompt: str) -> EditRequest:
        if prompt not in self._known_prompts:
            self._known_prompts[prompt] = read_prompt(prompt, self._cache.own)
        return self._known_prompts[prompt]

    @cached_property
    def _known_prompts(self) -> dict[str, EditRequest]:
        return {}

    @cached_property
    def _cache(self) -> CutoutCache:
        if self.own is None and not self.images:
            raise ConfigError(
                "There are no images to compose from.",
                where="generator.images",
                fix="Use the generator inside a project, or name a folder with one sub-folder a class.",
            )
        own = self.own
        if own is None:
            own = _with_segmenter(images_of_folder(self.images), self.segmenter)
        longest = round(min(max(DETAIL * self.side, LONGEST[0]), LONGEST[1]))
        return CutoutCache(own, longest=longest, n_tried=self.n_tried)


@dataclass(frozen=True, kw_only=True)
class _Composition:
    """One image. The lower part of the seed decides on the object; the upper part, if any, on another view of it."""

    cache: CutoutCache
    wanted: EditRequest
    side: int
    seed: int

    def made(self) -> tuple[ByteArray, tuple[str, ...]]:
        """Return its pixels and the samples it was made from."""
        changes = self.wanted.changes
        n = NUMBERS[changes.get("count", "one")]
        demand = self.wanted.demand
        objects = self.cache.objects(
            self.wanted.class_name, n=n, seed=self.seed % VIEWS, demand=demand
        )
        behind: tuple[str, ...] = ()
        if demand == "found":
            pixels, cover = self._kept(objects[0])
        elif demand == "parted" and not objects[0].is_whole:
            pixels, cover, behind = self._compose_in_place(objects[0])
        else:
            pixels, cover, behind = self._compose(objects, n)
        if self._is_another_view:
            pixels = another_light(pixels, generator(self.seed, "light of view"))
        if "hiding" in changes:
            pixels = partly_hidden(pixels, cover, generator(self.seed, "edit", "hiding"))
        for (change, value), edit in WHOLE_IMAGE.items():
            if changes.get(change) == value:
                pixels = edit(pixels, generator(self.seed, "edit", change, value))
        return pixels, tuple(dict.fromkeys([*(cut.sample_id for cut in objects), *behind]))

    @property
    def _is_another_view(self) -> bool:
        return self.seed >= VIEWS

    def _kept(self, cut: Cut) -> tuple[ByteArray, FloatArray]:
        pixels, alpha = self._own_view(cut, cut.pixels)
        if (colour := self.wanted.changes.get("colour")) is not None:
            tone = self.cache.tone(self.wanted.class_name, colour)
            pixels = recoloured(pixels, alpha, colour, tone=tone)
        if self.wanted.changes.get("blur") == "background":
            behind, _ = self._own_view(cut, self.cache.own_backdrop(cut).pixels)
            pixels = mixed(blurred(behind, strength=BACKGROUND_BLUR), pixels, alpha)
        return pixels, alpha

    def _own_view(self, cut: Cut, pixels: ByteArray) -> tuple[ByteArray, FloatArray]:
        """Return an image of the size of the object's own one as it is seen, and the object's alpha in it."""
        seen, alpha = own_view(cut, pixels, side=self.side)
        if not self._is_another_view:
            return seen, alpha
        return another_view(seen, alpha, generator(self.seed, "view", cut.sample_id))

    def _compose_in_place(self, cut: Cut) -> tuple[ByteArray, FloatArray, tuple[str, ...]]:
        """Return an object that the edge cuts where it is in its own image, before another backdrop."""
        painted_cut = self._coloured(cut)
        pixels, alpha = self._own_view(cut, own_colours(painted_cut.pixels, cut.alpha))
        place = self.wanted.place
        if place is None or place.is_own:
            backdrop, _ = self._own_view(cut, self.cache.own_backdrop(cut).pixels)
            behind: tuple[str, ...] = ()
        else:
            backdrop, behind = self._backdrop([cut], anchor=ANCHORS[""])
        if self.wanted.changes.get("blur") == "background":
            backdrop = blurred(backdrop, strength=BACKGROUND_BLUR)
        return mixed(backdrop, in_light_of(pixels, alpha, backdrop), alpha), alpha, behind

    def _compose(
        self, objects: Sequence[Cut], n: int
    ) -> tuple[ByteArray, FloatArray, tuple[str, ...]]:
        changes = self.wanted.changes
        cuts = [objects[number % len(objects)] for number in range(n)]
        is_turned = self._is_another_view and bool(generator(self.seed, "turned").integers(2))
        sprites = [
            sprite_of(self._coloured(cut), is_mirrored=(number >= len(objects)) != is_turned)
            for number, cut in enumerate(cuts)
        ]
        size, position = changes.get("size", ""), changes.get("position", "")
        places = placements(
            sprites, class_name=self.wanted.class_name, size=size, position=position, seed=self.seed
        )
        backdrop, behind = self._backdrop(objects, anchor=ANCHORS[position])
        if changes.get("blur") == "background":
            backdrop = blurred(backdrop, strength=BACKGROUND_BLUR)
        pixels, cover = put_on(backdrop, sprites, places)
        return pixels, cover, behind

    def _coloured(self, cut: Cut) -> Cut:
        colour = self.wanted.changes.get("colour")
        if colour is None:
            return cut
        tone = self.cache.tone(self.wanted.class_name, colour)
        return replace(cut, pixels=recoloured(cut.pixels, cut.alpha, colour, tone=tone))

    def _backdrop(
        self, objects: Sequence[Cut], *, anchor: tuple[float, float]
    ) -> tuple[ByteArray, tuple[str, ...]]:
        place = self.wanted.place or Place(words="", is_own=True)
        if place.is_own:
            return square_view(
                self.cache.own_backdrop(objects[0]), side=self.side, anchor=anchor
            ), ()
        if place.paint:
            return painted(place.paint, side=self.side), ()
        without = frozenset(cut.sample_id for cut in objects)
        name, backdrop = self.cache.backdrop(
            place, class_name=self.wanted.class_name, seed=self.seed, without=without
        )
        return square_view(backdrop, side=self.side, anchor=anchor), (name,)
