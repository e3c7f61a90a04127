"""Pictures for a search: drawn by the project's generator, judged by its classifier, all of it kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.app.assisting import assistant_parts
from weakspot.app.config import Settings
from weakspot.app.drawn_captions import DrawnCaptions
from weakspot.app.drawn_series import DrawnSeries
from weakspot.core.arrays import FloatArray
from weakspot.core.assistants import EmbedTexts
from weakspot.core.errors import ModelError, RefusedPromptError
from weakspot.core.roles import Captioner, ChecksPrompts, ImageGenerator
from weakspot.search.sampling import Draws
from weakspot.search.word_sentences import ASSEMBLED, WordSentences


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplerParts:
    """Who is asked in a search, beside the classifier.

    Args:
        generator: draws; sentences that it cannot draw are not tried.
        captioner: tells what is in a picture; None: captions are assembled from words that the embedder ranks.
        embed_texts: phrases to vectors of the joint space; None if there is no text side.
    """

    generator: ImageGenerator
    captioner: Captioner | None
    embed_texts: EmbedTexts | None


class StoredSampler:
    """A sampler whose pictures, outcomes, vectors and captions are kept, so that a search goes on where it was.

    Args:
        series: draws and judges.
        parts: who else is asked.
        class_name: what all pictures show.
        folder: where captions are kept.
    """

    def __init__(self, series: DrawnSeries, parts: SamplerParts, *, class_name: str, folder: Path) -> None:
        self._series = series
        self._parts = parts
        self._captions = None if parts.captioner is None else DrawnCaptions(parts.captioner, series.outcomes.picture, folder)
        self._words = None
        if parts.embed_texts is not None:
            self._words = WordSentences(embed_texts=parts.embed_texts, class_name=class_name)
        self._can_draw: dict[str, bool] = {}

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of the probability columns."""
        return self._series.class_names

    @property
    def caption_source(self) -> str:
        """Who captions."""
        return ASSEMBLED if self._captions is None else self._captions.source

    def draw(self, prompt: str, class_name: str, *, first: int, n: int) -> Draws:
        """Return places `first` to `first + n` of the series of a prompt."""
        return self._series.draw(prompt, class_name, first=first, n=n)

    def vectors(self, keys: Sequence[str]) -> FloatArray:
        """Return unit vectors [n, d] of pictures that were drawn."""
        return self._series.outcomes.vectors(keys)

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases in the same space."""
        if self._parts.embed_texts is None:
            raise ModelError("The embedder has no text side, so captions cannot be compared with pictures.", fix="weakspot align")
        return np.asarray(self._parts.embed_texts(texts), dtype=np.float32)

    def completions(self, keys: Sequence[str], *, beginning: str) -> list[str]:
        """Return what follows the beginning in a caption of each picture, without sentences that the generator cannot draw."""
        return [self._drawable(text, beginning) for text in self._said(keys, beginning)]

    def _said(self, keys: Sequence[str], beginning: str) -> list[str]:
        if self._captions is not None:
            return self._captions.completions(keys, beginning=beginning)
        if self._words is None:
            raise ModelError(
                "There is nobody to say what is in a picture: no captioner, and an embedder without a text side.",
                where="[captioner]",
                fix="Configure a captioner or an embedder with text.",
            )
        return self._words.completion(self.vectors(keys)) if len(keys) else []

    def _drawable(self, text: str, beginning: str) -> str:
        generator = self._parts.generator
        if not isinstance(generator, ChecksPrompts):
            return text
        sentences = [sentence for part in text.split(".") if (sentence := part.strip())]
        for sentence in sentences:
            if sentence not in self._can_draw:
                try:
                    generator.check_prompt(f"{beginning} {sentence}.")
                except RefusedPromptError:
                    self._can_draw[sentence] = False
                else:
                    self._can_draw[sentence] = True
        return " ".join(f"{sentence}." for sentence in sentences if self._can_draw[sentence])

    def likelihoods(self, keys: Sequence[str], captions: Sequence[str]) -> FloatArray | None:
        """Return log P(caption | picture) [n, m], or None when the captioner cannot say."""
        return None if self._captions is None else self._captions.likelihoods(keys, captions)


def configured_captioner(settings: Settings, folder: Path) -> Captioner | None:
    """Return the captioner of a project; it is not loaded yet."""
    return assistant_parts(settings, folder).captioner
