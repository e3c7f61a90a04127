"""Captions, answers and text by chat models behind an OpenAI-compatible address."""

import base64
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, TypedDict, Unpack
from urllib.parse import urlsplit

from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from weakspot.core.arrays import generator
from weakspot.core.bounds import Bounds, Count, NonNegative, NonNegativeInt, check_bounds
from weakspot.core.errors import ConfigError, ModelError, raise_all
from weakspot.core.registry import Sendable
from weakspot.models.endpoint.requests import (
    RequestRefusedError,
    Retries,
    address_problems,
    address_with,
    client_of,
    shown_address,
)
from weakspot.models.loading import LoadedOnce
from weakspot.models.model_hash import model_id, settings_hash
from weakspot.models.preprocessing import is_number, resize_shorter_side
from weakspot.models.prompts import (
    COMPLETION,
    Shot,
    answer_instruction,
    caption_instruction,
    completion_instruction,
    json_instruction,
    plain_words,
    read_shots,
    short_sentences,
    shots_id,
    without_thinking,
)

PATH = "/chat/completions"
NOT_UNDERSTOOD = frozenset({400, 404, 415, 422, 501})
RENAMED = {"max_tokens": "max_completion_tokens"}
OPTIONAL_FIELDS = ("response_format", "reasoning_effort", "max_tokens", "seed", "temperature")
OWN_FIELDS = frozenset({"model", "messages", "stream", "n", *OPTIONAL_FIELDS})
CUT_OFF = "length"
_SHOWN = 120


class ChatOptions(TypedDict, total=False):
    """Options that all parts behind a chat endpoint share, see `ChatSettings`."""

    version: str
    token_variable: str | None
    timeout_seconds: float
    n_retries: int
    first_wait_seconds: float
    concurrency: int
    max_tokens: int
    temperature: float
    thinking_tokens: int
    reasoning_effort: str
    extra_body: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ChatSettings:
    """Where the model is and how it is asked.

    Args:
        url: address up to and including the version, such as `https://host/v1`; `/chat/completions` is added if it is not there.
        model: name of the model behind the address.
        version: anything that changes when the model behind the name does; the name alone cannot tell.
        token_variable: name of the environment variable that holds the bearer token; the token itself is never written down.
        timeout_seconds: for connecting, and for each wait for data.
        n_retries: attempts after the first, on connection errors and on status 408, 425, 429 and 5xx.
        first_wait_seconds: wait before the first retry, doubled from then on.
        concurrency: requests under way at a time.
        max_tokens: most tokens of an answer.
        temperature: 0 for the likeliest words.
        thinking_tokens: added to `max_tokens` once the model turns out to think before it answers; 0 for never.
        reasoning_effort: how long models that can be told so think, such as `low`; empty for what they do by themselves.
        extra_body: further fields of every request, as the server behind the address names them.
    """

    url: str
    model: str
    version: str = ""
    token_variable: str | None = None
    timeout_seconds: Annotated[float, Bounds(ge=0.001)] = 60.0
    n_retries: NonNegativeInt = 3
    first_wait_seconds: NonNegative = 0.5
    concurrency: Count = 4
    max_tokens: Count = 60
    temperature: NonNegative = 0.0
    thinking_tokens: NonNegativeInt = 2048
    reasoning_effort: str = ""
    extra_body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = address_problems(self.url, self.token_variable)
        taken = sorted(OWN_FIELDS & self.extra_body.keys())
        if taken:
            problems.append(f"extra_body: {', '.join(taken)} cannot be set here")
        if not isinstance(self.model, str) or not self.model.strip():
            problems.append("model: must be the name of a model")
        check_bounds(self, where="options", problems=problems)


def chat_settings(url: str, model: str, given: ChatOptions, *, max_tokens: int) -> ChatSettings:
    """Return settings from options.

    Raises:
        ConfigError: with every option that does not exist or cannot be used.
    """
    known = ChatOptions.__annotations__
    unknown = [
        f"{name}: there is no such option (known: {', '.join(sorted(known))})"
        for name in given
        if name not in known
    ]
    raise_all(unknown, error=ConfigError, what="Some options cannot be used:", where="options")
    return ChatSettings(url=url, model=model, **{"max_tokens": max_tokens, **given})  # type: ignore[arg-type]


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)

    content: str | list[dict[str, JsonValue]] | None = None
    refusal: str | None = None

    @property
    def raw_text(self) -> str:
        said = self.content
        return (
            said
            if isinstance(said, str)
            else "".join(str(part.get("text", "")) for part in said or ())
        )

    @property
    def text(self) -> str:
        """Return the answer itself, without thoughts in it or before it."""
        return without_thinking(self.raw_text)


class _Choice(BaseModel):
    model_config = ConfigDict(frozen=True)

    message: _Message
    finish_reason: str | None = None

    @property
    def is_cut_while_thinking(self) -> bool:
        """Return whether all tokens went into thoughts, which some servers show and others do not."""
        return self.finish_reason == CUT_OFF and not self.message.text.strip()


class _Answer(BaseModel):
    """What comes back; further fields are ignored."""

    model_config = ConfigDict(frozen=True)

    choices: list[_Choice] = Field(min_length=1)


