"""Captions by models of the transformers library, by name or from a folder."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.transformers_pictures_to_words import PicturesToWords
from weakspot.backends.transformers_source import TransformersSettings, TransformersSource
from weakspot.backends.words_asked_for import after_opening, caption_instruction, caption_opening


class TransformersCaptioner:
    """One sentence a picture, by BLIP, BLIP-2, GIT, a vision encoder-decoder or a chat model that sees (SmolVLM, Idefics, LLaVA).

    Decoding is greedy. A chat model is asked for one sentence; BLIP, BLIP-2 and GIT go on from "a photo of a ..." when the caption
    is to be about a class; a vision encoder-decoder cannot be told what to write about.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        revision: branch, tag or commit on the hub.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: float32, float16 or bfloat16.
        batch_size: pictures a call of the model.
        max_new_tokens: most tokens of a caption.
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
        prompt: str = "",
    ) -> None:
        settings = TransformersSettings(
            model=str(model), revision=revision, device=device, dtype=dtype, batch_size=batch_size, max_new_tokens=max_new_tokens
        )
        self._source = TransformersSource(settings)
        self._speaker = PicturesToWords(self._source)
        self._prompt = prompt

    @LoadedOnce
    def captioner_id(self) -> str:
        """Name and hash of weights, prompt and what else decides the words."""
        asked = [caption_instruction(about, wording=self._prompt) for about in (None, "thing")]
        return self._source.identity("transformers-captioner", asked)

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


def _opened(text: str, opening: str) -> str:
    """Return a caption with its opening: some models repeat it and some only go on from it."""
    return text if after_opening(text, opening) is not None else f"{opening} {text}".strip()
