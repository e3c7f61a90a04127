"""Captions and answers by image-to-text models of the transformers library, whatever kind they are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray
from weakspot.core.bounds import Count
from weakspot.models.loading import LoadedOnce
from weakspot.models.prompts import (
    COMPLETION,
    OPENINGS,
    SCORED,
    Shot,
    after_opening,
    answer_instruction,
    caption_instruction,
    caption_opening,
    completion_instruction,
    led_sentence,
    plain_words,
    read_shots,
    short_sentences,
    shots_id,
    spoken_answer,
)
from weakspot.models.transformers.source import SpeakingModel

IMAGE_TO_TEXT = "AutoModelForImageTextToText"
_SIDES = ("shortest_edge", "longest_edge", "height", "width")


@dataclass(kw_only=True, eq=False)
class ImagesToWords(SpeakingModel):
    """An image-to-text model with its processor; greedy, so the same image always gets the same words.

    Args:
        batch_size: images a call of the model.
    """

    batch_size: Count = 8

    @property
    def loader(self) -> str:
        """Class of transformers that loads the model."""
        return IMAGE_TO_TEXT

    @property
    def is_chat(self) -> bool:
        return getattr(self._processor, "chat_template", None) is not None

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
        n_tokens = self.max_new_tokens
        said = self._in_batches(
            images, lambda batch: self._said(lambda: self.inputs(batch, prompt), n_tokens)
        )
        return [plain_words(spoken_answer(text, where=self.model)) for text in said]

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
        size = self.batch_size
        upright = [image.convert("RGB") for image in images]
        return [
            text
            for start in range(0, len(upright), size)
            for text in speak(upright[start : start + size])
        ]

    def _said(
        self, prepare: Callable[[], Any], max_new_tokens: int, *, is_new_only: bool = False
    ) -> list[str]:
        model = self.module
        with self.running():
            inputs = self.on_device(prepare())
            given = inputs.get("decoder_input_ids", inputs.get("input_ids"))
            given = None if given is None else given.clone()
            found = model.generate(
                **inputs, max_new_tokens=max_new_tokens, do_sample=False, num_beams=1
            )
            return self._after(found, given) if is_new_only else self._new_words(found, given)

    def _labelled(self, images: Sequence[Image.Image], question: str) -> list[str]:
        model = self.module
        with self.running():
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
            "decoder_input_ids": self.torch.tensor([tokens] * len(images)),
        }

    def inputs(self, images: Sequence[Image.Image], prompt: str | None, *, reply: str = "") -> Any:
        """Return what the model takes for images and a prompt, and the beginning of its reply if it is a chat model."""
        if self.is_chat:
            return self._chat_inputs(images, prompt or "", reply)
        if not self._has_processor:
            return self._images(images=list(images), return_tensors="pt")
        if prompt is None:
            return self._processor(images=list(images), return_tensors="pt")
        if self.config.model_type == "git":
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
        return {**inputs, "input_ids": self.torch.tensor([tokens] * len(images))}

    def on_device(self, inputs: Any) -> dict[str, Any]:
        model = self.module
        placed = {name: values.to(model.device) for name, values in dict(inputs).items()}
        return {
            name: values.to(model.dtype) if values.is_floating_point() else values
            for name, values in placed.items()
        }

    @property
    def decoder_start(self) -> int:
        """Token that everything a decoder writes starts with, for models of two parts."""
        config, special = self.module.config, self.module.generation_config
        found = (
            getattr(place, "decoder_start_token_id", None)
            for place in (special, config, getattr(config, "text_config", None))
        )
        return next(
            (int(token) for token in found if token is not None),
            int(self.tokenizer.bos_token_id or 0),
        )

    @LoadedOnce
    def module(self) -> Any:
        return self.network(self.loader)

    @LoadedOnce
    def _processor(self) -> Any:
        """Return the processor; a tokenizer alone for models that have none, whose images are prepared apart."""
        processor = self.load("AutoProcessor")
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
            else self.load("AutoImageProcessor")
        )

    @LoadedOnce
    def tokenizer(self) -> Any:
        return self._processor.tokenizer if self._has_processor else self.load("AutoTokenizer")


_BATCHED = {"padding": True, "return_tensors": "pt"}


CAPTION_TASKS = {"florence2": ("<CAPTION>", "<MORE_DETAILED_CAPTION>")}
"""Kinds of models that are told what to do by a token of their own: for one sentence, and for several."""


LED_TOKENS = 12


@dataclass(kw_only=True, eq=False)
class TransformersCaptioner(ImagesToWords):
    """One sentence an image, by BLIP, BLIP-2, GIT, Florence-2, a vision encoder-decoder or a chat model that sees.

    Chat models that see are those of transformers' image-text-to-text: SmolVLM, Idefics, LLaVA, Qwen-VL, Gemma 3 and their kin.

    Decoding is greedy. A chat model is asked for one sentence; BLIP, BLIP-2 and GIT go on from "a photo of a ..." when the caption
    is to be about a class; Florence-2 gets its own task tokens, and neither it nor a vision encoder-decoder can be told what to
    write about.

    To complete a caption, a chat model is asked for short sentences and its answer is begun for it; the other kinds are led, one
    sentence each, by "it is", "there is", "the background is" and "the light is" after the beginning.

    Args:
        max_completion_tokens: most tokens that a chat model completes a caption with.
        prompt: what chat models are asked, or what others go on from; `{about}` stands for the class, as "a dog" or "anything".
        shots: CSV table (image, text) with examples of captions; chat models go on from a beginning as these do.
    """

    max_completion_tokens: Count = 96
    prompt: str = ""
    shots: str | Path = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._shots = read_shots(self.shots)

    @LoadedOnce
    def captioner_id(self) -> str:
        """Name and hash of weights, prompt and what else decides the words."""
        asked = [caption_instruction(about, wording=self.prompt) for about in (None, "thing")]
        return self.identity(
            "transformers-captioner",
            asked,
            COMPLETION,
            OPENINGS,
            SCORED,
            self.max_completion_tokens,
            *shots_id(self.shots),
        )

    def caption(self, images: Sequence[Image.Image], *, about: str | None = None) -> list[str]:
        if not images:
            return []
        if self._tasks is not None:
            return self.say(images, self.prompt or self._tasks[0])
        if self.is_chat:
            return self.say(images, caption_instruction(about, wording=self.prompt))
        opening = caption_opening(about, wording=self.prompt) if self._has_processor else None
        said = self.say(images, opening)
        return said if opening is None else [_open(text, opening) for text in said]

    def complete(self, images: Sequence[Image.Image], *, beginning: str) -> list[str]:
        """Return short sentences that follow the beginning, one text an image; empty where the model says nothing more."""
        if not images:
            return []
        if self._tasks is not None:
            said = self.say(images, self._tasks[1])
            return [short_sentences(text, beginning=beginning) for text in said]
        if self.is_chat:
            asked = completion_instruction(beginning)
            said = self.go_on(
                images,
                beginning,
                instruction=asked,
                max_new_tokens=self.max_completion_tokens,
                shots=self._shots,
            )
            return [short_sentences(text, beginning=beginning) for text in said]
        led = [self._led(images, beginning, opening) for opening in OPENINGS]
        return [
            short_sentences(" ".join(sentences), beginning=beginning)
            for sentences in zip(*led, strict=True)
        ]

    def log_likelihoods(self, images: Sequence[Image.Image], captions: Sequence[str]) -> FloatArray:
        """Return log P(caption | image) [n, m]: sums, never means, over the tokens of a caption.

        Sums are what products over the images of a cluster need. A longer caption is less likely for its length alone, so captions
        of equally many sentences are to be compared. That the caption ends there is not part of it: it is judged as a beginning.
        All images of a batch get the same caption, so nothing is padded.

        Raises:
            ModelError: if the model cannot read a caption, for example because it is too long.
        """
        found = np.zeros((len(images), len(captions)), dtype=np.float32)
        for start in range(0, len(images) if captions else 0, self.batch_size):
            batch = [image.convert("RGB") for image in images[start : start + self.batch_size]]
            with self.running():
                seen = self._seen(batch)
                scores = [self._score(seen, self._tokens(one), len(batch)) for one in captions]
            found[start : start + self.batch_size] = np.stack(scores, axis=1)
        return found

    @property
    def _tasks(self) -> tuple[str, str] | None:
        return CAPTION_TASKS.get(self.config.model_type)

    def _led(self, images: Sequence[Image.Image], beginning: str, opening: str) -> list[str]:
        begun = f"{beginning} {opening}".strip()
        n_tokens = min(LED_TOKENS, self.max_completion_tokens)
        return [
            led_sentence(opening, text)
            for text in self.go_on(images, begun, instruction="", max_new_tokens=n_tokens)
        ]

    def _tokens(self, caption: str) -> list[int]:
        words = " ".join(caption.split())
        spoken = f" {words}" if self.is_chat and words else words
        return [
            int(token) for token in self.tokenizer(spoken, add_special_tokens=False)["input_ids"]
        ]

    def _score(self, seen: dict[str, Any], tokens: list[int], n_images: int) -> FloatArray:
        """Return the log-likelihood [n] of one caption for every image of a batch."""
        if not tokens:
            return np.zeros(n_images, dtype=np.float32)
        torch, given = self.torch, dict(seen)
        name = "decoder_input_ids" if "decoder_input_ids" in given else "input_ids"
        prefix = given.pop(name)
        caption = torch.tensor([tokens] * n_images, device=prefix.device)
        given |= self._masks(given, name, prefix, caption)
        logits = self._call(given | {name: torch.cat([prefix, caption], dim=1)})[
            :, -len(tokens) - 1 : -1
        ]
        chosen = (
            torch.log_softmax(logits.float(), dim=-1).gather(2, caption.unsqueeze(2)).squeeze(2)
        )
        return np.asarray(chosen.sum(dim=1).cpu().numpy(), dtype=np.float32)

    def _masks(self, given: dict[str, Any], name: str, prefix: Any, caption: Any) -> dict[str, Any]:
        """Return what stands beside the tokens, one entry a token, as long as they are now."""
        torch = self.torch
        beside = {
            key: values
            for key, values in given.items()
            if name == "input_ids" and values.shape == prefix.shape
        }
        grown = {
            key: torch.zeros_like(caption, dtype=values.dtype) for key, values in beside.items()
        }
        if "attention_mask" in grown:
            grown["attention_mask"] += 1
        return {key: torch.cat([values, grown[key]], dim=1) for key, values in beside.items()}

    def _call(self, given: dict[str, Any]) -> Any:
        model = self.module
        if self.config.model_type == "blip":
            return model.text_decoder(**given).logits
        return model(**given, use_cache=False).logits

    def _seen(self, images: Sequence[Image.Image]) -> dict[str, Any]:
        """Return all that the model takes beside a caption; what is before the caption is the last entry of its tokens."""
        config = self.config
        if self.is_chat:
            return self.on_device(self.inputs(images, SCORED))
        if config.model_type in CAPTION_TASKS:
            asked = self.on_device(self.inputs(images, CAPTION_TASKS[config.model_type][0]))
            return asked | {"decoder_input_ids": self._repeat([self.decoder_start], len(images))}
        seen = self.on_device({"pixel_values": self.inputs(images, None)["pixel_values"]})
        if config.model_type == "blip":
            shown = self.module.vision_model(**seen).last_hidden_state
            return {
                "encoder_hidden_states": shown,
                "input_ids": self._repeat([config.text_config.bos_token_id], len(images)),
            }
        if config.model_type == "blip-2":
            return seen | self._after_queries(len(images))
        if config.is_encoder_decoder:
            shown = self.module.get_encoder()(**seen)
            return {
                "encoder_outputs": shown,
                "decoder_input_ids": self._repeat([self.decoder_start], len(images)),
            }
        return seen | {"input_ids": self._repeat([self.tokenizer.cls_token_id], len(images))}

    def _after_queries(self, n_images: int) -> dict[str, Any]:
        """Return the places that BLIP-2 fills with what it sees, and the start of what it writes."""
        config = self.config
        places = [config.image_token_index] * config.num_query_tokens
        if config.use_decoder_only_language_model:
            return {"input_ids": self._repeat([*places, config.text_config.bos_token_id], n_images)}
        start = self._repeat([self.decoder_start], n_images)
        return {"input_ids": self._repeat(places, n_images), "decoder_input_ids": start}

    def _repeat(self, tokens: Sequence[int], n_images: int) -> Any:
        return self.torch.tensor([list(tokens)] * n_images, device=self.module.device)


def _open(text: str, opening: str) -> str:
    """Return a caption with its opening: some models repeat it and some only go on from it."""
    return text if after_opening(text, opening) is not None else f"{opening} {text}".strip()


CHOOSES_A_LABEL = "vilt"
_OF_QUESTIONS = frozenset({"blip", CHOOSES_A_LABEL})
_OPENINGS = {"blip-2": "Question: {question} Answer:"}


@dataclass(kw_only=True, eq=False)
class TransformersAnswerer(ImagesToWords):
    """One short answer an image, by BLIP for questions, ViLT, BLIP-2, GIT or a chat model that sees (SmolVLM, Idefics, LLaVA)."""

    max_new_tokens: Count = 12

    @LoadedOnce
    def answerer_id(self) -> str:
        """Name and hash of weights and of what else decides the words."""
        return self.identity("transformers-answerer", answer_instruction(""))

    def answer(self, images: Sequence[Image.Image], question: str) -> list[str]:
        if not images:
            return []
        if self._kind == CHOOSES_A_LABEL:
            return self.label(images, question)
        if self.is_chat:
            return self.say(images, answer_instruction(question))
        asked = _OPENINGS.get(self._kind, "{question}").replace("{question}", question.strip())
        return [_without(text, asked) for text in self.say(images, asked)]

    @property
    def _kind(self) -> str:
        return str(self.config.model_type)

    @property
    def loader(self) -> str:
        is_for_questions = self._kind in _OF_QUESTIONS
        return "AutoModelForVisualQuestionAnswering" if is_for_questions else IMAGE_TO_TEXT


def _without(text: str, asked: str) -> str:
    """Return an answer without the question, which some models repeat."""
    rest = after_opening(text, asked)
    return text if rest is None else rest