class ChatEndpoint(Sendable):
    """Sends questions, one request each, and leaves out what the endpoint does not understand.

    Args:
        settings: where the model is and how it is asked.
    """

    def __init__(self, settings: ChatSettings) -> None:
        self.settings = settings
        self._retries = Retries(
            n_retries=settings.n_retries, first_wait_seconds=settings.first_wait_seconds
        )
        self._left_out: frozenset[str] = frozenset()
        self._thinks = False

    @LoadedOnce
    def _guard(self) -> Lock:
        return Lock()

    def identity(self, kind: str, *parts: Any) -> str:
        """Return `kind:host/path model@hash`, the hash over everything that decides the words."""
        settings = self.settings
        address = urlsplit(settings.url)
        name = f"{address.hostname}{address.path}:{settings.model}"
        return model_id(
            kind,
            name,
            settings.url,
            settings.model,
            settings.version,
            settings.max_tokens,
            settings.temperature,
            *([settings.reasoning_effort] if settings.reasoning_effort else []),
            *([dict(settings.extra_body)] if settings.extra_body else []),
            *parts,
        )

    def ask(
        self,
        content: str | Sequence[Mapping[str, JsonValue]],
        *,
        schema: Mapping[str, JsonValue] | None = None,
        seed: int = 0,
        must_be_whole: bool = False,
    ) -> str:
        """Return the model's answer to one message.

        Args:
            content: text, or parts with text and images.
            schema: asks for JSON that fits it, where the endpoint can be asked for that.
            seed: sent along.
            must_be_whole: whether an answer that was cut off is of no use.

        Raises:
            ModelError: if the answer is none, empty, refused or cut off.
            UnavailableError: if no attempt was answered.
            ConfigError: if the token is refused.
        """
        had_room = self._thinks or not self.settings.thinking_tokens
        choice = self._choice(content, schema, seed)
        if choice.is_cut_while_thinking and not had_room:
            with self._guard:
                self._thinks = True
            choice = self._choice(content, schema, seed)
        return _text_of(choice, must_be_whole=must_be_whole, where=self._where)

    def _choice(
        self,
        content: str | Sequence[Mapping[str, JsonValue]],
        schema: Mapping[str, JsonValue] | None,
        seed: int,
    ) -> "_Choice":
        body = self._body(content, schema, seed)
        # The random part of the waits differs from question to question, or all of them would come back at the same instant.
        jitter = generator(seed, "chat endpoint", settings_hash(body))
        return _choice_of(self._sent(body, jitter), where=self._where)

    def close(self) -> None:
        if (client := vars(self).pop("_client", None)) is not None:
            client.close()

    def _body(
        self, content: Any, schema: Mapping[str, JsonValue] | None, seed: int
    ) -> dict[str, Any]:
        settings = self.settings
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [
                {
                    "role": "user",
                    "content": content
                    if isinstance(content, str)
                    else [dict(part) for part in content],
                }
            ],
            "max_tokens": settings.max_tokens + (settings.thinking_tokens if self._thinks else 0),
            "temperature": settings.temperature,
            "seed": seed,
            **settings.extra_body,
        }
        if settings.reasoning_effort:
            body["reasoning_effort"] = settings.reasoning_effort
        if schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(schema)},
            }
        return body

    def _sent(self, body: Mapping[str, Any], jitter: Any) -> bytes:
        """Send a question; a field that the endpoint does not take is left out, now and from then on."""
        while True:
            understood = _without(body, self._left_out)
            try:
                return self._retries.post(
                    self._client, self._address, understood, jitter=jitter, where=self._where
                )
            except RequestRefusedError as error:
                unwanted = _unwanted_field(error, understood)
                if unwanted is None:
                    raise
                with self._guard:
                    self._left_out |= {unwanted}

    @property
    def _address(self) -> str:
        return address_with(self.settings.url, PATH)

    @property
    def _where(self) -> str:
        return shown_address(self._address)

    @LoadedOnce
    def _client(self) -> Any:
        return client_of(
            token_variable=self.settings.token_variable,
            timeout_seconds=self.settings.timeout_seconds,
            concurrency=self.settings.concurrency,
        )


def _without(body: Mapping[str, Any], left_out: frozenset[str]) -> dict[str, Any]:
    sent = {name: value for name, value in body.items() if name not in left_out}
    renamed = {
        new: body[old] for old, new in RENAMED.items() if old in left_out and new not in left_out
    }
    return sent | renamed


def _unwanted_field(error: RequestRefusedError, sent: Mapping[str, Any]) -> str | None:
    """Return the field that the endpoint complains of; if it names none, the one that is understood least often."""
    if error.status not in NOT_UNDERSTOOD:
        return None
    candidates = [name for name in (*OPTIONAL_FIELDS, *RENAMED.values()) if name in sent]
    named = [name for name in candidates if name in error.said]
    if named:
        return named[0]
    return "response_format" if "response_format" in sent else None


def _choice_of(content: bytes, *, where: str) -> _Choice:
    try:
        return _Answer.model_validate_json(content).choices[0]
    except ValidationError as error:
        raise ModelError(
            "The endpoint's answer is not what chat endpoints answer: choices[0].message.content is missing.",
            where=where,
            given=content[:_SHOWN].decode("utf-8", "replace"),
            fix="Check url; it must be an OpenAI-compatible chat endpoint.",
        ) from error


def _text_of(choice: _Choice, *, must_be_whole: bool, where: str) -> str:
    text = choice.message.text
    if choice.is_cut_while_thinking:
        raise ModelError(
            "The model's answer was cut off while it was still thinking.",
            where=where,
            given=choice.message.raw_text[-_SHOWN:] or None,
            fix="Raise thinking_tokens, set reasoning_effort, or switch thinking off by extra_body.",
        )
    if not text.strip():
        raise ModelError(
            "The model gave no answer.",
            where=where,
            given=choice.message.refusal or choice.finish_reason,
        )
    if must_be_whole and choice.finish_reason == CUT_OFF:
        raise ModelError(
            "The model's answer was cut off.",
            where=where,
            given=text[-_SHOWN:],
            fix="Raise max_tokens.",
        )
    return text


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
