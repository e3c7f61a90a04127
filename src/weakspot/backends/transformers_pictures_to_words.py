"""Pictures and a prompt to words, whatever kind of picture-to-text model of transformers it is."""

from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image

from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.transformers_source import TransformersSource
from weakspot.backends.words_asked_for import plain_words

PICTURE_TO_TEXT = "AutoModelForImageTextToText"
_SIDES = ("shortest_edge", "longest_edge", "height", "width")


class PicturesToWords:
    """A picture-to-text model with its processor; greedy, so the same picture always gets the same words.

    Args:
        source: where the model comes from.
        kind: class of transformers that loads it.
    """

    def __init__(self, source: TransformersSource, *, kind: str = PICTURE_TO_TEXT) -> None:
        self._source = source
        self._kind = kind

    @property
    def is_chat(self) -> bool:
        """Whether the model takes instructions."""
        return getattr(self._processor, "chat_template", None) is not None

    @property
    def takes_prompts(self) -> bool:
        """Whether words can be given that the answer goes on from."""
        return self._has_processor

    @LoadedOnce
    def picture_side(self) -> int | None:
        """Shortest picture side in pixels that the model can use; None if its processor does not say."""
        size = getattr(self._pictures, "size", None) or {}
        sides = [int(size[name]) for name in _SIDES if size.get(name)]
        return max(sides) if sides else None

    def say(self, pictures: Sequence[Image.Image], prompt: str | None) -> list[str]:
        """Return what the model says of each picture: its answer to an instruction, or a text that goes on from the prompt."""
        return self._in_batches(pictures, lambda batch: self._said(batch, prompt))

    def label(self, pictures: Sequence[Image.Image], question: str) -> list[str]:
        """Return the best of the model's own labels for each picture; for models that choose an answer instead of writing one."""
        return self._in_batches(pictures, lambda batch: self._labelled(batch, question))

    def _in_batches(self, pictures: Sequence[Image.Image], speak: Callable[[Sequence[Image.Image]], list[str]]) -> list[str]:
        size = self._source.settings.batch_size
        upright = [picture.convert("RGB") for picture in pictures]
        return [plain_words(text) for start in range(0, len(upright), size) for text in speak(upright[start : start + size])]

    def _said(self, pictures: Sequence[Image.Image], prompt: str | None) -> list[str]:
        model = self._model
        with self._source.running():
            inputs = self._on_device(self._inputs(pictures, prompt))
            found = model.generate(**inputs, max_new_tokens=self._source.settings.max_new_tokens, do_sample=False, num_beams=1)
            return self._new_words(found, inputs.get("input_ids"))

    def _labelled(self, pictures: Sequence[Image.Image], question: str) -> list[str]:
        model = self._model
        with self._source.running():
            inputs = self._processor(images=list(pictures), text=[question] * len(pictures), **_BATCHED)
            best = model(**self._on_device(inputs)).logits.argmax(dim=-1).tolist()
            return [str(model.config.id2label[place]) for place in best]

    def _new_words(self, found: Any, given: Any) -> list[str]:
        """Return the words of generated tokens, without the prompt where it was simply repeated as it was."""
        n_given = 0 if given is None else given.shape[1]
        repeats = 0 < n_given <= found.shape[1] and bool((found[:, :n_given] == given).all())
        return list(self._tokenizer.batch_decode(found[:, n_given:] if repeats else found, skip_special_tokens=True))

    def _inputs(self, pictures: Sequence[Image.Image], prompt: str | None) -> Any:
        if self.is_chat:
            return self._chat_inputs(pictures, prompt or "")
        if not self._has_processor:
            return self._pictures(images=list(pictures), return_tensors="pt")
        if prompt is None:
            return self._processor(images=list(pictures), return_tensors="pt")
        if self._source.config.model_type == "git":
            return self._git_inputs(pictures, prompt)
        return self._processor(images=list(pictures), text=[prompt] * len(pictures), **_BATCHED)

    def _chat_inputs(self, pictures: Sequence[Image.Image], instruction: str) -> Any:
        content = [{"type": "image"}, {"type": "text", "text": instruction}]
        message = [{"role": "user", "content": content}]
        asked = self._processor.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
        return self._processor(images=[[picture] for picture in pictures], text=[asked] * len(pictures), **_BATCHED)

    def _git_inputs(self, pictures: Sequence[Image.Image], prompt: str) -> Any:
        """Return a prompt that is still open; the processor would end it as a whole sentence."""
        tokenizer = self._tokenizer
        tokens = [tokenizer.cls_token_id, *tokenizer(prompt, add_special_tokens=False)["input_ids"]]
        inputs = self._pictures(images=list(pictures), return_tensors="pt")
        return {**inputs, "input_ids": self._source.torch.tensor([tokens] * len(pictures))}

    def _on_device(self, inputs: Any) -> dict[str, Any]:
        model = self._model
        placed = {name: values.to(model.device) for name, values in dict(inputs).items()}
        return {name: values.to(model.dtype) if values.is_floating_point() else values for name, values in placed.items()}

    @LoadedOnce
    def _model(self) -> Any:
        return self._source.model(self._kind)

    @LoadedOnce
    def _processor(self) -> Any:
        """Return the processor; a tokenizer alone for models that have none, whose pictures are prepared apart."""
        processor = self._source.load("AutoProcessor")
        tokenizer = getattr(processor, "tokenizer", None)
        if tokenizer is not None:
            # Answers are written at the end of the prompt, so that is where all prompts of a batch must end.
            tokenizer.padding_side = "left" if getattr(processor, "chat_template", None) else tokenizer.padding_side
        return processor

    @property
    def _has_processor(self) -> bool:
        return hasattr(self._processor, "image_processor") and hasattr(self._processor, "tokenizer")

    @LoadedOnce
    def _pictures(self) -> Any:
        return self._processor.image_processor if self._has_processor else self._source.load("AutoImageProcessor")

    @LoadedOnce
    def _tokenizer(self) -> Any:
        return self._processor.tokenizer if self._has_processor else self._source.load("AutoTokenizer")


_BATCHED = {"padding": True, "return_tensors": "pt"}
