"""A tiny planted world to learn on: drawn squares, of which the AI gets the red ones wrong. Needs neither project nor model."""

import hashlib
import io
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageDraw

from weakspot.core.arrays import BoolArray, FloatArray
from weakspot.core.error_score import error_scores
from weakspot.core.errors import DataError
from weakspot.core.seeding import generator
from weakspot.web.services.classes.phrases import ScoredPhrase
from weakspot.web.services.view import View

N_IMAGES = 60
SIDE = 96
N_RED = 15
GOOD_SCORE = 0.5
COLOURS = {
    "red": "#d22f2f",
    "blue": "#2f5fd2",
    "green": "#2f9a4c",
    "yellow": "#e2b71f",
    "purple": "#7b3fb5",
    "grey": "#8a8a8a",
}
SIZES = {"large": 0.72, "small": 0.42}
GROUNDS = {"dark": "#33363b", "light": "#eceae4"}
SAME_WORD = {
    "crimson": "red", "scarlet": "red", "reddish": "red", "big": "large", "huge": "large", "little": "small", "tiny": "small",
    "gray": "grey", "violet": "purple", "bright": "light", "white": "light", "pale": "light", "black": "dark", "night": "dark",
}  # fmt: skip
SHAPE_WORDS = frozenset(
    {
        "square",
        "squares",
        "shape",
        "shapes",
        "box",
        "boxes",
        "block",
        "blocks",
        "rectangle",
        "rectangles",
    }
)
ADVICE = {
    "good": "These words pick out the failures.",
    "matches": "Such images are found, but the AI is not wrong on them more often. Say something else.",
    "unknown": "Hardly any image looks like these words. Say it in other words.",
}


@dataclass(frozen=True, kw_only=True)
class PlantedImage:
    """A square as it was planted."""

    colour: str
    size: str
    ground: str
    angle: float
    is_wrong: bool


class TutorialWorld(View):
    """What the images are and what the AI made of them.

    Args:
        is_wrong: whether the AI was wrong, one entry an image.
        words: what an image shows, for those who cannot see it.
        did_tutorial: whether whoever asks went through it before.
    """

    is_wrong: list[bool]
    words: list[str]
    did_tutorial: bool


class TutorialAnswer(ScoredPhrase):
    """What a phrase says of the planted images.

    Args:
        similarities: how similar every image is to the words.
        fit: `good`, `matches` (but does not pick out failures), or `unknown` (matches nothing).
    """

    similarities: list[float]
    fit: str


@cache
def planted_images() -> tuple[PlantedImage, ...]:
    """Return the planted images: most red ones are wrong, and hardly any other."""
    draws = generator(6, "tutorial")
    others = [name for name in COLOURS if name != "red"]
    colours = ["red"] * N_RED + [others[place % len(others)] for place in range(N_IMAGES - N_RED)]
    found = []
    for place, colour in enumerate(colours):
        # One red square is right and three others are wrong: no words are ever quite right.
        is_wrong = (colour == "red") != (place in (N_RED - 1, N_RED + 3, N_RED + 16, N_RED + 29))
        size, ground = str(draws.choice(list(SIZES))), str(draws.choice(list(GROUNDS)))
        found.append(
            PlantedImage(
                colour=colour,
                size=size,
                ground=ground,
                angle=float(draws.uniform(0, 90)),
                is_wrong=is_wrong,
            )
        )
    return tuple(found[place] for place in draws.permutation(N_IMAGES))


@cache
def image(number: int) -> bytes:
    """Return a planted image as PNG.

    Raises:
        DataError: if there is none of that number.
    """
    if not 0 <= number < N_IMAGES:
        raise DataError("There is no such image.", given=number)
    planted = planted_images()[number]
    image = Image.new("RGB", (SIDE * 2, SIDE * 2), GROUNDS[planted.ground])
    reach = SIDE * SIZES[planted.size]
    corners = [math.radians(planted.angle + 45 + 90 * corner) for corner in range(4)]
    outline = [
        (SIDE + reach * math.cos(angle), SIDE + reach * math.sin(angle)) for angle in corners
    ]
    ImageDraw.Draw(image).polygon(outline, fill=COLOURS[planted.colour])
    stream = io.BytesIO()
    image.resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(stream, "PNG")
    return stream.getvalue()


def world(*, did_tutorial: bool) -> TutorialWorld:
    return TutorialWorld(
        is_wrong=[one.is_wrong for one in planted_images()],
        words=[
            f"a {one.size} {one.colour} square on a {one.ground} ground" for one in planted_images()
        ],
        did_tutorial=did_tutorial,
    )


def answer(phrase: str) -> TutorialAnswer:
    """Return what a phrase says of the planted images; similarities are exact up to a little noise, like those of an encoder."""
    words = phrase.strip()
    similarities, is_known = _similarities(words)
    failed: BoolArray = np.array([one.is_wrong for one in planted_images()])
    best = error_scores(similarities[None], failed)
    score, threshold = float(best.score[0]), float(best.threshold[0])
    fit = "good" if score >= GOOD_SCORE else "matches" if is_known else "unknown"
    return TutorialAnswer(
        phrase=words,
        score=score,
        threshold=threshold if np.isfinite(threshold) else None,
        similarities=[float(value) for value in similarities],
        fit=fit,
        advice=ADVICE[fit],
    )


def _similarities(phrase: str) -> tuple[FloatArray, bool]:
    words = [
        SAME_WORD.get(word, word)
        for word in "".join(c if c.isalpha() else " " for c in phrase.lower()).split()
    ]
    seed = int.from_bytes(
        hashlib.sha256(" ".join(words).encode("utf-8", "replace")).digest()[:4], "big"
    )
    noise = np.random.default_rng(seed).normal(0, 0.008, N_IMAGES)
    meant = [word for word in words if word in COLOURS or word in SIZES or word in GROUNDS]
    is_known = bool(meant) or bool(SHAPE_WORDS & set(words))
    shares = np.array([_share(one, meant) for one in planted_images()])
    level = 0.16 + 0.04 * is_known
    return np.asarray(level + 0.1 * shares + noise, dtype=np.float32), is_known


def _share(planted: PlantedImage, words: list[str]) -> float:
    shown = (planted.colour, planted.size, planted.ground)
    return sum(word in shown for word in words) / len(words) if words else 0.0
