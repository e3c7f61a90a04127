"""Reading a prompt: the class it is about, what is to be changed, and the place, with nothing passed over in silence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from types import MappingProxyType
from typing import Literal

from weakspot.core.errors import RefusedPromptError
from weakspot.core.generated import OwnImages
from weakspot.words.captions import counting_of, noun_of
from weakspot.words.meanings import same_contrast
from weakspot.words.wordnet import lemma

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


SpokenPart = tuple[Change, str]
"""What some words change, and to what."""

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

_SPELLINGS: Mapping[SpokenPart, tuple[str, ...]] = {
    ("count", "one"): ("one", "single"),
    ("count", "two"): ("two", "pair of", "both"),
    ("count", "three"): ("three", "several"),
    ("colour", "grey"): ("gray",),
    ("colour", "purple"): ("violet",),
    ("colour", OWN_COLOUR): ("in its own colour", "in its own color"),
    ("size", "small"): ("small", "tiny", "little", "far away", "distant", "in the distance", "distant photo"),
    ("size", "medium"): ("medium", "medium sized"),
    ("size", "large"): ("large", "big", "huge", "close up", "closeup", "close up photo", "from nearby"),
    ("position", "left"): ("on the left", "on the left side", "at the left", "to the left", "left"),
    ("position", "right"): ("on the right", "on the right side", "at the right", "to the right", "right"),
    ("position", "top"): ("at the top", "on the top side", "in the upper part", "above the middle", "top"),
    ("position", "bottom"): ("at the bottom", "on the bottom side", "in the lower part", "below the middle", "bottom"),
    ("position", "middle"): ("in the middle", "in the centre", "in the center", "middle", "centred", "centered"),
    ("light", "normal"): ("in normal light", "in daylight"),
    ("light", "dark"): (
        "dark", "in the dark", "in darkness", "at night", "by night", "in the night", "in dim light", "in low light", "dim",
        "poorly lit", "dimly lit", "unlit", "underexposed", "in the shade", "in shadow",
    ),
    ("light", "bright"): (
        "bright", "in bright light", "in bright sunlight", "in the sun", "in sunlight", "in bright sun",
        "brightly lit", "sunny", "overexposed",
    ),
    ("weather", "fog"): ("foggy", "misty", "hazy", "in fog", "in the fog", "in mist", "in the mist", "in haze", "there is fog"),
    ("weather", "rain"): ("rainy", "raining", "in rain", "in the rain", "there is rain", "in rainy weather"),
    ("weather", "snow"): ("snowing", "snowy", "in falling snow", "in snowfall", "in a snowfall", "there is snowfall"),
    ("blur", "all"): ("blurry", "blurred", "out of focus", "unfocused", "unsharp"),
    ("blur", "background"): (
        "background is blurred", "background is blurry", "background is out of focus", "blurred background", "blurry background",
        "out of focus background", "on a blurred background", "on a blurry background", "with a blurred background",
        "with a blurry background", "in front of a blurred background", "on an out of focus background",
    ),
    ("hiding", "part"): tuple(
        f"{much}{how}"
        for much in ("partly ", "partially ", "half ", "")
        for how in ("hidden", "covered", "occluded", "obscured", "concealed")
    ),
    ("pose", "upside down"): ("upside down", "turned upside down"),
    ("pose", "tilted"): ("tilted", "at an angle", "slanted", "rotated"),
    ("pose", "mirrored"): ("mirrored", "mirror image of"),
    ("text", "over"): tuple(
        f"{start} {what}{end}"
        for start in ("with", "there is")
        for what in ("text", "writing", "a text", "a watermark", "a caption")
        for end in (" over it", " on it", "")
    ),
    ("look", "grey"): (
        "black and white photo", "black and white photograph", "black and white image", "in black and white", "greyscale",
        "grayscale", "monochrome",
    ),
    ("look", "noisy"): ("noisy", "grainy"),
    ("look", "pixelated"): ("pixelated", "in low resolution", "low resolution"),
    ("place", OWN_PLACE): ("on its own background", "on the same background", "in its own place"),
}  # fmt: skip


def _phrases() -> dict[tuple[str, ...], SpokenPart]:
    known: dict[tuple[str, ...], SpokenPart] = {(colour,): ("colour", colour) for colour in COLOURS}
    for said, spellings in _SPELLINGS.items():
        known.update({tuple(spelling.split(" ")): said for spelling in spellings})
    return dict(sorted(known.items(), key=lambda item: -len(item[0])))


PHRASES: Mapping[tuple[str, ...], SpokenPart] = MappingProxyType(_phrases())
"""All words that change something, longest first; single words only count where they do not belong to a place."""

# Snow is a place before it is weather: the ground is looked for among the images first.
PLACES_THAT_ARE_WEATHER: Mapping[str, SpokenPart] = MappingProxyType({"snow": ("weather", "snow")})
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


MAX_LISTED = 30
_PIECES = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[().,;:!?]")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the object is to be.

    Args:
        words: as the prompt says them.
        candidates: ids of images that show the place, best first.
        paint: name of a colour for a plain backdrop, where no image shows the place; empty otherwise.
        is_own: whether the object stays where it is, cut out and put back: the control for every other place.
    """

    words: str
    candidates: tuple[str, ...] = ()
    paint: str = ""
    is_own: bool = False


