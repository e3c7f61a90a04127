"""The little world of the planted data: what a scene is made of, its caption, and reading the words of a phrase back."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from weakspot.core.arrays import ByteArray
from weakspot.core.errors import DataError

FACTORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "kind": ("disc", "square", "triangle", "star", "cross", "ring", "heart", "crescent"),
        "colour": ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white"),
        "size": ("small", "medium", "large"),
        "background": (
            "plain",
            "striped",
            "checked",
            "dotted",
            "grassy",
            "gradient",
            "wavy",
            "brick",
        ),
        "count": ("one", "two", "three"),
        "position": ("middle", "left", "right", "top", "bottom"),
        "lighting": ("normal", "bright", "dark"),
    }
)
FACTOR_NAMES: tuple[str, ...] = tuple(FACTORS)
KINDS: tuple[str, ...] = FACTORS["kind"]

SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "circle": "disc", "circles": "disc", "disk": "disc", "disks": "disc", "crosses": "cross", "box": "square",
        "tiny": "small", "little": "small", "big": "large", "huge": "large",
        "stripe": "striped", "stripes": "striped", "check": "checked", "checks": "checked", "checkered": "checked",
        "chequered": "checked", "dot": "dotted", "dots": "dotted", "spotted": "dotted", "grass": "grassy", "lawn": "grassy",
        "wave": "wavy", "waves": "wavy", "bricks": "brick", "blank": "plain", "shaded": "gradient",
        "single": "one", "pair": "two", "both": "two", "several": "three",
        "centre": "middle", "center": "middle", "above": "top", "below": "bottom",
        "night": "dark", "darkness": "dark", "dim": "dark", "unlit": "dark", "sunny": "bright", "daylight": "bright",
    }
)  # fmt: skip
PLACES: Mapping[str, str] = MappingProxyType(
    {
        "middle": "in the middle of",
        "left": "on the left of",
        "right": "on the right of",
        "top": "at the top of",
        "bottom": "at the bottom of",
    }
)
LIGHTS: Mapping[str, str] = MappingProxyType(
    {"normal": "in normal light", "bright": "in bright light", "dark": "in the dark"}
)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One image's contents.

    Args:
        kinds: the kinds of object in it, in the order of `KINDS`; several only with the count `one` (one object of each).
        instance: number of the image among others of the same contents; it decides details and the noise of features.
    """

    kinds: tuple[str, ...] = ("disc",)
    colour: str = "red"
    size: str = "medium"
    background: str = "plain"
    count: str = "one"
    position: str = "middle"
    lighting: str = "normal"
    instance: int = 0

    def __post_init__(self) -> None:
        for name in FACTOR_NAMES[1:]:
            if getattr(self, name) not in FACTORS[name]:
                raise DataError(
                    f"There is no {name} {getattr(self, name)!r}.",
                    fix=f"Choose one of {list(FACTORS[name])}.",
                )
        if not self.kinds or set(self.kinds) - set(KINDS):
            raise DataError(
                "A scene needs known kinds of object.",
                given=self.kinds,
                fix=f"Choose from {list(KINDS)}.",
            )
        if self.kinds != tuple(kind for kind in KINDS if kind in self.kinds):
            raise DataError(
                "The kinds of a scene must be in the order of KINDS, each once.", given=self.kinds
            )
        if len(self.kinds) > 1 and self.count != "one":
            raise DataError(
                "A scene with several kinds shows one object of each.",
                given=self.count,
                fix="Use count='one'.",
            )

    @property
    def codes(self) -> ByteArray:
        """Return the scene as numbers [7]: a bit mask of kinds, then the position of each value among its factor's values."""
        mask = sum(1 << KINDS.index(kind) for kind in self.kinds)
        return np.array(
            [mask, *(FACTORS[name].index(getattr(self, name)) for name in FACTOR_NAMES[1:])],
            dtype=np.uint8,
        )

    @property
    def caption(self) -> str:
        """Return a sentence that tells every factor.

        >>> Scene(kinds=("disc",), count="two", size="small", background="striped", lighting="dark").caption
        'a photo of two small red discs in the middle of a striped background, in the dark'
        """
        nouns = " and ".join(
            f"{self.count} {self.size} {self.colour} {self._noun(kind)}" for kind in self.kinds
        )
        return f"a photo of {nouns} {PLACES[self.position]} a {self.background} background, {LIGHTS[self.lighting]}"

    def _noun(self, kind: str) -> str:
        if self.count == "one":
            return kind
        return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def scene_from_codes(codes: ByteArray, *, instance: int = 0) -> Scene:
    """Return the scene of a row of codes [7]."""
    kinds = tuple(kind for place, kind in enumerate(KINDS) if int(codes[0]) >> place & 1)
    values = {
        name: FACTORS[name][int(code)]
        for name, code in zip(FACTOR_NAMES[1:], codes[1:], strict=True)
    }
    return Scene(kinds=kinds, instance=instance, **values)


def _value_words() -> dict[str, tuple[str, str]]:
    words = {value: (name, value) for name, values in FACTORS.items() for value in values}
    words.update({f"{kind}s": ("kind", kind) for kind in KINDS})
    words.update({word: words[value] for word, value in SYNONYMS.items()})
    return words


VALUE_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(_value_words())


def words_of(phrase: str) -> list[str]:
    return re.findall(r"[a-z]+", phrase.lower())


def factors_of(phrase: str) -> dict[str, tuple[str, ...]]:
    """Return the values that a phrase names, by factor.

    >>> factors_of("a photo of a red disc at night")
    {'colour': ('red',), 'kind': ('disc',), 'lighting': ('dark',)}
    """
    found: dict[str, dict[str, None]] = {}
    for word in words_of(phrase):
        if word in VALUE_WORDS:
            name, value = VALUE_WORDS[word]
            found.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in found.items()}


def scene_from_phrase(phrase: str, *, generator: np.random.Generator, instance: int = 0) -> Scene:
    """Return a scene of which the phrase is true; what the phrase leaves open is drawn at random."""
    named = factors_of(phrase)
    drawn = {name: values[int(generator.integers(len(values)))] for name, values in FACTORS.items()}
    chosen = {name: named[name][0] if name in named else drawn[name] for name in FACTOR_NAMES[1:]}
    wanted = named.get("kind", (drawn["kind"],))
    if len(wanted) > 1:
        chosen["count"] = "one"
    return Scene(kinds=tuple(kind for kind in KINDS if kind in wanted), instance=instance, **chosen)
