"""Images and a prompt to words, whatever kind of image-to-text model of transformers it is."""

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

from PIL import Image

from weakspot.backends.answer_words import plain_words
from weakspot.backends.caption_shots import Shot
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.thinking import spoken_answer
from weakspot.backends.transformers.source import TransformersSource
from weakspot.core.sending import Sendable

IMAGE_TO_TEXT = "AutoModelForImageTextToText"
_SIDES = ("shortest_edge", "longest_edge", "height", "width")


class ImagesToWords(Sendable):
    """An image-to-text model with its processor; greedy, so the same image always gets the same words.

    Args:
        source: where the model comes from.
        kind: class of transformers that loads it.
    """

    def __init__(self, source: TransformersSource, *, kind: str = IMAGE_TO_TEXT) -> None:
        self._source = source
        self._kind = kind

    @property
    def is_chat(self) -> bool:
        return getattr(self._processor, "chat_template", None) is not None

    @property
    def takes_prompts(self) -> bool:
        return self._has_processor

    @LoadedOnce
    def image_side(self) -> int | None:
        """Shortest image side in pixels that the model can use; None if its processor does not say."""
        size = getattr(self._images, "size", None) or {}
        sides = [int(size[name]) for name in _SIDES if size.get(name)]
        if not sides:
            return None
        # Processors that merge patches (Qwen-VL and its kin) bound the number of pixels under these names.
        return isqrt(max(sides)) if hasattr(self._images, "merge_size") else max(sides)

    def say(self, images: Sequence[Image.Image], prompt: str | None) -> list[str]:
        n_tokens = self._source.settings.max_new_tokens
        said = self._in_batches(
            images, lambda batch: self._said(lambda: self.inputs(batch, prompt), n_tokens)
        )
        name = self._source.settings.model
        return [plain_words(spoken_answer(text, where=name)) for text in said]

    def go_on(
        self,
        images: Sequence[Image.Image],
        beginning: str,
        *,
        instruction: str,
        max_new_tokens: int,
        shots: Sequence[Shot] = (),
    ) -> list[str]:
        """Return what follows a beginning, as the model wrote it.

        Args:
            images: what it is about.
            beginning: words that the model's own go on from, so that it cannot say anything else first.
            instruction: what chat models are asked; others get the beginning alone.
            max_new_tokens: most tokens of what follows.
            shots: examples for chat models.
        """
        return self._in_batches(
            images,
            lambda batch: self._said(
                lambda: self._begun(batch, beginning, instruction, shots),
                max_new_tokens,
                is_new_only=True,
            ),
        )

    def label(self, images: Sequence[Image.Image], question: str) -> list[str]:
        """Return the best of the model's own labels for each image; for models that choose an answer instead of writing one."""
        return [
            plain_words(text)
            for text in self._in_batches(images, lambda batch: self._labelled(batch, question))
        ]

    def _in_batches(
        self, images: Sequence[Image.Image], speak: Callable[[Sequence[Image.Image]], list[str]]
    ) -> list[str]:
        size = self._source.settings.batch_size
        upright = [image.convert("RGB") for image in images]
        return [
            text
            for start in range(0, len(upright), size)
            for text in speak(upright[start : start + size])
        ]

    def _said(
        self, prepare: Callable[[], Any], max_new_tokens: int, *, is_new_only: bool = False
    ) -> list[str]:
        model = self.model
        with self._source.running():
            inputs = self.on_device(prepare())
            given = inputs.get("decoder_input_ids", inputs.get("input_ids"))
            given = None if given is None else given.clone()
            found = model.generate(
                **inputs, max_new_tokens=max_new_tokens, do_sample=False, num_beams=1
            )
            return self._after(found, given) if is_new_only else self._new_words(found, given)

    def _labelled(self, images: Sequence[Image.Image], question: str) -> list[str]:
        model = self.model
        with self._source.running():
            inputs = self._processor(images=list(images), text=[question] * len(images), **_BATCHED)
            best = model(**self.on_device(inputs)).logits.argmax(dim=-1).tolist()
            return [str(model.config.id2label[place]) for place in best]

    def _new_words(self, found: Any, given: Any) -> list[str]:
        """Return the words of generated tokens, without the prompt where it was simply repeated as it was."""
        n_given = 0 if given is None else given.shape[1]
        repeats = 0 < n_given <= found.shape[1] and bool((found[:, :n_given] == given).all())
        return list(
            self.tokenizer.batch_decode(
                found[:, n_given:] if repeats else found, skip_special_tokens=True
            )
        )

    def _after(self, found: Any, given: Any) -> list[str]:
        """Return the words after a beginning, which models repeat with or without the marks at its two ends."""
        start, n_given = 0, 0 if given is None else given.shape[1]
        for n_repeated in (n_given, n_given - 1):
            if 1 < n_repeated <= found.shape[1] and bool(
                (found[:, 1:n_repeated] == given[:, 1:n_repeated]).all()
            ):
                start = n_repeated
                break
        return list(self.tokenizer.batch_decode(found[:, start:], skip_special_tokens=True))

    def _begun(
        self,
        images: Sequence[Image.Image],
        beginning: str,
        instruction: str,
        shots: Sequence[Shot],
    ) -> Any:
        if self.is_chat:
            return self._chat_inputs(images, instruction, beginning, shots)
        if self._has_processor:
            return self.inputs(images, beginning)
        tokens = [
            self.decoder_start,
            *self.tokenizer(beginning, add_special_tokens=False)["input_ids"],
        ]
        return {
            **self.inputs(images, None),
            "decoder_input_ids": self._source.torch.tensor([tokens] * len(images)),
        }

    def inputs(self, images: Sequence[Image.Image], prompt: str | None, *, reply: str = "") -> Any:
        """Return what the model takes for images and a prompt, and the beginning of its reply if it is a chat model."""
        if self.is_chat:
            return self._chat_inputs(images, prompt or "", reply)
        if not self._has_processor:
            return self._images(images=list(images), return_tensors="pt")
        if prompt is None:
            return self._processor(images=list(images), return_tensors="pt")
        if self._source.config.model_type == "git":
            return self._git_inputs(images, prompt)
        return self._processor(images=list(images), text=[prompt] * len(images), **_BATCHED)

    def _chat_inputs(
        self,
        images: Sequence[Image.Image],
        instruction: str,
        reply: str,
        shots: Sequence[Shot] = (),
    ) -> Any:
        texts = [*(shot.said for shot in shots), instruction]
        content = [
            part for text in texts for part in ({"type": "image"}, {"type": "text", "text": text})
        ]
        shown = [shot.image.convert("RGB") for shot in shots]
        message = [{"role": "user", "content": content}]
        asked = self._processor.apply_chat_template(
            message, add_generation_prompt=True, tokenize=False, enable_thinking=False
        )
        asked = (
            asked
            if not reply
            else f"{asked}{reply}"
            if asked[-1:].isspace()
            else f"{asked} {reply}"
        )
        return self._processor(
            images=[[*shown, image] for image in images], text=[asked] * len(images), **_BATCHED
        )

    def _git_inputs(self, images: Sequence[Image.Image], prompt: str) -> Any:
        """Return a prompt that is still open; the processor would end it as a whole sentence."""
        tokenizer = self.tokenizer
        tokens = [tokenizer.cls_token_id, *tokenizer(prompt, add_special_tokens=False)["input_ids"]]
        inputs = self._images(images=list(images), return_tensors="pt")
        return {**inputs, "input_ids": self._source.torch.tensor([tokens] * len(images))}

    def on_device(self, inputs: Any) -> dict[str, Any]:
        model = self.model
        placed = {name: values.to(model.device) for name, values in dict(inputs).items()}
        return {
            name: values.to(model.dtype) if values.is_floating_point() else values
            for name, values in placed.items()
        }

    @property
    def decoder_start(self) -> int:
        """Token that everything a decoder writes starts with, for models of two parts."""
        config, special = self.model.config, self.model.generation_config
        found = (
            getattr(place, "decoder_start_token_id", None)
            for place in (special, config, getattr(config, "text_config", None))
        )
        return next(
            (int(token) for token in found if token is not None),
            int(self.tokenizer.bos_token_id or 0),
        )

    @LoadedOnce
    def model(self) -> Any:
        return self._source.model(self._kind)

    @LoadedOnce
    def _processor(self) -> Any:
        """Return the processor; a tokenizer alone for models that have none, whose images are prepared apart."""
        processor = self._source.load("AutoProcessor")
        tokenizer = getattr(processor, "tokenizer", None)
        if tokenizer is not None:
            # Answers are written at the end of the prompt, so that is where all prompts of a batch must end.
            tokenizer.padding_side = (
                "left" if getattr(processor, "chat_template", None) else tokenizer.padding_side
            )
        return processor

    @property
    def _has_processor(self) -> bool:
        return hasattr(self._processor, "image_processor") and hasattr(self._processor, "tokenizer")

    @LoadedOnce
    def _images(self) -> Any:
        return (
            self._processor.image_processor
            if self._has_processor
            else self._source.load("AutoImageProcessor")
        )

    @LoadedOnce
    def tokenizer(self) -> Any:
        return (
            self._processor.tokenizer if self._has_processor else self._source.load("AutoTokenizer")
        )


_BATCHED = {"padding": True, "return_tensors": "pt"}
