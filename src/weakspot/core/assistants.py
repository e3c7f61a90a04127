"""The models that a method may ask for words, as plain functions of rows and phrases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import FloatArray, IntArray

EmbedTexts = Callable[[Sequence[str]], FloatArray]
# Below this a text side does not know a phrase: the true embeddings of such withheld words were at a mean cosine of 0.39.
MIN_TRUST = 0.45
# A built-in word may be said if it tells images that took no part in teaching it at least so well.
MIN_AREA = 0.8
TrustPhrases = Callable[[Sequence[str]], FloatArray | None]
CaptionRows = Callable[[IntArray], list[str]]
AnswerRows = Callable[[IntArray, str], list[str]]
SeenInRows = Callable[[IntArray, str], FloatArray | None]
Propose = Callable[[str, Mapping[str, JsonValue]], JsonValue]


@dataclass(frozen=True, kw_only=True, eq=False)
class Assistants:
    """Whom a method may ask; None where there is nobody.

    Args:
        embed_texts: phrases to unit vectors [m, d] of CLIP space.
        captions: rows to one sentence each; empty where there is none.
        answers: rows and a question to one short answer each; empty where there is none.
        propose: a prompt and a JSON schema to the parsed answer of a language model. Raises a `ModelError` when the answer does not
            fit the schema or never comes: methods then go on without it and say so in a note.
        second: the space of an encoder that had no part in finding or naming, and what embeds phrases into it.
        seen: rows and words that a name may add ("with text", "green", "in a kitchen") to how surely independent witnesses (text
            reading, object and scene networks, measured properties) see that in each image [n], from 0 to 1, not a number where an
            image was not looked at; None where no witness can tell such words.
        trust: phrases to how well the text side knows each [m], from 0 to 1, or None; None where it cannot say.
        measured: words to the area under the curve with which the text side told held-out images by each [m], not a number where
            nobody measured it, or None; None where nothing was measured.
    """

    embed_texts: EmbedTexts | None = None
    captions: CaptionRows | None = None
    answers: AnswerRows | None = None
    propose: Propose | None = None
    second: tuple[str, EmbedTexts] | None = None
    seen: SeenInRows | None = None
    trust: TrustPhrases | None = None
    measured: TrustPhrases | None = None

    def text_side(self, space: str) -> EmbedTexts | None:
        """Return what embeds phrases into a space; None if nothing does."""
        if self.second is not None and self.second[0] == space:
            return self.second[1]
        return self.embed_texts if space == "clip" else None

    @property
    def says(self) -> TrustPhrases | None:
        """Return what built-in words are judged by: 1 if measured well enough, else 0; the trust where nothing was measured."""
        measured = self.measured
        return self.trust if measured is None else lambda words: _well_measured(measured(words))


def _well_measured(areas: FloatArray | None) -> FloatArray | None:
    return None if areas is None else np.asarray(areas >= MIN_AREA, dtype=np.float32)


NO_ASSISTANTS = Assistants()
