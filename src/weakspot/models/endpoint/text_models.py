"""Captions, answers and text by chat models behind an OpenAI-compatible address."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from weakspot.core.arrays import generator
from weakspot.core.bounds import Count, NonNegative, NonNegativeInt
from weakspot.core.errors import ModelError
from weakspot.models.endpoint.requests import (
    Endpoint,
    RequestRefusedError,
    encoded,
    model_problems,
    smaller,
)
from weakspot.models.loading import LoadedOnce, settings_hash
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

NOT_UNDERSTOOD = frozenset({400, 404, 415, 422, 501})
RENAMED = {"max_tokens": "max_completion_tokens"}
OPTIONAL_FIELDS = ("response_format", "reasoning_effort", "max_tokens", "seed", "temperature")
OWN_FIELDS = frozenset({"model", "messages", "stream", "n", *OPTIONAL_FIELDS})
CUT_OFF = "length"
_SHOWN = 120


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


@dataclass(kw_only=True, eq=False)
class ChatEndpoint(Endpoint):
    """Sends questions, one request each, and leaves out what the endpoint does not understand.

    `/chat/completions` is added to the url if it is not there.

    Args:
        model: name of the model behind the address.
        max_tokens: most tokens of an answer.
        temperature: 0 for the likeliest words.
        thinking_tokens: added to `max_tokens` once the model turns out to think before it answers; 0 for never.
        reasoning_effort: how long models that can be told so think, such as `low`; empty for what they do by themselves.
        extra_body: further fields of every request, as the server behind the address names them.
    """

    model: str
    max_tokens: Count = 60
    temperature: NonNegative = 0.0
    thinking_tokens: NonNegativeInt = 2048
    reasoning_effort: str = ""
    extra_body: Mapping[str, Any] = field(default_factory=dict)

    path: ClassVar[str] = "/chat/completions"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._left_out: frozenset[str] = frozenset()
        self._thinks = False

    @LoadedOnce
    def _guard(self) -> Lock:
        return Lock()

    def identity(self, kind: str, *parts: Any) -> str:
        """Return `kind:host/path:model@hash`, the hash over everything that decides the words."""
        return self._identity(
            kind,
            self.model,
            self.version,
            self.max_tokens,
            self.temperature,
            *([self.reasoning_effort] if self.reasoning_effort else []),
            *([dict(self.extra_body)] if self.extra_body else []),
            *parts,
            model=self.model,
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
        had_room = self._thinks or not self.thinking_tokens
        choice = self._choice(content, schema, seed)
        if choice.is_cut_while_thinking and not had_room:
            with self._guard:
                self._thinks = True
            choice = self._choice(content, schema, seed)
        return _text_of(choice, must_be_whole=must_be_whole, where=self.where)

    def _choice(
        self,
        content: str | Sequence[Mapping[str, JsonValue]],
        schema: Mapping[str, JsonValue] | None,
        seed: int,
    ) -> "_Choice":
        body = self._body(content, schema, seed)
        # The random part of the waits differs from question to question, or all of them would come back at the same instant.
        jitter = generator(seed, "chat endpoint", settings_hash(body))
        return _choice_of(self._sent(body, jitter), where=self.where)

    def _problems(self) -> list[str]:
        taken = sorted(OWN_FIELDS & self.extra_body.keys())
        return [
            *super()._problems(),
            *([f"extra_body: {', '.join(taken)} cannot be set here"] if taken else []),
            *model_problems(self.model),
        ]

    def _body(
        self, content: Any, schema: Mapping[str, JsonValue] | None, seed: int
    ) -> dict[str, Any]:
        whole = content if isinstance(content, str) else [dict(part) for part in content]
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": whole}],
            "max_tokens": self.max_tokens + (self.thinking_tokens if self._thinks else 0),
            "temperature": self.temperature,
            "seed": seed,
            **self.extra_body,
        }
        if self.reasoning_effort:
            body["reasoning_effort"] = self.reasoning_effort
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
                return self.post(understood, jitter=jitter)
            except RequestRefusedError as error:
                unwanted = _unwanted_field(error, understood)
                if unwanted is None:
                    raise
                with self._guard:
                    self._left_out |= {unwanted}


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


@dataclass(kw_only=True, eq=False)
class EndpointTextGenerator(ChatEndpoint):
    """Text of a language model behind an address; with a schema it is asked for JSON."""

    max_tokens: Count = 1024

    @property
    def generator_id(self) -> str:
        return self.identity("endpoint-text")

    def generate(
        self, prompt: str, *, schema: Mapping[str, JsonValue] | None = None, seed: int = 0
    ) -> str:
        """Return the answer; where a schema is given the model is asked for JSON that fits it."""
        asked = prompt if schema is None else json_instruction(prompt, schema)
        return self.ask(asked, schema=schema, seed=seed, must_be_whole=schema is not None).strip()


@dataclass(kw_only=True, eq=False)
class _ImageChat(ChatEndpoint):
    """Asks the same of many images, several requests at a time.

    Args:
        image_side: images are sent as JPEG with their shorter side at most so long.
    """

    image_side: Count = IMAGE_SIDE

    def identity(self, kind: str, *parts: Any) -> str:
        return super().identity(kind, self.image_side, QUALITY, *parts)

    def _words_of(self, images: Sequence[Image.Image], instruction: str) -> list[str]:
        return self.ask_all(lambda image: self._words(image, instruction), images)

    def _words(self, image: Image.Image, instruction: str) -> str:
        words = plain_words(self._ask_of(image, instruction))
        if not words:
            raise ModelError("The model answered without words.")
        return words

    def _ask_of(self, image: Image.Image, instruction: str, shots: Sequence[Shot] = ()) -> str:
        shown = [*((shot.said, shot.image) for shot in shots), (instruction, image)]
        parts: list[dict[str, JsonValue]] = []
        for text, own in shown:
            parts.append({"type": "text", "text": text})
            address = data_url(own, side=self.image_side)
            parts.append({"type": "image_url", "image_url": {"url": address}})
        return self.ask(parts)


@dataclass(kw_only=True, eq=False)
class EndpointCaptioner(_ImageChat):
    """One sentence an image, or several after a beginning, by a chat model that sees, behind an address.

    How likely a caption is cannot be asked of such an endpoint.

    Args:
        prompt: what the model is asked; `{about}` stands for the class, as "a dog" or "anything".
        shots: CSV table (image, text) with examples of captions, sent before an image whose caption is to be completed.
    """

    max_tokens: Count = 120
    prompt: str = ""
    shots: str | Path = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._shots = read_shots(self.shots)

    @property
    def captioner_id(self) -> str:
        asked = [caption_instruction(about, wording=self.prompt) for about in (None, "thing")]
        return self.identity("endpoint-captioner", asked, COMPLETION, *shots_id(self.shots))

    def caption(self, images: Sequence[Image.Image], *, about: str | None = None) -> list[str]:
        return self._words_of(images, caption_instruction(about, wording=self.prompt))

    def complete(self, images: Sequence[Image.Image], *, beginning: str) -> list[str]:
        """Return short sentences that follow the beginning, one text an image; empty where the model says nothing of use.

        Raises:
            ModelError: if no image got an answer.
        """
        asked = completion_instruction(beginning)
        answers = self.ask_all(lambda image: self._answer_or_error(image, asked), images)
        errors = [answer for answer in answers if isinstance(answer, ModelError)]
        if answers and len(errors) == len(answers):
            raise errors[0]
        texts = [answer if isinstance(answer, str) else "" for answer in answers]
        return [short_sentences(text, beginning=beginning) for text in texts]

    def _answer_or_error(self, image: Image.Image, instruction: str) -> str | ModelError:
        try:
            return self._ask_of(image, instruction, self._shots)
        except RequestRefusedError:
            raise
        except ModelError as error:
            return error


@dataclass(kw_only=True, eq=False)
class EndpointAnswerer(_ImageChat):
    """One short answer an image, by a chat model that sees, behind an address."""

    max_tokens: Count = 24

    @property
    def answerer_id(self) -> str:
        return self.identity("endpoint-answerer", answer_instruction(""))

    def answer(self, images: Sequence[Image.Image], question: str) -> list[str]:
        return self._words_of(images, answer_instruction(question))


def data_url(image: Image.Image, *, side: int) -> str:
    sent = encoded(smaller(image, side), format="JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(sent).decode('ascii')}"
