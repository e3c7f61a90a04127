"""Words that pixels tell without any model: dark, bright, blurry, black and white."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from PIL import Image

from weakspot.assign.properties import SIDE, measured
from weakspot.pipeline.models.witnesses.witness import Judge, Looker, above

CLEARLY = 0.75
BRIGHTNESS, CONTRAST, SHARPNESS, COLOURFULNESS = 0, 1, 2, 4


@dataclass(frozen=True)
class _Bound:
    """Where a word begins on the scale of a measure; a negative width means below."""

    measure: int
    least: float
    width: float


BOUNDS = {
    "dark": _Bound(BRIGHTNESS, 0.25, -0.03),
    "bright": _Bound(BRIGHTNESS, 0.68, 0.03),
    "overexposed": _Bound(BRIGHTNESS, 0.8, 0.03),
    "blurry": _Bound(SHARPNESS, 3.6, -0.4),
    "black and white": _Bound(COLOURFULNESS, 4.0, -1.0),
    "low contrast": _Bound(CONTRAST, 0.12, -0.02),
}
ALSO = {
    "blurred": "blurry",
    "out of focus": "blurry",
    "dim": "dark",
    "poorly lit": "dark",
    "grayscale": "black and white",
    "greyscale": "black and white",
    "monochrome": "black and white",
    "washed out": "low contrast",
}


@dataclass(frozen=True)
class PropertiesLooker:
    """Measures images as `weakspot.assign.properties` does."""

    witness_id: str = "witness:properties:1"
    image_side: int | None = SIDE

    def speak(self, images: Sequence[Image.Image]) -> list[str]:
        return [
            json.dumps([round(float(value), 4) for value in measured(image)]) for image in images
        ]


@dataclass(frozen=True, kw_only=True)
class PropertiesWitness:
    """Tells light, sharpness and colourfulness of the whole image; the attributes of the project have them already."""

    kind: str = "properties"
    is_by_class: bool = False
    part: PropertiesLooker = field(default_factory=PropertiesLooker)

    def looker(self, class_name: str) -> Looker:
        del class_name
        return self.part

    def judge(self, words: str) -> Judge | None:
        plain = " ".join(words.lower().split())
        bound = BOUNDS.get(ALSO.get(plain, plain))
        if bound is None:
            return None
        return lambda said: above(json.loads(said)[bound.measure], bound.least, width=bound.width)

    def tags(self, said: str) -> Mapping[str, str]:
        del said
        return {}

    def phrase(self, said: str) -> str:
        found = json.loads(said)
        names = ("black and white", "dark", "blurry")
        seen = (one for one in names if self._is_seen(one, found))
        return next(seen, "")

    def _is_seen(self, word: str, found: Sequence[float]) -> bool:
        bound = BOUNDS[word]
        return above(found[bound.measure], bound.least, width=bound.width) >= CLEARLY
