"""Captions by models of the transformers library, by name or from a folder."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from weakspot.backends.caption_sentences import COMPLETION, OPENINGS, SCORED, completion_instruction, led_sentence, short_sentences
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.transformers_likelihoods import CaptionLikelihoods
from weakspot.backends.transformers_pictures_to_words import PicturesToWords
from weakspot.backends.transformers_source import TransformersSettings, TransformersSource
from weakspot.backends.words_asked_for import after_opening, caption_instruction, caption_opening
from weakspot.core.arrays import FloatArray
from weakspot.core.errors import ConfigError
from weakspot.core.sending import Sendable

LED_TOKENS = 12


class TransformersCaptioner(Sendable):
    """One sentence a picture, by BLIP, BLIP-2, GIT, a vision encoder-decoder or a chat model that sees (SmolVLM, Idefics, LLaVA).

    Decoding is greedy. A chat model is asked for one sentence; BLIP, BLIP-2 and GIT go on from "a photo of a ..." when the caption
    is to be about a class; a vision encoder-decoder cannot be told what to write about.

    To complete a caption, a chat model is asked for short sentences and its answer is begun for it; the other kinds are led, one
    sentence each, by "it is", "there is", "the background is" and "the light is" after the beginning.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        revision: branch, tag or commit on the hub.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: float32, float16 or bfloat16.
        batch_size: pictures a call of the model.
        max_new_tokens: most tokens of a caption.
        max_completion_tokens: most tokens that a chat model completes a caption with.
        prompt: what chat models are asked, or what others go on from; `{about}` stands for the class, as "a dog" or "anything".
    """

    def __init__(  # noqa: PLR0913 - one argument a setting
        self,
        *,
        model: str | Path,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "float32",
        batch_size: int = 8,
        max_new_tokens: int = 40,
        max_completion_tokens: int = 96,
        prompt: str = "",
    ) -> None:
        settings = TransformersSettings(
            model=str(model), revision=revision, device=device, dtype=dtype, batch_size=batch_size, max_new_tokens=max_new_tokens
        )
        self._source = TransformersSource(settings)
        self._speaker = PicturesToWords(self._source)
        self._prompt = prompt
        if not isinstance(max_completion_tokens, int) or isinstance(max_completion_tokens, bool) or max_completion_tokens < 1:
            raise ConfigError("There must be at least one token.", where="max_completion_tokens", given=max_completion_tokens)
        self._n_tokens = max_completion_tokens

    @LoadedOnce
    def captioner_id(self) -> str:
        """Name and hash of weights, prompt and what else decides the words."""
        asked = [caption_instruction(about, wording=self._prompt) for about in (None, "thing")]
        return self._source.identity("transformers-captioner", asked, COMPLETION, OPENINGS, SCORED, self._n_tokens)

    @property
    def picture_side(self) -> int | None:
        """Shortest picture side in pixels that the model can use."""
        return self._speaker.picture_side

    def caption(self, pictures: Sequence[Image.Image], *, about: str | None = None) -> list[str]:
        """Return one sentence a picture, about the given class if named."""
        if not pictures:
            return []
        if self._speaker.is_chat:
            return self._speaker.say(pictures, caption_instruction(about, wording=self._prompt))
        opening = caption_opening(about, wording=self._prompt) if self._speaker.takes_prompts else None
        said = self._speaker.say(pictures, opening)
        return said if opening is None else [_opened(text, opening) for text in said]

    def complete(self, pictures: Sequence[Image.Image], *, beginning: str) -> list[str]:
        """Return short sentences that follow the beginning, one text a picture; empty where the model says nothing more."""
        if not pictures:
            return []
        if self._speaker.is_chat:
            asked = completion_instruction(beginning)
            said = self._speaker.go_on(pictures, beginning, instruction=asked, max_new_tokens=self._n_tokens)
            return [short_sentences(text, beginning=beginning) for text in said]
        led = [self._led(pictures, beginning, opening) for opening in OPENINGS]
        return [short_sentences(" ".join(sentences), beginning=beginning) for sentences in zip(*led, strict=True)]

    def log_likelihoods(self, pictures: Sequence[Image.Image], captions: Sequence[str]) -> FloatArray:
        """Return log P(caption | picture) [n, m]: the sum over the caption's tokens, so that longer captions are less likely."""
        return CaptionLikelihoods(self._source, self._speaker).of(pictures, captions)

    def _led(self, pictures: Sequence[Image.Image], beginning: str, opening: str) -> list[str]:
        begun = f"{beginning} {opening}".strip()
        n_tokens = min(LED_TOKENS, self._n_tokens)
        return [
            led_sentence(opening, text) for text in self._speaker.go_on(pictures, begun, instruction="", max_new_tokens=n_tokens)
        ]


def _opened(text: str, opening: str) -> str:
    """Return a caption with its opening: some models repeat it and some only go on from it."""
    return text if after_opening(text, opening) is not None else f"{opening} {text}".strip()
