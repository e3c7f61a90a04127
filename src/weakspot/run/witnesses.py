"""Independent witnesses of words: text in the image, objects, scenes, masks and pixels.

Which of them a project has, what each can tell, and what they see in its images; asked only where captions or attributes need it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from difflib import SequenceMatcher
from functools import cache, partial
from importlib.resources import files
from tomllib import loads
from typing import Any, ClassVar, Protocol

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, IntArray, even_part
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ModelError, WeakspotError
from weakspot.core.roles import Embedder, Segmenter
from weakspot.core.run import Progress
from weakspot.core.samples import Attribute, AttributeValue
from weakspot.models.embedded.witnesses import (
    TEXT_FILES,
    ObjectsNetwork,
    ScenesNetwork,
    TextLine,
    TextReader,
    lines_in,
    object_words,
    scene_names,
)
from weakspot.models.packages import RegistryFile
from weakspot.run.embedding import KnowsEmbeddings
from weakspot.run.model_map import ImageBench, ImageTexts
from weakspot.run.settings import WitnessKind, WitnessSettings
from weakspot.words.attribute_columns import AssignedColumn, LeftOut, words_column
from weakspot.words.captions import counted, with_article
from weakspot.words.properties import (
    COLOUR_NAMES,
    SIDE,
    ObjectMeasures,
    measure_looks,
    measure_object,
    measured,
)
from weakspot.words.wordnet import is_kind_of, is_known, lemma

Judge = Callable[[str], float]
"""What was said of an image to how surely something is seen there, 0 to 1."""
SEEN = 0.5
"""From this on a witness has seen it; every scale is set so on photographs that no figure is given for."""


class Looker(Protocol):
    """A part that says something of images; it may have to travel to another process."""

    @property
    def witness_id(self) -> str:
        """Name and hash: what it says is kept by it."""

    @property
    def image_side(self) -> int | None:
        """Shortest image side in pixels that it makes use of; None for full size."""

    def speak(self, images: Sequence[Image.Image]) -> list[str]:
        """Return one text an image, never empty."""


class Witness:
    """Tells certain words from what a part said of an image."""

    kind: ClassVar[WitnessKind]
    is_by_class: ClassVar[bool] = False
    """Whether images of different classes are looked at differently."""

    def looker(self, class_name: str) -> Looker:
        """Return the part that looks at images of a class."""
        raise NotImplementedError

    def judge(self, words: str) -> Judge | None:
        """Return how it tells these words, or None if it cannot.

        Raises:
            UnavailableError: if names that it needs were never fetched and there is no package index.
        """
        raise NotImplementedError

    def tags(self, said: str) -> Mapping[str, str]:  # noqa: ARG002
        """Return the value of each of its attributes, by name; empty where it is not sure."""
        return {}

    def phrase(self, said: str) -> str:
        """Return what it would put into a caption; empty if nothing."""
        raise NotImplementedError


def surely(probability: float, least: float) -> float:
    """Return a probability on the scale on which `least` is one half.

    >>> surely(0.1, 0.1), surely(1.0, 0.1), surely(0.0, 0.1)
    (0.5, 1.0, 0.0)
    """
    inside = probability * (1.0 - least)
    outside = least * (1.0 - probability)
    return inside / (inside + outside) if inside + outside > 0 else 0.0


def above(value: float, least: float, *, width: float) -> float:
    """Return how clearly a number lies above a bound: one half at it, three quarters about one `width` above.

    A negative width means below.

    >>> above(3.0, 3.0, width=1.0), above(2.0, 3.0, width=-1.0) > 0.7
    (0.5, True)
    """
    return float(1.0 / (1.0 + np.exp(np.clip((least - value) / width, -50.0, 50.0))))


CLEARLY = 0.75
BRIGHTNESS, CONTRAST, SHARPNESS, COLOURFULNESS = 0, 1, 2, 4
SQUARES, NOISE, BURNT, LIGHT = 7, 8, 9, 10


Bound = tuple[int, float, float]
"""Where a word begins: on the scale of which measure, at what value, and the width for `above`."""
_GREY: Bound = (COLOURFULNESS, 4.0, -1.0)
BOUNDS: dict[str, tuple[Bound, ...]] = {
    "dark": ((BRIGHTNESS, 0.25, -0.03),),
    "bright": ((BRIGHTNESS, 0.68, 0.03),),
    "overexposed": ((BRIGHTNESS, 0.6, 0.03), (BURNT, 0.1, 0.03)),
    "blurry": ((SHARPNESS, 3.6, -0.4),),
    "black and white": (_GREY,),
    "low contrast": ((CONTRAST, 0.12, -0.02),),
    "pixelated": ((SQUARES, 0.85, 0.03),),
    "noisy": ((NOISE, 4.0, 0.6),),
    "sketch": (_GREY, (LIGHT, 0.6, 0.05)),
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


@dataclass(frozen=True, kw_only=True)
class PropertiesWitness(Witness):
    """Tells light, sharpness, colourfulness and odd looks of the whole image, which it measures itself.

    Attributes have the first three already.
    """

    kind = "properties"
    witness_id: str = "witness:properties:2"
    image_side: int | None = SIDE

    def looker(self, class_name: str) -> Looker:
        del class_name
        return self

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

    def judge(self, words: str) -> Judge | None:
        plain = " ".join(words.lower().split())
        bounds = BOUNDS.get(ALSO.get(plain, plain))
        return None if bounds is None else lambda said: _surely(bounds, json.loads(said))

    def phrase(self, said: str) -> str:
        measures, words = json.loads(said), ("black and white", "dark", "blurry")
        return next((one for one in words if _surely(BOUNDS[one], measures) >= CLEARLY), "")


def _surely(bounds: Sequence[Bound], measures: Sequence[float]) -> float:
    """Return how clearly every bound is kept: the one that is kept least counts."""
    return min(above(measures[number], least, width=width) for number, least, width in bounds)


MIN_OBJECT_PROBABILITY, MIN_PER_CLASS = 0.06, 0.002
"""Many kinds together gather more stray probability than few."""
MIN_OBJECT_NAMED = 0.5
MAX_CLASSES = 420
_WITH = re.compile(r"(?:with |of |showing |next to |beside )?(?:an? |the |some |several )?(.+)")
_IN = re.compile(r"(?:in|on|inside) (?:an? |the |some )?(.+)")
_CONTAINERS = ("container", "bag", "wheeled vehicle")
_UNSEEN = ("person", "body part")
_TWO_MEANINGS = frozenset({"toy", "paper", "glass", "metal", "plastic", "stone", "leather", "tank"})
_ALSO_OBJECTS = {"shopping trolley": "shopping cart", "trolley": "shopping cart"}


@dataclass(frozen=True, kw_only=True)
class ObjectsWitness(Witness):
    """Sees the thousand kinds of objects of ImageNet, and what WordNet puts above them; people are not among them.

    Args:
        network: the network.
    """

    kind = "objects"
    network: ObjectsNetwork

    def looker(self, class_name: str) -> Looker:
        del class_name
        return self.network

    def judge(self, words: str) -> Judge | None:
        noun = object_noun(words)
        classes = frozenset() if noun is None else classes_of(noun)
        if not classes:
            return None
        least = MIN_OBJECT_PROBABILITY + MIN_PER_CLASS * len(classes)
        return lambda said: surely(
            min(sum(p for place, p in _probabilities(said).items() if place in classes), 1.0),
            least,
        )

    def tags(self, said: str) -> Mapping[str, str]:
        return {"object": self.phrase(said)}

    def phrase(self, said: str) -> str:
        """Return the kind of object in the image where the network is sure of it."""
        place, probability = _surest(_probabilities(said))
        return object_words()[place][0].lower() if probability >= MIN_OBJECT_NAMED else ""


def object_noun(words: str) -> str | None:
    """Return the thing that words speak of, or None where they speak of none that can be told.

    What something is in or on is a thing only if things can be put into it: a place is for others to tell.

    >>> [object_noun(words) for words in ("with a dog", "in a basket", "in a kitchen", "green", "with a child")]
    ['dog', 'basket', None, None, None]
    """
    plain = " ".join(words.lower().replace("-", " ").split())
    inside = _IN.fullmatch(plain)
    match = inside or _WITH.fullmatch(plain)
    if match is None:
        return None
    noun = _ALSO_OBJECTS.get(match[1], lemma(match[1]))
    if not is_known(noun, "noun") or is_known(noun, "adj") or noun in _TWO_MEANINGS:
        return None
    if any(is_kind_of(noun, unseen) for unseen in _UNSEEN):
        return None
    if inside and not any(is_kind_of(noun, kind) for kind in _CONTAINERS):
        return None
    return noun


@cache
def classes_of(noun: str) -> frozenset[int]:
    """Return the places of the classes that are a noun or a kind of it; none where that would be nearly everything.

    Raises:
        UnavailableError: if the names of the classes were never fetched and there is no package index.
    """
    found = frozenset(
        place for place, words in enumerate(object_words()) if is_kind_of(words, noun)
    )
    return found if len(found) <= MAX_CLASSES else frozenset()


def _probabilities(said: str) -> dict[int, float]:
    return {int(place): float(value) for place, value in json.loads(said).items()}


def _surest(probabilities: Mapping[int, float]) -> tuple[int, float]:
    return max(probabilities.items(), key=lambda one: one[1], default=(0, 0.0))


MIN_SCENE_PROBABILITY = 0.25
MIN_SCENE_NAMED, MIN_SIDE = 0.8, 0.8
RESPONSE, RESPONSE_WIDTH = -0.4, 0.2
OUTDOORS, INDOORS = "outdoors", "indoors"
_SIDES = {"outdoors": True, "outside": True, "indoors": False, "inside": False}
_PLACE = re.compile(r"(in|on|at|inside|by|near|with|among) (?:an? |the |some )?(.+)")
_WORDS_FILE = "scene_words.toml"
_MISTAKEN = frozenset({"ball pit"})  # what a heap of round things is taken for
_ASIDE = re.compile(r" (indoor|outdoor|exterior|interior|natural|urban|shop|platform)$")


@dataclass(frozen=True, kw_only=True)
class ScenesWitness(Witness):
    """Sees the 365 kinds of places of Places365 and some of SUN's attributes of scenes.

    Args:
        network: the network.
    """

    kind = "scenes"
    network: ScenesNetwork

    def looker(self, class_name: str) -> Looker:
        del class_name
        return self.network

    def judge(self, words: str) -> Judge | None:
        plain = " ".join(words.lower().replace("-", " ").split())
        if plain in _SIDES:
            return partial(_on_side, is_outdoors=_SIDES[plain])
        match = _PLACE.fullmatch(plain)
        if match is None:
            return None
        scenes, attributes = meant_by(lemma(match[2]), is_place=match[1] != "with")
        if not scenes and not attributes:
            return None
        return partial(_judged, scenes=scenes, attributes=attributes)

    def tags(self, said: str) -> Mapping[str, str]:
        outdoors = _on_side(said, is_outdoors=True)
        is_sure = max(outdoors, 1.0 - outdoors) >= MIN_SIDE
        side = (OUTDOORS if outdoors >= SEEN else INDOORS) if is_sure else ""
        return {"kind of place": self._named(said), "indoors or outdoors": side}

    def phrase(self, said: str) -> str:
        name = self._named(said)
        return f"in {counted(name, name)}" if name else self.tags(said)["indoors or outdoors"]

    def _named(self, said: str) -> str:
        place, probability = _surest(_scenes(said))
        name = _ASIDE.sub("", scene_names().scenes[place])
        return name if probability >= MIN_SCENE_NAMED and name not in _MISTAKEN else ""


@cache
def meant_by(noun: str, *, is_place: bool) -> tuple[frozenset[int], frozenset[int]]:
    """Return the places of the scenes and of the attributes that a noun stands for.

    A scene is meant by its own last word, `garden` by `japanese garden`, and by the words of the list that ships.

    Raises:
        UnavailableError: if the names were never fetched and there is no package index.
    """
    names, entry = scene_names(), _listed().get(noun, {})
    scenes = {names.scenes.index(one) for one in entry.get("scenes", ())} if is_place else set()
    if is_place and not entry.get("only", False):
        scenes |= {place for place, name in enumerate(names.scenes) if _is_called(name, noun)}
    attributes = {names.attributes.index(one) for one in entry.get("attributes", ())}
    return frozenset(scenes), frozenset(attributes)


def _is_called(scene: str, noun: str) -> bool:
    return _ASIDE.sub("", scene) == noun or _ASIDE.sub("", scene).endswith(f" {noun}")


@cache
def _listed() -> Mapping[str, Mapping[str, list[str]]]:
    content = files("weakspot.run").joinpath(_WORDS_FILE)
    return loads(content.read_text(encoding="utf-8"))


def _on_side(said: str, *, is_outdoors: bool) -> float:
    names = scene_names()
    scenes = _scenes(said)
    total = sum(scenes.values())
    own = sum(p for place, p in scenes.items() if names.is_outdoors[place])
    outdoors = own / total if total else SEEN
    return outdoors if is_outdoors else 1.0 - outdoors


def _judged(said: str, *, scenes: frozenset[int], attributes: frozenset[int]) -> float:
    found = _scenes(said)
    places = surely(min(sum(found.get(place, 0.0) for place in scenes), 1.0), MIN_SCENE_PROBABILITY)
    responses = json.loads(said)["attributes"]
    attributed = [above(responses[one], RESPONSE, width=RESPONSE_WIDTH) for one in attributes]
    return max([places, *attributed])


def _scenes(said: str) -> dict[int, float]:
    return {int(place): float(value) for place, value in json.loads(said)["scenes"].items()}


TEXT, NO_TEXT = "with text", "without text"
MIN_CONFIDENCE = 0.75
MAX_SHARE = 0.6
MIN_CHARACTERS = 2
MIN_LIKENESS = 0.75
_TEXT = re.compile(
    r"(with |showing |bearing )?(some |a |the )?(visible |written |printed )?"
    r"(text|texts|writing|words|lettering|letters|inscription|caption)"
    r"( on (it|them)| in the image)?"
    r"|with an? (watermark|label|sticker|inscription)"
)
_NO_TEXT = re.compile(r"(without|with no) (any )?(text|writing|words|lettering)")
_WORD = re.compile(r"with the (?:words?|text) [\"'“‘]?(.+?)[\"'”’]?(?: on (?:it|them))?")
_DATED = re.compile(r"with an? (date stamp|date|time ?stamp)")
_PRICED = re.compile(r"with an? (price|price tag|price label)")
_DATE = re.compile(r"(?<!\d)('?\d{2}|\d{4})[-/. ]+\d{1,2}[-/. ]+\d{1,4}")
_PRICE = re.compile(r"(?<![\d.,])\d{1,4}[.,]\d{2}(?![\d.,])|[€$£¥] ?\d|\d ?[€£]|\d{1,4}:-")


@dataclass(frozen=True, kw_only=True)
class TextWitness(Witness):
    """Reads the text in images.

    Args:
        reader: finds and reads it.
    """

    kind = "text"
    reader: TextReader

    def looker(self, class_name: str) -> Looker:
        del class_name
        return self.reader

    def judge(self, words: str) -> Judge | None:
        """Return how words are told: any text, a certain word, a date or a price in it."""
        plain = " ".join(words.lower().split())
        if _TEXT.fullmatch(plain):
            return partial(_best, measure=_any_text)
        if _NO_TEXT.fullmatch(plain):
            return lambda said: 1.0 - _best(said, measure=_any_text)
        for pattern, wanted in ((_DATED, _DATE), (_PRICED, _PRICE)):
            if pattern.fullmatch(plain):
                return partial(_best, measure=partial(_matching, pattern=wanted))
        named = _WORD.fullmatch(plain)
        letters = _letters(named[1]) if named else ""
        return partial(_best, measure=partial(_likeness, wanted=letters)) if letters else None

    def tags(self, said: str) -> Mapping[str, str]:
        return {"text in the image": self.phrase(said) or NO_TEXT}

    def phrase(self, said: str) -> str:
        return TEXT if _best(said, measure=_any_text) >= SEEN else ""


def _best(said: str, *, measure: Callable[[TextLine], float]) -> float:
    """Return the best of all lines but those that cover nearly all of the image or have one character: patterns, not text."""
    plausible = [
        line
        for line in lines_in(said)
        if line.share <= MAX_SHARE and len(_letters(line.text)) >= MIN_CHARACTERS
    ]
    return max(map(measure, plausible), default=0.0)


def _any_text(line: TextLine) -> float:
    return surely(line.confidence, MIN_CONFIDENCE)


def _matching(line: TextLine, *, pattern: re.Pattern[str]) -> float:
    return surely(line.confidence, MIN_CONFIDENCE) if pattern.search(line.text) else 0.0


def _likeness(line: TextLine, *, wanted: str) -> float:
    """Return how much a line, or one of its words, is like a word; letters that are misread cost a part."""
    text = _letters(line.text)
    candidates = [_letters(word) for word in line.text.split()] + [text]
    likeness = max(SequenceMatcher(None, one, wanted).ratio() for one in candidates)
    likeness = 1.0 if wanted in text else likeness
    return surely(likeness, MIN_LIKENESS) * min(1.0, surely(line.confidence, 0.5))


def _letters(text: str) -> str:
    return "".join(one for one in text.lower() if one.isalnum())


Measure = Callable[[ObjectMeasures], float]
NOT_TOLD = float("nan")
MIN_COLOUR, MIN_BEHIND = 0.3, 0.45
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
_ALSO_MASK_WORDS = {
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
class MasksWitness(Witness):
    """Tells colour, size and place of the object itself, where somebody can cut it out; a refused mask tells nothing.

    Args:
        segmenter: gives the masks.
    """

    kind = "masks"
    is_by_class = True
    segmenter: Segmenter

    def looker(self, class_name: str) -> Looker:
        return MaskLooker(segmenter=self.segmenter, class_name=class_name)

    def judge(self, words: str) -> Judge | None:
        measure = _measure_for(" ".join(words.lower().split()))
        return None if measure is None else lambda said: _told(said, measure)

    def tags(self, said: str) -> Mapping[str, str]:
        found = ObjectMeasures.model_validate_json(said)
        if found.refused:
            return dict.fromkeys(("object colour", "object in the frame", _BACKGROUND), "")
        sizes, sides = ("small in the frame", "fills the frame"), ("plain", "cluttered")
        size = next((one for one in sizes if _WORDS[one](found) >= SEEN), "medium in the frame")
        behind = next((one for one in sides if _WORDS[f"on a {one} background"](found) >= SEEN), "")
        most = max(range(len(found.colours)), key=lambda place: found.colours[place])
        return {
            "object colour": COLOUR_NAMES[most] if found.colours[most] >= MIN_BEHIND else "",
            "object in the frame": size,
            _BACKGROUND: behind,
        }

    def phrase(self, said: str) -> str:
        colour = self.tags(said)["object colour"]
        return f"{colour} object" if colour else ""


def _measure_for(plain: str) -> Measure | None:
    known = _WORDS.get(_ALSO_MASK_WORDS.get(plain, plain))
    if known is not None:
        return known
    colour = _colour(plain)
    if colour is not None:
        return lambda one: surely(one.colours[colour], MIN_COLOUR)
    if plain.startswith("on a") and plain.endswith(f" {_BACKGROUND}"):
        behind = _colour(plain.split(" ", 2)[2].removesuffix(f" {_BACKGROUND}"))
        if behind is not None:
            return lambda one: surely(one.behind[behind], MIN_BEHIND) if one.behind else NOT_TOLD
    return None


def _colour(word: str) -> int | None:
    name = _SPELLED.get(word, word)
    return COLOUR_NAMES.index(name) if name in COLOUR_NAMES else None


def _behind(one: ObjectMeasures, bound: float, width: float) -> float:
    return NOT_TOLD if one.clutter is None else above(one.clutter, bound, width=width)


def _told(said: str, measure: Measure) -> float:
    found = ObjectMeasures.model_validate_json(said)
    return NOT_TOLD if found.refused else measure(found)


OWN_MODELS = "weakspot.models."
WITNESS_FILES: dict[WitnessKind, tuple[RegistryFile, ...]] = {
    "text": TEXT_FILES,
    "objects": ObjectsNetwork.files,
    "scenes": ScenesNetwork.files,
}
"""What is fetched when a witness is first asked."""


def build_witnesses(
    settings: WitnessSettings,
    *,
    embedder: Embedder | None,
    segmenter: Segmenter | None,
    providers: Sequence[str] | None = None,
    progress: Progress,
) -> tuple[Witness, ...]:
    """Return the configured witnesses; none of them fetches or loads anything before it is asked.

    Where they only come when asked, they stand beside encoders that learnt their words from photographs: an embedder that was handed
    over, or looks at no image, is taken at its word.

    Args:
        settings: section `witnesses` of weakspot.toml.
        embedder: whose words are to be witnessed.
        segmenter: cuts out objects; None if there is none.
        providers: execution providers of their networks; None for the best that starts.
        progress: told the bytes of a first download.
    """
    is_ours = (
        embedder is not None
        and embedder.has_text
        and not isinstance(embedder, KnowsEmbeddings)
        and type(embedder).__module__.startswith(OWN_MODELS)
    )
    if settings.on == "none" or (settings.on == "asked" and not is_ours):
        return ()
    given: dict[str, Any] = {"providers": providers, "progress": progress}
    every: dict[str, Witness] = {
        "text": TextWitness(reader=TextReader(**given)),
        "objects": ObjectsWitness(network=ObjectsNetwork(**given)),
        "scenes": ScenesWitness(network=ScenesNetwork(**given)),
        "properties": PropertiesWitness(),
    }
    if segmenter is not None:
        every["masks"] = MasksWitness(segmenter=segmenter)
    return tuple(every[kind] for kind in settings.kinds if kind in every)


STAGE = "witnesses"
ANYTHING = "object"


@dataclass(kw_only=True, eq=False)
class Seeing:
    """Asks witnesses about rows: each image is looked at once by each witness that can tell the words, and that is kept.

    A witness that is not there, or fails, is left out for good and named in `problems`.

    Args:
        witnesses: who there is.
        bench: where they are asked about the images of a data set.
        most_asked: of more rows than this, so many at even steps are looked at and the others stay unknown; None for no end.
        problems: why a witness cannot be asked, by kind.
    """

    witnesses: tuple[Witness, ...]
    bench: ImageBench
    most_asked: int | None = None
    problems: dict[str, str] = field(default_factory=dict)
    _texts: dict[str, ImageTexts] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, rows: IntArray, words: str) -> FloatArray | None:
        """Return how surely the words are seen in each image [n]; None where no witness can tell them.

        Of several witnesses the surest counts; an image that none could look at is not a number.
        """
        every_row = np.arange(len(rows))
        chosen = every_row if self.most_asked is None else even_part(every_row, self.most_asked)
        found = [
            np.array([judge(said) if said else np.nan for said in texts], dtype=np.float64)
            for texts, judge in self._judged(rows[chosen], words)
        ]
        if not found:
            return None
        every = np.where(np.isnan(found), -np.inf, found).max(axis=0)
        scores = np.full(len(rows), np.nan, dtype=np.float32)
        scores[chosen] = np.where(np.isinf(every), np.nan, every)
        return scores

    def said(self, witness: Witness, rows: IntArray) -> list[str]:
        """Return what a witness says of images, one text a row; empty where it could not look.

        Raises:
            ModelError: if the witness cannot be asked at all.
        """
        said = np.full(len(rows), "", dtype=object)
        for class_name, places in self._groups(witness, rows):
            looker = witness.looker(class_name)
            said[places] = self._texts_of(witness, looker).said(rows[places], looker.speak)
        return [str(text) for text in said]

    def try_said(self, witness: Witness, rows: IntArray) -> list[str]:
        """Return what `said` returns; nothing, and a note, if the witness cannot be asked."""
        if witness.kind not in self.problems:
            try:
                return self.said(witness, rows)
            except WeakspotError as error:
                self.problems[witness.kind] = str(error)
        return [""] * len(rows)

    def _texts_of(self, witness: Witness, looker: Looker) -> ImageTexts:
        identity = looker.witness_id
        if identity not in self._texts:
            self._texts[identity] = ImageTexts(
                self.bench,
                who=f"witness {witness.kind!r}",
                part=looker,
                identity=lambda: identity,
                step=STAGE,
            )
        return self._texts[identity]

    def ids(self) -> dict[str, str]:
        """Return who can be asked, with hashes."""
        return {f"witness {one.kind}": one.looker(ANYTHING).witness_id for one in self.witnesses}

    def notes(self) -> tuple[str, ...]:
        """Return who could not be asked, in sentences."""
        return tuple(
            f"The witness {kind!r} was not asked: {why}" for kind, why in self.problems.items()
        )

    def _judged(self, rows: IntArray, words: str) -> Iterator[tuple[list[str], Judge]]:
        for witness in self.witnesses:
            if (judge := self._judge(witness, words)) is not None:
                said = self.try_said(witness, rows)
                if witness.kind not in self.problems:
                    yield said, judge

    def _judge(self, witness: Witness, words: str) -> Judge | None:
        if witness.kind in self.problems:
            return None
        try:
            return witness.judge(words)
        except WeakspotError as error:
            self.problems[witness.kind] = str(error)
            return None

    def _groups(self, witness: Witness, rows: IntArray) -> list[tuple[str, IntArray]]:
        """Return class names and the places of their rows; one group for a witness that looks at all classes alike."""
        dataset = self.bench.dataset
        if not witness.is_by_class or dataset.task is not Task.SINGLE_LABEL:
            return [(ANYTHING, np.arange(len(rows)))]
        names, codes = (*dataset.class_names, ANYTHING), dataset.labels[rows]
        return [(names[code], np.flatnonzero(codes == code)) for code in np.unique(codes)]


OBJECT, LOOK = "objects", "properties"


def tag_captions(seeing: Seeing, rows: IntArray) -> list[str]:
    """Return one caption a row, made of what each witness is sure of; empty where none could look.

    Raises:
        ModelError: if no witness can be asked.
    """
    phrases: list[dict[str, str]] = [{} for _ in rows]
    for witness in seeing.witnesses:
        for own, said in zip(phrases, seeing.try_said(witness, rows), strict=True):
            own.update({witness.kind: witness.phrase(said)} if said else {})
    if seeing.witnesses and all(one.kind in seeing.problems for one in seeing.witnesses):
        raise ModelError(" ".join(seeing.notes()))
    return [caption_of(one) if one else "" for one in phrases]


def caption_of(phrases: Mapping[str, str]) -> str:
    """Return a caption from what witnesses say, by kind.

    >>> caption_of({"text": "with text", "objects": "lemon", "scenes": "in a supermarket", "properties": "dark"})
    'a dark photo of a lemon with text, in a supermarket'
    >>> caption_of({"text": "", "objects": "", "masks": "green object"})
    'a photo, green object'
    """
    look, thing = phrases.get(LOOK, ""), phrases.get(OBJECT, "")
    caption = with_article(f"{look} photo".strip()) + (
        f" of {with_article(thing)}" if thing else ""
    )
    for kind, phrase in phrases.items():
        if phrase and kind not in {LOOK, OBJECT}:
            caption += f" {phrase}" if phrase.startswith("with ") else f", {phrase}"
    return caption


def tag_values(seeing: Seeing, rows: IntArray) -> dict[str, list[str]]:
    """Return the values of all attributes that witnesses give, by name, one a row; empty where they are not sure."""
    found: dict[str, list[str]] = {}
    for witness in seeing.witnesses:
        tags = [witness.tags(said) if said else {} for said in seeing.try_said(witness, rows)]
        names = dict.fromkeys(name for one in tags for name in one)
        found |= {name: [one.get(name, "") for one in tags] for name in names}
    return found


MIN_SAMPLES = 3
MAX_VALUES = 40


def witnessed_columns(
    seeing: Seeing, dataset: Dataset, settings: WitnessSettings, notes: list[str]
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield a column for every attribute of the witnesses; a value that few samples have is kept, one that hardly any has is not."""
    if settings.on == "asked" and len(dataset) > settings.most_images:
        notes.append(
            f"Witnesses were not asked about all {len(dataset)} images, more than witnesses.most_images; "
            'set [witnesses] on = "all" to ask them.'
        )
        return
    for name, values in tag_values(seeing, np.arange(len(dataset))).items():
        yield _column(name, values)
    notes += seeing.notes()


def _column(name: str, values: Sequence[str]) -> AssignedColumn | LeftOut:
    counts = Counter(value for value in values if value)
    kept = tuple(value for value, count in counts.most_common(MAX_VALUES) if count >= MIN_SAMPLES)
    if len(kept) < 2:  # noqa: PLR2004 - two values to tell apart
        return LeftOut(name=name, why="hardly any image has a second value of it")
    codes = {value: code for code, value in enumerate(kept)}
    attribute = Attribute(
        name=name,
        column=name,
        source="property",
        values=tuple(
            AttributeValue(value=value, share=round(counts[value] / len(values), 6))
            for value in kept
        ),
        missing_share=round(sum(value not in codes for value in values) / len(values), 6),
    )
    return AssignedColumn(
        attribute=attribute,
        column=words_column(np.array([codes.get(value, -1) for value in values]), kept),
    )