ObjectRequirement = Literal["found", "parted", "whole"]
"""What is asked of an object: to be found, to be parted from what is behind it, to be whole so that it can be moved."""


@dataclass(frozen=True, kw_only=True)
class EditRequest:
    """What a prompt asks for.

    Args:
        class_name: the class, as the images name it.
        changes: value by kind of change; kinds that the prompt leaves open are missing.
        place: None to leave the object in its own image.
    """

    class_name: str
    changes: dict[Change, str] = field(default_factory=dict)
    place: Place | None = None

    @property
    def demand(self) -> ObjectRequirement:
        """What is asked of the object's mask."""
        is_several = self.changes.get("count", "one") != "one"
        if is_several or {"size", "position"} & set(self.changes):
            return "whole"
        return "found" if self.place is None else "parted"


def read_prompt(prompt: str, own: OwnImages) -> EditRequest:
    """Return what a prompt asks for.

    Raises:
        RefusedPromptError: if it names no class, contradicts itself, or says anything that cannot be generated from these images.
    """
    return _Reader(prompt, own).wanted()


def describe_possible_prompts(own: OwnImages) -> str:
    classes = _listed([noun_of(name) for name in own.class_names])
    places = (
        _listed(own.background_words)
        if own.background_words
        else "plain ones only (on a white background)"
    )
    return "; ".join(
        [
            f"classes: {classes}",
            f"backgrounds: {places}",
            *(f"{kind}: {words}" for kind, words in WHAT_CAN_BE_SAID.items()),
        ]
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


def _words_of(prompt: str) -> list[tuple[str, int, bool]]:
    """Return words, each with the number of its clause and whether it stands in brackets."""
    words, clause, depth = [], 0, 0
    for piece in _PIECES.findall(prompt.lower()):
        if piece in "()":
            depth = max(0, depth + (1 if piece == "(" else -1))
        elif piece[0].isalnum():
            words.append((piece, clause, depth > 0))
        else:
            clause += 1
    return words


class _Reader:
    """One prompt under way: words that are understood are taken, and none may be left in the end."""

    def __init__(self, prompt: str, own: OwnImages) -> None:
        self._prompt = prompt
        self._own = own
        words = _words_of(prompt)
        self._texts = [text for text, _, _ in words]
        self._clauses = [clause for _, clause, _ in words]
        self._is_bracketed = [is_bracketed for _, _, is_bracketed in words]
        self._is_free = [True] * len(words)
        self._changes: dict[Change, str] = {}
        self._places: list[Place] = []
        self._unknown: list[str] = []
        self._is_plural = False

    def wanted(self) -> EditRequest:
        class_name = self._class_name()
        self._take_phrases(shortest=2)
        self._take_places()
        self._take_phrases(shortest=1)
        self._take_single_places()
        self._unknown += self._left_over()
        if self._unknown:
            named = ", ".join(repr(words) for words in self._unknown)
            raise self._refusal(
                f"The prompt says something that cannot be composed from the images: {named}."
            )
        if self._is_plural:
            self._changes.setdefault("count", "two")
        return EditRequest(class_name=class_name, changes=self._changes, place=self._place())

    # ------------------------------------------------------------------------------------------------ the class

    def _class_name(self) -> str:
        found = [
            (start, size, name)
            for name in self._own.class_names
            for start, size in self._mentions(name)
        ]
        if not found:
            raise self._refusal("The prompt names no class of the images.")
        first_place = next(
            (start for start in range(len(self._texts)) if self._place_start_at(start)),
            len(self._texts),
        )
        start, size, name = max(
            found, key=lambda mention: (mention[0] < first_place, mention[1], mention[0])
        )
        self._take(start, size)
        for again, length in self._mentions(name):
            if again and self._texts[again - 1] in ("the", "this"):
                self._take(again, length)
        for position in compress(range(len(self._texts)), self._is_bracketed):
            self._is_free[position] = False
        self._is_plural = _is_plural(self._texts[start : start + size], name)
        return name

    def _mentions(self, class_name: str) -> Iterator[tuple[int, int]]:
        named = [text for text, _, _ in _words_of(noun_of(class_name))]
        for start in range(len(self._texts) - len(named) + 1 if named else 0):
            if (
                self._is_free[start]
                and not self._is_bracketed[start]
                and _same_words(self._texts[start : start + len(named)], named)
            ):
                yield start, len(named)

    # ------------------------------------------------------------------------------------------------ changes

    def _take_phrases(self, *, shortest: int) -> None:
        for words, said in PHRASES.items():
            if len(words) < shortest:
                continue
            for start in self._free_runs(words):
                self._take(start, len(words))
                self._note(said)

    def _note(self, said: SpokenPart) -> None:
        change, value = said
        if change == "place":
            self._places.append(Place(words="its own background", is_own=True))
            return
        before = self._changes.setdefault(change, value)
        if before != value:
            raise self._refusal(
                f"The prompt says two things of the {change}: {before!r} and {value!r}."
            )

    # ------------------------------------------------------------------------------------------------ places

    def _take_places(self) -> None:
        for start in range(len(self._texts)):
            begun = self._place_start_at(start)
            if begun:
                self._take_place(start, len(begun))
        for end, text in enumerate(self._texts):
            if text == "background" and self._is_free[end]:
                self._take_place_before(end)

    def _take_place(self, start: int, n_begun: int) -> None:
        ends = self._place_ends(start + n_begun)
        for end in ends:
            spoken = self._speak(start + n_begun, end)
            if spoken and self._add_place(
                spoken, is_backdrop="background" in self._texts[start : start + n_begun]
            ):
                self._take(start, end - start)
                return
        if ends and self._speak(start + n_begun, ends[-1]):
            self._unknown.append(" ".join(self._texts[start : ends[-1]]))
            self._take(start, ends[-1] - start)

    def _take_place_before(self, end: int) -> None:
        start = end
        while (
            start
            and self._is_free[start - 1]
            and self._is_same_clause(start - 1, end)
            and self._texts[start - 1] not in ARTICLES
        ):
            start -= 1
        spoken = self._speak(start, end + 1)
        if not self._add_place(spoken, is_backdrop=True):
            self._unknown.append(spoken)
        self._take(start, end + 1 - start)

    def _place_ends(self, first: int) -> list[int]:
        """Return where a place that begins somewhere may end, farthest first: before an inner preposition or at the end of all."""
        ends = []
        for end in range(first, len(self._texts) + 1):
            is_over = (
                end == len(self._texts)
                or not self._is_free[end]
                or not self._is_same_clause(first, end)
            )
            if (
                is_over
                or self._texts[end] in ("and", "it", "is", "are")
                or (end > first and self._place_start_at(end))
            ):
                ends.append(end)
                if is_over or not self._place_start_at(end):
                    break
        return [end for end in reversed(ends) if end > first]

    def _add_place(self, spoken: str, *, is_backdrop: bool) -> bool:
        place = self._found_place(spoken, is_backdrop=is_backdrop)
        if place is not None:
            self._places.append(place)
        elif spoken in PLACES_THAT_ARE_WEATHER:
            self._note(PLACES_THAT_ARE_WEATHER[spoken])
        else:
            return False
        return True

    def _found_place(self, spoken: str, *, is_backdrop: bool) -> Place | None:
        bare = spoken.removesuffix(" background").strip()
        is_backdrop = is_backdrop or bare != spoken
        can_be_painted = is_backdrop and bare in (*COLOURS, "plain")
        asked = [known for known in self._own.background_words if same_contrast(known, spoken)]
        for words in asked if can_be_painted else dict.fromkeys([*asked, spoken, bare]):
            if words and (candidates := tuple(self._own.backgrounds(words))):
                return Place(words=spoken, candidates=candidates)
        return Place(words=spoken, paint=bare) if can_be_painted else None

    def _take_single_places(self) -> None:
        for position, text in enumerate(self._texts):
            if (
                self._is_free[position]
                and text in PLACES_IN_ONE_WORD
                and self._add_place(text, is_backdrop=False)
            ):
                self._is_free[position] = False

    def _place(self) -> Place | None:
        if len(self._places) <= 1:
            return self._places[0] if self._places else None
        words = " and ".join(place.words for place in self._places)
        others = [set(place.candidates) for place in self._places[1:]]
        shared = tuple(
            name for name in self._places[0].candidates if all(name in other for other in others)
        )
        if not shared:
            raise self._refusal(f"No image shows all the places that the prompt names: {words}.")
        return Place(words=words, candidates=shared)

    # ------------------------------------------------------------------------------------------------ words

    def _place_start_at(self, start: int) -> tuple[str, ...]:
        for words in PLACE_STARTS:
            if tuple(self._texts[start : start + len(words)]) == words and all(
                self._is_free[start : start + len(words)]
            ):
                return words
        return ()

    def _free_runs(self, words: Sequence[str]) -> Iterator[int]:
        size = len(words)
        for start in range(len(self._texts) - size + 1):
            if self._texts[start : start + size] == list(words) and all(
                self._is_free[start : start + size]
            ):
                yield start

    def _is_same_clause(self, first: int, second: int) -> bool:
        return self._clauses[first] == self._clauses[second]

    def _speak(self, start: int, end: int) -> str:
        return " ".join(text for text in self._texts[start:end] if text not in ARTICLES)

    def _take(self, start: int, size: int) -> None:
        self._is_free[start : start + size] = [False] * size

    def _left_over(self) -> list[str]:
        runs: list[list[str]] = [[]]
        for text, is_free in zip(self._texts, self._is_free, strict=True):
            if is_free and (text not in CARRY_NOTHING or (runs[-1] and text in ARTICLES)):
                runs[-1].append(text)
            elif runs[-1]:
                runs.append([])
        return [" ".join(run[:-1] if run[-1] in ARTICLES else run) for run in runs if run]

    def _refusal(self, what: str) -> RefusedPromptError:
        return RefusedPromptError(
            what,
            where="generator compose",
            given=self._prompt,
            fix=f"Say only {describe_possible_prompts(self._own)}.",
        )


def _same_words(said: Sequence[str], named: Sequence[str]) -> bool:
    return list(said) == list(named) or (
        list(said[:-1]) == list(named[:-1]) and lemma(said[-1]) == lemma(named[-1])
    )


def _is_plural(said: Sequence[str], class_name: str) -> bool:
    noun = noun_of(class_name)
    return said[-1] != noun.lower().split(" ")[-1] and counting_of(" ".join(said)) == "many"
