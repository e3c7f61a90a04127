"""Captions, answers and text by chat models behind an OpenAI-compatible address."""

import base64
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Unpack

from PIL import Image
from pydantic import JsonValue

from weakspot.backends.caption_sentences import COMPLETION, completion_instruction, short_sentences
from weakspot.backends.endpoint_chat import ChatEndpoint, ChatOptions, chat_settings
from weakspot.backends.endpoint_retries import RequestRefusedError
from weakspot.backends.preprocessing import is_number, resize_shorter_side
from weakspot.backends.words_asked_for import answer_instruction, caption_instruction, json_instruction, plain_words
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.sending import Sendable

PICTURE_SIDE = 512
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
        """Address, model, version and settings."""
        return self._endpoint.identity("endpoint-text")

    def generate(self, prompt: str, *, schema: Mapping[str, JsonValue] | None = None, seed: int = 0) -> str:
        """Return the answer; where a schema is given the model is asked for JSON that fits it."""
        asked = prompt if schema is None else json_instruction(prompt, schema)
        return self._endpoint.ask(asked, schema=schema, seed=seed, must_be_whole=schema is not None).strip()

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()


class EndpointCaptioner(Sendable):
    """One sentence a picture, or several after a beginning, by a chat model that sees, behind an address.

    How likely a caption is cannot be asked of such an endpoint.

    Args:
        url: address up to and including the version, such as `https://host/v1`.
        model: name of the model behind it.
        picture_side: pictures are sent as JPEG with their shorter side at most so long.
        prompt: what the model is asked; `{about}` stands for the class, as "a dog" or "anything".
        options: see `ChatSettings`; `token_variable` names the environment variable with the token.
    """

    def __init__(
        self, *, url: str, model: str, picture_side: int = PICTURE_SIDE, prompt: str = "", **options: Unpack[ChatOptions]
    ) -> None:
        self._pictures = _AskedPictures(
            ChatEndpoint(chat_settings(url, model, options, max_tokens=CAPTION_TOKENS)), picture_side=picture_side
        )
        self._prompt = prompt

    @property
    def captioner_id(self) -> str:
        """Address, model, version and how it is asked."""
        asked = [caption_instruction(about, wording=self._prompt) for about in (None, "thing")]
        return self._pictures.identity("endpoint-captioner", asked, COMPLETION)

    @property
    def picture_side(self) -> int | None:
        """Shortest side that is sent."""
        return self._pictures.side

    def caption(self, pictures: Sequence[Image.Image], *, about: str | None = None) -> list[str]:
        """Return one sentence a picture, about the given class if named."""
        return self._pictures.ask(pictures, caption_instruction(about, wording=self._prompt))

    def complete(self, pictures: Sequence[Image.Image], *, beginning: str) -> list[str]:
        """Return short sentences that follow the beginning, one text a picture; empty where the model says nothing of use."""
        said = self._pictures.ask_patiently(pictures, completion_instruction(beginning))
        return [short_sentences(text, beginning=beginning) for text in said]

    def close(self) -> None:
        """Close the connections."""
        self._pictures.close()


class EndpointAnswerer(Sendable):
    """One short answer a picture, by a chat model that sees, behind an address.

    Args:
        url: address up to and including the version, such as `https://host/v1`.
        model: name of the model behind it.
        picture_side: pictures are sent as JPEG with their shorter side at most so long.
        options: see `ChatSettings`; `token_variable` names the environment variable with the token.
    """

    def __init__(self, *, url: str, model: str, picture_side: int = PICTURE_SIDE, **options: Unpack[ChatOptions]) -> None:
        self._pictures = _AskedPictures(
            ChatEndpoint(chat_settings(url, model, options, max_tokens=ANSWER_TOKENS)), picture_side=picture_side
        )

    @property
    def answerer_id(self) -> str:
        """Address, model, version and how it is asked."""
        return self._pictures.identity("endpoint-answerer", answer_instruction(""))

    @property
    def picture_side(self) -> int | None:
        """Shortest side that is sent."""
        return self._pictures.side

    def answer(self, pictures: Sequence[Image.Image], question: str) -> list[str]:
        """Return one short answer a picture."""
        return self._pictures.ask(pictures, answer_instruction(question))

    def close(self) -> None:
        """Close the connections."""
        self._pictures.close()


class _AskedPictures:
    """Asks the same of many pictures, several requests at a time."""

    def __init__(self, endpoint: ChatEndpoint, *, picture_side: int) -> None:
        if not is_number(picture_side) or picture_side < 1:
            raise ConfigError("Pictures must be sent with at least one pixel.", where="picture_side", given=picture_side)
        self.side = int(picture_side)
        self._endpoint = endpoint

    def identity(self, kind: str, *parts: Any) -> str:
        return self._endpoint.identity(kind, self.side, QUALITY, *parts)

    def ask(self, pictures: Sequence[Image.Image], instruction: str) -> list[str]:
        if not pictures:
            return []
        with ThreadPoolExecutor(max_workers=self._endpoint.settings.concurrency) as pool:
            return list(pool.map(lambda picture: self._worded(picture, instruction), pictures))

    def ask_patiently(self, pictures: Sequence[Image.Image], instruction: str) -> list[str]:
        """Return answers as they came; an empty one where a single picture got none, and the error where all of them did."""
        if not pictures:
            return []
        with ThreadPoolExecutor(max_workers=self._endpoint.settings.concurrency) as pool:
            said = list(pool.map(lambda picture: self._asked_or_error(picture, instruction), pictures))
        errors = [one for one in said if isinstance(one, ModelError)]
        if len(errors) == len(said):
            raise errors[0]
        return [one if isinstance(one, str) else "" for one in said]

    def close(self) -> None:
        self._endpoint.close()

    def _asked_or_error(self, picture: Image.Image, instruction: str) -> str | ModelError:
        try:
            return self._asked(picture, instruction)
        except RequestRefusedError:
            raise
        except ModelError as error:
            return error

    def _worded(self, picture: Image.Image, instruction: str) -> str:
        words = plain_words(self._asked(picture, instruction))
        if not words:
            raise ModelError("The model answered without words.")
        return words

    def _asked(self, picture: Image.Image, instruction: str) -> str:
        parts: list[dict[str, JsonValue]] = [
            {"type": "text", "text": instruction},
            {"type": "image_url", "image_url": {"url": data_url(picture, side=self.side)}},
        ]
        return self._endpoint.ask(parts)


def data_url(picture: Image.Image, *, side: int) -> str:
    """Return a picture as the text of an address that holds all of it."""
    sent = picture.convert("RGB")
    if min(sent.size) > side:
        sent = resize_shorter_side(sent, side)
    stream = io.BytesIO()
    sent.save(stream, format="JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
