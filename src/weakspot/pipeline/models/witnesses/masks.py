"""Words that the mask of the object tells: its colour, size in the frame and place, and what is behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PIL import Image

from weakspot.assign.object_properties import ObjectMeasures, measure_object
from weakspot.assign.properties import COLOUR_NAMES
from weakspot.core.roles import Segmenter
from weakspot.pipeline.models.witnesses.witness import SEEN, Judge, Looker, above, surely

Measure = Callable[[ObjectMeasures], float]
NOT_TOLD = float("nan")
LEAST_COLOUR, LEAST_BEHIND = 0.3, 0.45
SMALL, LARGE = 0.05, 0.5
PLAIN, CLUTTERED = 0.06, 0.2
_SPELLED = {"gray": "grey", "violet": "purple", "golden": "yellow"}
_BACKGROUND = "background"
_WORDS: dict[str, Measure] = {
    "small in the frame": lambda one: above(one.share, SMALL, width=-0.015),
    "fills the frame": lambda one: above(one.share, LARGE, width=0.06),
    "on the left": lambda one: above(one.across, 0.4, width=-0.03),
    "on the right": lambda one: above(one.across, 0.6, width=0.03),
    "at the top": lambda one: above(one.down, 0.4, width=-0.03),
    "at the bottom": lambda one: above(one.down, 0.6, width=0.03),
    "in the middle": lambda one: above(
        max(abs(one.across - 0.5), abs(one.down - 0.5)), 0.1, width=-0.02
    ),
    "at the edge": lambda one: above(float(one.n_edges), 0.5, width=0.2),
    "on a plain background": lambda one: _behind(one, PLAIN, -0.02),
    "on a cluttered background": lambda one: _behind(one, CLUTTERED, 0.04),
}
_ALSO = {
    "far away": "small in the frame",
    "distant": "small in the frame",
    "close-up": "fills the frame",
    "close up": "fills the frame",
    "large in the frame": "fills the frame",
    "filling the frame": "fills the frame",
    "in the centre": "in the middle",
    "on a blank background": "on a plain background",
}


@dataclass(frozen=True, kw_only=True)
class MaskLooker:
    """Cuts out the object of a class and measures it.

    Args:
        segmenter: gives the masks.
        class_name: what is looked for in every image.
    """

    segmenter: Segmenter
    class_name: str

    @property
    def witness_id(self) -> str:
        return f"witness:masks:1 {self.segmenter.segmenter_id} {self.class_name}"

    @property
    def image_side(self) -> int | None:
        return self.segmenter.image_side

    def speak(self, images: Sequence[Image.Image]) -> list[str]:
        masks = self.segmenter.segment(images, class_names=[self.class_name] * len(images))
        return [
            (
                ObjectMeasures(refused=mask.refused)
                if mask.refused
                else measure_object(image, mask.coverage)
            ).model_dump_json()
            for image, mask in zip(images, masks, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class MasksWitness:
    """Tells colour, size and place of the object itself, where somebody can cut it out; a refused mask tells nothing.

    Args:
        segmenter: gives the masks.
    """

    segmenter: Segmenter
    kind: str = "masks"
    is_by_class: bool = True

    def looker(self, class_name: str) -> Looker:
        return MaskLooker(segmenter=self.segmenter, class_name=class_name)

    def judge(self, words: str) -> Judge | None:
        measure = _measure_for(" ".join(words.lower().split()))
        return None if measure is None else lambda said: _told(said, measure)

    def tags(self, said: str) -> Mapping[str, str]:
        found = ObjectMeasures.model_validate_json(said)
        if found.refused:
            return dict.fromkeys(("object colour", "object in the frame", _BACKGROUND), "")
        size = next(
            (
                word
                for word in ("small in the frame", "fills the frame")
                if _WORDS[word](found) >= SEEN
            ),
            "medium in the frame",
        )
        behind = next(
            (
                word
                for word in ("plain", "cluttered")
                if _WORDS[f"on a {word} background"](found) >= SEEN
            ),
            "",
        )
        return {
            "object colour": _main_colour(found.colours),
            "object in the frame": size,
            _BACKGROUND: behind,
        }

    def phrase(self, said: str) -> str:
        colour = self.tags(said)["object colour"]
        return f"{colour} object" if colour else ""


def _measure_for(plain: str) -> Measure | None:
    known = _WORDS.get(_ALSO.get(plain, plain))
    if known is not None:
        return known
    colour = _colour(plain)
    if colour is not None:
        return lambda one: surely(one.colours[colour], LEAST_COLOUR)
    if plain.startswith("on a") and plain.endswith(f" {_BACKGROUND}"):
        behind = _colour(plain.split(" ", 2)[2].removesuffix(f" {_BACKGROUND}"))
        if behind is not None:
            return lambda one: surely(one.behind[behind], LEAST_BEHIND) if one.behind else NOT_TOLD
    return None


def _colour(word: str) -> int | None:
    name = _SPELLED.get(word, word)
    return COLOUR_NAMES.index(name) if name in COLOUR_NAMES else None


def _behind(one: ObjectMeasures, bound: float, width: float) -> float:
    return NOT_TOLD if one.clutter is None else above(one.clutter, bound, width=width)


def _told(said: str, measure: Measure) -> float:
    found = ObjectMeasures.model_validate_json(said)
    return NOT_TOLD if found.refused else measure(found)


def _main_colour(shares: Sequence[float]) -> str:
    most = max(range(len(shares)), key=lambda place: shares[place])
    return COLOUR_NAMES[most] if shares[most] >= LEAST_BEHIND else ""
