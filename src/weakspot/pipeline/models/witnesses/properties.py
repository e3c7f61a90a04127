"""Words that pixels tell without any model: dark, overexposed, blurry, black and white, pixelated, noisy, sketch."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field

from PIL import Image

from weakspot.assign.looks import measure_looks
from weakspot.assign.properties import SIDE, measured
from weakspot.pipeline.models.witnesses.witness import Judge, Looker, above

CLEARLY = 0.75
BRIGHTNESS, CONTRAST, SHARPNESS, COLOURFULNESS = 0, 1, 2, 4
SQUARES, NOISE, BURNT, LIGHT = 7, 8, 9, 10


@dataclass(frozen=True)
class _Bound:
    """Where a word begins on the scale of a measure; a negative width means below."""

    measure: int
    least: float
    width: float


_GREY = _Bound(COLOURFULNESS, 4.0, -1.0)
BOUNDS: dict[str, tuple[_Bound, ...]] = {
    "dark": (_Bound(BRIGHTNESS, 0.25, -0.03),),
    "bright": (_Bound(BRIGHTNESS, 0.68, 0.03),),
    "overexposed": (_Bound(BRIGHTNESS, 0.6, 0.03), _Bound(BURNT, 0.1, 0.03)),
    "blurry": (_Bound(SHARPNESS, 3.6, -0.4),),
    "black and white": (_GREY,),
    "low contrast": (_Bound(CONTRAST, 0.12, -0.02),),
    "pixelated": (_Bound(SQUARES, 0.85, 0.03),),
    "noisy": (_Bound(NOISE, 4.0, 0.6),),
    "sketch": (_GREY, _Bound(LIGHT, 0.6, 0.05)),
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
    "grainy": "noisy",
    "pencil sketch": "sketch",
}


@dataclass(frozen=True)
class PropertiesLooker:
    """Measures images as `weakspot.assign.properties` and `weakspot.assign.looks` do."""

    witness_id: str = "witness:properties:2"
    image_side: int | None = SIDE

    def speak(self, images: Sequence[Image.Image]) -> list[str]:
        return [
            json.dumps(
                [
                    round(float(value), 4)
                    for value in (*measured(image), *astuple(measure_looks(image)))
                ]
            )
            for image in images
        ]


@dataclass(frozen=True, kw_only=True)
class PropertiesWitness:
    """Tells light, sharpness, colourfulness and odd looks of the whole image; attributes have the first three already."""

    kind: str = "properties"
    is_by_class: bool = False
    part: PropertiesLooker = field(default_factory=PropertiesLooker)

    def looker(self, class_name: str) -> Looker:
        del class_name
        return self.part

    def judge(self, words: str) -> Judge | None:
        plain = " ".join(words.lower().split())
        bounds = BOUNDS.get(ALSO.get(plain, plain))
        return None if bounds is None else lambda said: _surely(bounds, json.loads(said))

    def tags(self, said: str) -> Mapping[str, str]:
        del said
        return {}

    def phrase(self, said: str) -> str:
        found = json.loads(said)
        names = ("black and white", "dark", "blurry")
        seen = (one for one in names if self._is_seen(one, found))
        return next(seen, "")

    def _is_seen(self, word: str, found: Sequence[float]) -> bool:
        return _surely(BOUNDS[word], found) >= CLEARLY


def _surely(bounds: Sequence[_Bound], found: Sequence[float]) -> float:
    """Return how clearly every bound is kept: the one that is kept least counts."""
    return min(above(found[one.measure], one.least, width=one.width) for one in bounds)
