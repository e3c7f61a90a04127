"""The image generator that needs no weights: it composes new images from a user's own ones."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated

from PIL import Image

from weakspot.core.arrays import ByteArray, FloatArray, generator
from weakspot.core.bounds import Bounds, Count, check_bounds
from weakspot.core.errors import ConfigError
from weakspot.core.generated import OwnImages
from weakspot.core.registry import Sendable, part_class
from weakspot.core.roles import GeneratedImage
from weakspot.data.images import decode_image, sniff_format
from weakspot.data.locations import is_folder, list_files, read_location, shown_location
from weakspot.generate.compose.cutout_cache import CutoutCache
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
    Cut,
    in_light_of,
    own_colours,
    own_view,
    painted,
    placements,
    put_on,
    sprite_of,
    square_view,
)
from weakspot.generate.compose.prompts import EditRequest, Place, read_prompt
from weakspot.words.captions import noun_of
from weakspot.words.meanings import same_contrast

BACKGROUNDS = "backgrounds"
MASK_ENDING = "_mask.png"


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
