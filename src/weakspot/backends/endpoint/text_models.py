"""Captions, answers and text by chat models behind an OpenAI-compatible address."""

import base64
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Unpack

from PIL import Image
from pydantic import JsonValue

from weakspot.backends.answer_words import (
    COMPLETION,
    answer_instruction,
    caption_instruction,
    completion_instruction,
    json_instruction,
    plain_words,
    short_sentences,
)
from weakspot.backends.caption_shots import Shot, read_shots, shots_id
from weakspot.backends.endpoint.chat import ChatEndpoint, ChatOptions, chat_settings
from weakspot.backends.endpoint.retries import RequestRefusedError
from weakspot.backends.preprocessing import is_number, resize_shorter_side
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.sending import Sendable

IMAGE_SIDE = 512
QUALITY = 90
CAPTION_TOKENS, ANSWER_TOKENS, TEXT_TOKENS = 120, 24, 1024


class EndpointTextGenerator(Sendable):
    """Text of a language model behind an address; with a schema it is asked for JSON.

    Args:
        url: address up to and including the version, such as `https://host/v1`.
        model: name of the model behind it.
        options: see `ChatSettings`; `token_variable` names the environment variable with the token.
    """

    def __init__(self, *, url: str, model: str, **options: Unpack[ChatOptions]) -> None:
        self._endpoint = ChatEndpoint(chat_settings(url, model, options, max_tokens=TEXT_TOKENS))

    @property
    def generator_id(self) -> str:
        return self._endpoint.identity("endpoint-text")

    def generate(
        self, prompt: str, *, schema: Mapping[str, JsonValue] | None = None, seed: int = 0
    ) -> str:
        """Return the answer; where a schema is given the model is asked for JSON that fits it."""
        asked = prompt if schema is None else json_instruction(prompt, schema)
        return self._endpoint.ask(
            asked, schema=schema, seed=seed, must_be_whole=schema is not None
        ).strip()

    def close(self) -> None:
        self._endpoint.close()


class EndpointCaptioner(Sendable):
    """One sentence an image, or several after a beginning, by a chat model that sees, behind an address.

    How likely a caption is cannot be asked of such an endpoint.

    Args:
        url: address up to and including the version, such as `https://host/v1`.
        model: name of the model behind it.
        image_side: images are sent as JPEG with their shorter side at most so long.
        prompt: what the model is asked; `{about}` stands for the class, as "a dog" or "anything".
        shots: CSV table (image, text) with examples of captions, sent before an image whose caption is to be completed.
        options: see `ChatSettings`; `token_variable` names the environment variable with the token.
    """

    def __init__(
        self,
        *,
        url: str,
        model: str,
        image_side: int = IMAGE_SIDE,
        prompt: str = "",
        shots: str | Path = "",
        **options: Unpack[ChatOptions],
    ) -> None:
        self._images = _AskedImages(
            ChatEndpoint(chat_settings(url, model, options, max_tokens=CAPTION_TOKENS)),
            image_side=image_side,
        )
        self._prompt = prompt
        self._table, self._shots = str(shots), read_shots(shots)

    @property
    def captioner_id(self) -> str:
        asked = [caption_instruction(about, wording=self._prompt) for about in (None, "thing")]
        return self._images.identity(
            "endpoint-captioner", asked, COMPLETION, *shots_id(self._table)
        )

    @property
    def image_side(self) -> int | None:
        return self._images.side

    def caption(self, images: Sequence[Image.Image], *, about: str | None = None) -> list[str]:
        return self._images.ask(images, caption_instruction(about, wording=self._prompt))

    def complete(self, images: Sequence[Image.Image], *, beginning: str) -> list[str]:
        """Return short sentences that follow the beginning, one text an image; empty where the model says nothing of use."""
        asked = completion_instruction(beginning)
        said = self._images.ask_patiently(images, asked, shots=self._shots)
        return [short_sentences(text, beginning=beginning) for text in said]

    def close(self) -> None:
        self._images.close()


class EndpointAnswerer(Sendable):
    """One short answer an image, by a chat model that sees, behind an address.

    Args:
        url: address up to and including the version, such as `https://host/v1`.
        model: name of the model behind it.
        image_side: images are sent as JPEG with their shorter side at most so long.
        options: see `ChatSettings`; `token_variable` names the environment variable with the token.
    """

    def __init__(
        self, *, url: str, model: str, image_side: int = IMAGE_SIDE, **options: Unpack[ChatOptions]
    ) -> None:
        self._images = _AskedImages(
            ChatEndpoint(chat_settings(url, model, options, max_tokens=ANSWER_TOKENS)),
            image_side=image_side,
        )

    @property
    def answerer_id(self) -> str:
        return self._images.identity("endpoint-answerer", answer_instruction(""))

    @property
    def image_side(self) -> int | None:
        return self._images.side

    def answer(self, images: Sequence[Image.Image], question: str) -> list[str]:
        return self._images.ask(images, answer_instruction(question))

    def close(self) -> None:
        self._images.close()


class _AskedImages:
    """Asks the same of many images, several requests at a time."""

    def __init__(self, endpoint: ChatEndpoint, *, image_side: int) -> None:
        if not is_number(image_side) or image_side < 1:
            raise ConfigError(
                "Images must be sent with at least one pixel.", where="image_side", given=image_side
            )
        self.side = int(image_side)
        self._endpoint = endpoint

    def identity(self, kind: str, *parts: Any) -> str:
        return self._endpoint.identity(kind, self.side, QUALITY, *parts)

    def ask(self, images: Sequence[Image.Image], instruction: str) -> list[str]:
        if not images:
            return []
        with ThreadPoolExecutor(max_workers=self._endpoint.settings.concurrency) as pool:
            return list(pool.map(lambda image: self._word(image, instruction), images))

    def ask_patiently(
        self, images: Sequence[Image.Image], instruction: str, *, shots: Sequence[Shot] = ()
    ) -> list[str]:
        """Return answers as they came; an empty one where a single image got none, and the error where all of them did."""
        if not images:
            return []
        with ThreadPoolExecutor(max_workers=self._endpoint.settings.concurrency) as pool:
            said = list(
                pool.map(lambda image: self._asked_or_error(image, instruction, shots), images)
            )
        errors = [one for one in said if isinstance(one, ModelError)]
        if len(errors) == len(said):
            raise errors[0]
        return [one if isinstance(one, str) else "" for one in said]

    def close(self) -> None:
        self._endpoint.close()

    def _asked_or_error(
        self, image: Image.Image, instruction: str, shots: Sequence[Shot]
    ) -> str | ModelError:
        try:
            return self._ask(image, instruction, shots)
        except RequestRefusedError:
            raise
        except ModelError as error:
            return error

    def _word(self, image: Image.Image, instruction: str) -> str:
        words = plain_words(self._ask(image, instruction))
        if not words:
            raise ModelError("The model answered without words.")
        return words

    def _ask(self, image: Image.Image, instruction: str, shots: Sequence[Shot] = ()) -> str:
        shown = [*((shot.said, shot.image) for shot in shots), (instruction, image)]
        parts: list[dict[str, JsonValue]] = []
        for text, own in shown:
            parts.append({"type": "text", "text": text})
            address = data_url(own, side=self.side)
            parts.append({"type": "image_url", "image_url": {"url": address}})
        return self._endpoint.ask(parts)


def data_url(image: Image.Image, *, side: int) -> str:
    sent = image.convert("RGB")
    if min(sent.size) > side:
        sent = resize_shorter_side(sent, side)
    stream = io.BytesIO()
    sent.save(stream, format="JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
