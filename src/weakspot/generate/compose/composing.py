"""The image generator that needs no weights: it composes new pictures from a user's own ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from PIL import Image

from weakspot.core.arrays import ByteArray, FloatArray
from weakspot.core.errors import ConfigError
from weakspot.core.own_pictures import OwnPictures
from weakspot.core.roles import GeneratedPicture
from weakspot.core.seeding import generator
from weakspot.core.sending import Sendable
from weakspot.generate.compose.backdrop import own_view, painted, square_view
from weakspot.generate.compose.cutting import LEAST_OUTLINE, Cut
from weakspot.generate.compose.edits import WHOLE_PICTURE, blurred, mixed, partly_hidden, recoloured
from weakspot.generate.compose.folder import pictures_of_folder
from weakspot.generate.compose.placing import ANCHORS, NUMBERS, placements, put_on, sprite_of
from weakspot.generate.compose.shelf import CutObject, Shelf
from weakspot.generate.compose.wording import Place, Wanted, read_prompt

VERSION = 1
SMALLEST_SIDE = 32
LARGEST_SIDE = 2048
DETAIL = 1.5
LONGEST = (192, 768)
BACKGROUND_BLUR = 1.6


@dataclass(frozen=True, kw_only=True)
class ComposeGenerator(Sendable):
    """Puts objects of a user's own pictures on backgrounds from these pictures, and changes them, as a prompt says.

    The same class and seed take the same object and put it in the same place, whatever else the prompt says: prompts that differ in
    the background make pictures that differ in the background. A prompt without a background leaves the object in its own picture;
    `on its own background` cuts it out and puts it back, which is the control for all other backgrounds.

    Args:
        pictures: a folder with one sub-folder a class, for use without a project; backgrounds are in `backgrounds/<words>`, and the
            mask of `apple/1.jpg`, if there is one, in `apple/1.jpg_mask.png`.
        side: width and height of the new pictures.
        n_tried: how many pictures of a class are tried until one can be cut out.
        least_outline: how much clearer the outline of an object must be than the edges inside it; less admits patterned objects,
            but also heaps.
        own: the pictures of a project; see `with_pictures`.
    """

    pictures: str = ""
    side: int = 256
    n_tried: int = 300
    least_outline: float = LEAST_OUTLINE
    own: OwnPictures | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse what no picture can be made with."""
        if not SMALLEST_SIDE <= self.side <= LARGEST_SIDE:
            raise ConfigError(
                f"Composed pictures have {SMALLEST_SIDE} to {LARGEST_SIDE} pixels a side.", where="generator.side", given=self.side
            )
        if self.n_tried < 1:
            raise ConfigError("At least one picture must be tried.", where="generator.n_tried", given=self.n_tried)

    @property
    def generator_id(self) -> str:
        """Name, version, size, what cuts must fulfil if it is not the usual, and which pictures."""
        strict = "" if self.least_outline == LEAST_OUTLINE else f"-outline-{self.least_outline:g}"
        return f"compose-{VERSION}-{self.side}{strict}-{self._shelf.own.digest}"

    def with_pictures(self, own: OwnPictures) -> "ComposeGenerator":
        """Return the same generator with these pictures instead of a folder's."""
        return replace(self, own=own)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedPicture]:
        """Return one picture a prompt.

        Raises:
            ConfigError: if there are no pictures to compose from, or not as many seeds as prompts.
            RefusedPromptError: if a prompt says something that cannot be composed; the error names what can.
            ModelError: if no object of the class can be cut out.
        """
        if len(prompts) != len(seeds):
            raise ConfigError("Every prompt needs one seed.", given=(len(prompts), len(seeds)))
        return [self._generated(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def check_prompt(self, prompt: str) -> None:
        """Do nothing if a prompt can be composed.

        Raises:
            RefusedPromptError: if not; the error names what can.
        """
        read_prompt(prompt, self._shelf.own)

    def _generated(self, prompt: str, seed: int) -> GeneratedPicture:
        wanted = read_prompt(prompt, self._shelf.own)
        pixels, parents = _Composition(shelf=self._shelf, wanted=wanted, side=self.side, seed=seed).made()
        return GeneratedPicture(
            picture=Image.fromarray(pixels), prompt=prompt, seed=seed, generator_id=self.generator_id, parents=parents
        )

    @cached_property
    def _shelf(self) -> Shelf:
        if self.own is None and not self.pictures:
            raise ConfigError(
                "There are no pictures to compose from.",
                where="generator.pictures",
                fix="Use the generator inside a project, or name a folder with one sub-folder a class.",
            )
        own = self.own if self.own is not None else pictures_of_folder(self.pictures)
        longest = round(min(max(DETAIL * self.side, LONGEST[0]), LONGEST[1]))
        return Shelf(own, longest=longest, least_outline=self.least_outline, n_tried=self.n_tried)


@dataclass(frozen=True, kw_only=True)
class _Composition:
    """One picture."""

    shelf: Shelf
    wanted: Wanted
    side: int
    seed: int

    def made(self) -> tuple[ByteArray, tuple[str, ...]]:
        """Return its pixels and the samples it was made from."""
        changes = self.wanted.changes
        n = NUMBERS[changes.get("count", "one")]
        objects = self.shelf.objects(self.wanted.class_name, n=n, seed=self.seed)
        is_moved = self.wanted.place is not None or n > 1 or bool({"size", "position"} & set(changes))
        pixels, cover, behind = self._composed(objects, n) if is_moved else self._kept(objects[0])
        if "hiding" in changes:
            pixels = partly_hidden(pixels, cover, generator(self.seed, "edit", "hiding"))
        for (change, value), edit in WHOLE_PICTURE.items():
            if changes.get(change) == value:
                pixels = edit(pixels, generator(self.seed, "edit", change, value))
        return pixels, tuple(dict.fromkeys([*(one.sample_id for one in objects), *behind]))

    def _kept(self, one: CutObject) -> tuple[ByteArray, FloatArray, tuple[str, ...]]:
        """Return the object in its own picture."""
        pixels, alpha = own_view(one.cut, one.cut.pixels, side=self.side)
        if (colour := self.wanted.changes.get("colour")) is not None:
            pixels = recoloured(pixels, alpha, colour)
        if self.wanted.changes.get("blur") == "background":
            behind, _ = own_view(one.cut, self.shelf.own_backdrop(one).pixels, side=self.side)
            pixels = mixed(blurred(behind, strength=BACKGROUND_BLUR), pixels, alpha)
        return pixels, alpha, ()

    def _composed(self, objects: Sequence[CutObject], n: int) -> tuple[ByteArray, FloatArray, tuple[str, ...]]:
        """Return objects that were cut out, on a backdrop."""
        changes = self.wanted.changes
        cuts = [objects[number % len(objects)].cut for number in range(n)]
        sprites = [sprite_of(self._coloured(cut), is_mirrored=number >= len(objects)) for number, cut in enumerate(cuts)]
        size, position = changes.get("size", ""), changes.get("position", "")
        places = placements(sprites, class_name=self.wanted.class_name, size=size, position=position, seed=self.seed)
        backdrop, behind = self._backdrop(objects, anchor=ANCHORS[position])
        if changes.get("blur") == "background":
            backdrop = blurred(backdrop, strength=BACKGROUND_BLUR)
        pixels, cover = put_on(backdrop, sprites, places)
        return pixels, cover, behind

    def _coloured(self, cut: Cut) -> Cut:
        colour = self.wanted.changes.get("colour")
        return cut if colour is None else replace(cut, pixels=recoloured(cut.pixels, cut.alpha, colour))

    def _backdrop(self, objects: Sequence[CutObject], *, anchor: tuple[float, float]) -> tuple[ByteArray, tuple[str, ...]]:
        place = self.wanted.place or Place(words="", is_own=True)
        if place.is_own:
            return square_view(self.shelf.own_backdrop(objects[0]), side=self.side, anchor=anchor), ()
        if place.paint:
            return painted(place.paint, side=self.side), ()
        without = frozenset(one.sample_id for one in objects)
        name, backdrop = self.shelf.backdrop(place, class_name=self.wanted.class_name, seed=self.seed, without=without)
        return square_view(backdrop, side=self.side, anchor=anchor), (name,)
