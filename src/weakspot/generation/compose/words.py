"""Words that composing understands by themselves: what each of them changes. Places are not here: the images decide on them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Change = Literal[
    "count",
    "colour",
    "size",
    "position",
    "pose",
    "light",
    "weather",
    "blur",
    "hiding",
    "text",
    "look",
    "place",
]


class Said(NamedTuple):
    """What some words change, and to what."""

    change: Change
    value: str


OWN_PLACE = "own"
OWN_COLOUR = "own"

# Lightness, and the two axes of colour (green to red, blue to yellow), as CIE Lab has them.
COLOURS: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "red": (46.0, 62.0, 40.0),
        "orange": (66.0, 40.0, 64.0),
        "yellow": (84.0, -4.0, 72.0),
        "green": (56.0, -44.0, 44.0),
        "blue": (44.0, 10.0, -54.0),
        "purple": (40.0, 48.0, -42.0),
        "pink": (74.0, 40.0, 2.0),
        "brown": (38.0, 20.0, 30.0),
        "white": (93.0, 0.0, 2.0),
        "grey": (56.0, 0.0, 0.0),
        "black": (14.0, 0.0, 0.0),
    }
)
PLAIN = (78.0, 0.0, 2.0)

_SPELLINGS: Mapping[Said, tuple[str, ...]] = {
    Said("count", "one"): ("one", "single"),
    Said("count", "two"): ("two", "pair of", "both"),
    Said("count", "three"): ("three", "several"),
    Said("colour", "grey"): ("gray",),
    Said("colour", "purple"): ("violet",),
    Said("colour", OWN_COLOUR): ("in its own colour", "in its own color"),
    Said("size", "small"): ("small", "tiny", "little", "far away", "distant", "in the distance", "distant photo"),
    Said("size", "medium"): ("medium", "medium sized"),
    Said("size", "large"): ("large", "big", "huge", "close up", "closeup", "close up photo", "from nearby"),
    Said("position", "left"): ("on the left", "on the left side", "at the left", "to the left", "left"),
    Said("position", "right"): ("on the right", "on the right side", "at the right", "to the right", "right"),
    Said("position", "top"): ("at the top", "on the top side", "in the upper part", "above the middle", "top"),
    Said("position", "bottom"): ("at the bottom", "on the bottom side", "in the lower part", "below the middle", "bottom"),
    Said("position", "middle"): ("in the middle", "in the centre", "in the center", "middle", "centred", "centered"),
    Said("light", "normal"): ("in normal light", "in daylight"),
    Said("light", "dark"): (
        "dark", "in the dark", "in darkness", "at night", "by night", "in the night", "in dim light", "in low light", "dim",
        "poorly lit", "dimly lit", "unlit", "underexposed", "in the shade", "in shadow",
    ),
    Said("light", "bright"): (
        "bright", "in bright light", "in bright sunlight", "in the sun", "in sunlight", "in bright sun",
        "brightly lit", "sunny", "overexposed",
    ),
    Said("weather", "fog"): ("foggy", "misty", "hazy", "in fog", "in the fog", "in mist", "in the mist", "in haze", "there is fog"),
    Said("weather", "rain"): ("rainy", "raining", "in rain", "in the rain", "there is rain", "in rainy weather"),
    Said("weather", "snow"): ("snowing", "snowy", "in falling snow", "in snowfall", "in a snowfall", "there is snowfall"),
    Said("blur", "all"): ("blurry", "blurred", "out of focus", "unfocused", "unsharp"),
    Said("blur", "background"): (
        "background is blurred", "background is blurry", "background is out of focus", "blurred background", "blurry background",
        "out of focus background", "on a blurred background", "on a blurry background", "with a blurred background",
        "with a blurry background", "in front of a blurred background", "on an out of focus background",
    ),
    Said("hiding", "part"): tuple(
        f"{much}{how}"
        for much in ("partly ", "partially ", "half ", "")
        for how in ("hidden", "covered", "occluded", "obscured", "concealed")
    ),
    Said("pose", "upside down"): ("upside down", "turned upside down"),
    Said("pose", "tilted"): ("tilted", "at an angle", "slanted", "rotated"),
    Said("pose", "mirrored"): ("mirrored", "mirror image of"),
    Said("text", "over"): tuple(
        f"{start} {what}{end}"
        for start in ("with", "there is")
        for what in ("text", "writing", "a text", "a watermark", "a caption")
        for end in (" over it", " on it", "")
    ),
    Said("look", "grey"): (
        "black and white photo", "black and white photograph", "black and white image", "in black and white", "greyscale",
        "grayscale", "monochrome",
    ),
    Said("look", "noisy"): ("noisy", "grainy"),
    Said("look", "pixelated"): ("pixelated", "in low resolution", "low resolution"),
    Said("place", OWN_PLACE): ("on its own background", "on the same background", "in its own place"),
}  # fmt: skip


def _phrases() -> dict[tuple[str, ...], Said]:
    known: dict[tuple[str, ...], Said] = {(colour,): Said("colour", colour) for colour in COLOURS}
    for said, spellings in _SPELLINGS.items():
        known.update({tuple(spelling.split(" ")): said for spelling in spellings})
    return dict(sorted(known.items(), key=lambda item: -len(item[0])))


PHRASES: Mapping[tuple[str, ...], Said] = MappingProxyType(_phrases())
"""All words that change something, longest first; single words only count where they do not belong to a place."""

# Snow is a place before it is weather: the ground is looked for among the images first.
PLACES_THAT_ARE_WEATHER: Mapping[str, Said] = MappingProxyType({"snow": Said("weather", "snow")})
PLACES_IN_ONE_WORD = frozenset({"outdoors", "indoors", "outside", "underwater"})
PLACE_STARTS: tuple[tuple[str, ...], ...] = tuple(
    tuple(words.split(" "))
    for words in (
        "in front of", "on top of", "the background is", "the background shows", "there is", "there are", "next to",
        "surrounded by",
        "on", "in", "at", "near", "beside", "by", "against", "among", "amid", "inside", "with", "upon", "onto",
    )
)  # fmt: skip
CARRY_NOTHING = frozenset(
    {
        "a", "an", "the", "of", "it", "its", "is", "are", "this", "these", "that", "which", "there", "and", "they",
        "here", "photo", "photos", "photograph", "photographs", "picture", "pictures", "image", "images", "realistic",
        "shows", "showing",
    }
)  # fmt: skip
ARTICLES = frozenset({"a", "an", "the", "some", "its"})

WHAT_CAN_BE_SAID: Mapping[str, str] = MappingProxyType(
    {
        "number": "one, two, three",
        "colour of the object": ", ".join(COLOURS),
        "size": "small, medium, large",
        "position": "left, right, top, bottom, middle",
        "light": "dark (at night), bright",
        "weather": "fog, rain, snow",
        "sharpness": "blurred, blurred background",
        "pose": "mirrored, tilted, upside down",
        "hiding": "partly hidden",
        "writing": "with text",
        "look": "black and white photo, noisy, pixelated",
    }
)
