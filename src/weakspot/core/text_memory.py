"""Known phrases beside a learnt text side: what they were taught is used as it is, and what is near them leans on it.

f(x) = sum over known phrases k of exp(sharpness * (cos(x, c_k) - 1)) * a_k + share * projection(x), with x the sentence embedding of
the bare phrase less a mean. The a_k are solved once so that every known phrase gets its embedding. The length of f says how well
a phrase is known: near known phrases it is one, far from all of them only the projection's share is left.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, IntArray, unit_rows
from weakspot.core.errors import ModelError
from weakspot.core.projection import TextProjection, read_arrays

EncodeSentences = Callable[[Sequence[str]], FloatArray]

ARTICLE = r"(?:(?:an?|the|some|one)\s+)?"
CARRIER = re.compile(
    rf"^{ARTICLE}(?:(?:photo|photograph|picture|image|close-up|snapshot)s?\s+of\s+|there\s+(?:is|are)\s+)?{ARTICLE}"
)
LARGEST = 127
STORED = ("phrases", "mean", "settings", "centres", "centre_scales", "taught", "taught_scales")


def bare_phrase(phrase: str) -> str:
    """Return a phrase without "a photo of" and without the article, in small letters.

    >>> bare_phrase("A photo of an apple"), bare_phrase("the photo"), bare_phrase("There are ants"), bare_phrase("a")
    ('apple', 'photo', 'ants', 'a')
    """
    plain = " ".join(phrase.lower().split())
    return CARRIER.sub("", plain, count=1) or plain


@dataclass(frozen=True, kw_only=True, eq=False)
class TextMemory:
    """What known phrases were taught.

    Letters: *k* known phrases, *s* length of a sentence embedding, *d* of an image embedding.

    Attributes:
        phrases: known phrases, bare; empty for one that only lends to its neighbours and is not used as it is.
        mean: mean sentence embedding [s], taken away before comparing.
        centres: sentence embeddings of known phrases less the mean, unit rows [k, s].
        taught: a_k [k, d].
        sharpness: how fast a phrase fades with its distance.
        share: weight of the projection.
        ridge: what was added to the diagonal when a_k were solved; gives the exact embedding of a known phrase back.
    """

    phrases: tuple[str, ...]
    mean: FloatArray
    centres: FloatArray
    taught: FloatArray
    sharpness: float
    share: float
    ridge: float

    def __post_init__(self) -> None:
        k, s = self.centres.shape
        if len(self.phrases) != k or self.taught.shape[0] != k or self.mean.shape != (s,):
            raise ModelError(
                "The arrays of known phrases do not fit together.",
                given=(len(self.phrases), self.centres.shape, self.taught.shape, self.mean.shape),
                fix="Learn them again.",
            )

    @cached_property
    def _places(self) -> dict[str, int]:
        return {phrase: place for place, phrase in enumerate(self.phrases) if phrase}

    def places(self, phrases: Sequence[str]) -> IntArray:
        """Return which known phrase each is [m]; -1 for one that is not known as it is."""
        found = [self._places.get(bare_phrase(phrase), -1) for phrase in phrases]
        return np.array(found, dtype=np.int64)

    def recall(
        self, phrases: Sequence[str], encode: EncodeSentences, projection: TextProjection
    ) -> tuple[FloatArray, FloatArray]:
        """Return unit vectors [m, d] of phrases, and how well each is known [m], from 0 to 1."""
        places = self.places(phrases)
        bare = [bare_phrase(phrase) for phrase in phrases]
        spoken = [
            plain if place >= 0 else phrase.strip() or phrase
            for phrase, plain, place in zip(phrases, bare, places, strict=True)
        ]
        every = list(dict.fromkeys([*bare, *spoken]))
        row = {text: number for number, text in enumerate(every)}
        encoded = encode(every)
        near = unit_rows(encoded[[row[text] for text in bare]] - self.mean) @ self.centres.T
        made = np.exp(self.sharpness * (near - 1)) @ self.taught
        made += self.share * projection.apply(encoded[[row[text] for text in spoken]])
        made[places >= 0] += self.ridge * self.taught[places[places >= 0]]
        trust = np.minimum(np.linalg.norm(made, axis=1), 1.0)
        return unit_rows(made), np.asarray(np.where(places >= 0, 1.0, trust), dtype=np.float32)

    def save(self, path: Path) -> None:
        """Write an `.npz` file with whole numbers of one byte, in one atomic step."""
        centres, centre_scales = _packed(self.centres)
        taught, taught_scales = _packed(self.taught)
        text = "\n".join(self.phrases).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        with partial.open("wb") as stream:
            np.savez_compressed(
                stream,
                allow_pickle=False,
                phrases=np.frombuffer(text, dtype=np.uint8),
                mean=self.mean.astype(np.float32),
                settings=np.array([self.sharpness, self.share, self.ridge]),
                centres=centres,
                centre_scales=centre_scales,
                taught=taught,
                taught_scales=taught_scales,
            )
        os.replace(partial, path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; nothing in the file is ever run."""
        stored = read_arrays(path)
        missing = [name for name in STORED if name not in stored]
        if missing:
            raise ModelError(
                "A file of known phrases lacks arrays.",
                where=str(path),
                given=missing,
                fix="Learn it again.",
            )
        sharpness, share, ridge = (float(one) for one in stored["settings"])
        return cls(
            phrases=tuple(stored["phrases"].tobytes().decode().split("\n")),
            mean=stored["mean"],
            centres=unit_rows(stored["centres"] * stored["centre_scales"].astype(np.float32)),
            taught=np.asarray(stored["taught"] * stored["taught_scales"].astype(np.float32)),
            sharpness=sharpness,
            share=share,
            ridge=ridge,
        )


def _packed(rows: FloatArray) -> tuple[AnyArray, AnyArray]:
    scales = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9).astype(np.float16) / LARGEST
    return np.round(rows / scales.astype(np.float32)).clip(-LARGEST, LARGEST).astype(np.int8), (
        scales.astype(np.float16)
    )
