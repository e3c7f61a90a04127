"""Short answers to questions about images, by models of the transformers library."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from weakspot.backends.answer_words import after_opening, answer_instruction
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.transformers.image_to_text import IMAGE_TO_TEXT, ImagesToWords
from weakspot.backends.transformers.source import TransformersSettings, TransformersSource
from weakspot.core.sending import Sendable

CHOOSES_A_LABEL = "vilt"
_OF_QUESTIONS = frozenset({"blip", CHOOSES_A_LABEL})
_OPENINGS = {"blip-2": "Question: {question} Answer:"}


class TransformersAnswerer(Sendable):
    """One short answer an image, by BLIP for questions, ViLT, BLIP-2, GIT or a chat model that sees (SmolVLM, Idefics, LLaVA).

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        revision: branch, tag or commit on the hub.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: float32, float16, bfloat16, or auto for what the weights are stored in.
        device_map: how accelerate spreads the model over devices, such as auto; empty to keep it on one device.
        quantise: 4-bit or 8-bit to load weights so by bitsandbytes; empty to load them as they are.
        batch_size: images a call of the model.
        max_new_tokens: most tokens of an answer.
    """

    def __init__(  # noqa: PLR0913 - one argument a setting
        self,
        *,
        model: str | Path,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "float32",
        device_map: str = "",
        quantise: str = "",
        batch_size: int = 8,
        max_new_tokens: int = 12,
    ) -> None:
        settings = TransformersSettings(
            model=str(model),
            revision=revision,
            device=device,
            dtype=dtype,
            device_map=device_map,
            quantise=quantise,
            batch_size=batch_size,
            max_new_tokens=max_new_tokens,
        )
        self._source = TransformersSource(settings)

    @LoadedOnce
    def answerer_id(self) -> str:
        """Name and hash of weights and of what else decides the words."""
        return self._source.identity("transformers-answerer", answer_instruction(""))

    @property
    def image_side(self) -> int | None:
        return self._speaker.image_side

    def answer(self, images: Sequence[Image.Image], question: str) -> list[str]:
        if not images:
            return []
        if self._kind == CHOOSES_A_LABEL:
            return self._speaker.label(images, question)
        if self._speaker.is_chat:
            return self._speaker.say(images, answer_instruction(question))
        asked = _OPENINGS.get(self._kind, "{question}").replace("{question}", question.strip())
        return [_without(text, asked) for text in self._speaker.say(images, asked)]

    @property
    def _kind(self) -> str:
        return str(self._source.config.model_type)

    @LoadedOnce
    def _speaker(self) -> ImagesToWords:
        is_for_questions = self._kind in _OF_QUESTIONS
        return ImagesToWords(
            self._source,
            kind="AutoModelForVisualQuestionAnswering" if is_for_questions else IMAGE_TO_TEXT,
        )


def _without(text: str, asked: str) -> str:
    """Return an answer without the question, which some models repeat."""
    rest = after_opening(text, asked)
    return text if rest is None else rest
