"""Text and JSON from language models of the transformers library, by name or from a folder.

JSON that fits a schema is a regular expression, so that a language model can write nothing else. Written are objects with all
the properties that the schema declares, in its order, or with free keys; arrays; strings without escapes; numbers; literals. Lengths
are bounded, so that every text ends.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import JsonValue

from weakspot.core.arrays import child_seed
from weakspot.core.bounds import Bounds, Count
from weakspot.core.errors import ModelError
from weakspot.models.loading import LoadedOnce, require_library
from weakspot.models.prompts import json_instruction, spoken_answer
from weakspot.models.transformers.source import SpeakingModel

MAX_LETTERS = 120
MAX_KEY_LETTERS = 40
MAX_ITEMS = 32
_ANY_TEXT: Mapping[str, Any] = {"type": "string"}
_FIRST_LETTER = r'[^"\\\p{C}\p{Z}\uFFFD]'
_LETTER = f"(?:{_FIRST_LETTER}| )"
_WHOLE_NUMBER = "-?(?:0|[1-9][0-9]{0,10})"
_KINDS = {
    "boolean": "(?:true|false)",
    "null": "null",
    "integer": _WHOLE_NUMBER,
    "number": rf"{_WHOLE_NUMBER}(?:\.[0-9]{{1,6}})?",
}
_NEVER = "(?!)"


def pattern_of(schema: Mapping[str, Any]) -> str:
    r"""Return a regular expression of the values that fit a schema.

    >>> print(pattern_of({"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 3}))
    \[null(?:, ?null){0,2}\]
    """
    if "enum" in schema or "const" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        return f"(?:{'|'.join(_literal(value) for value in allowed)})"
    kind = _kind(schema)
    if kind == "string":
        least = int(schema.get("minLength", 1))
        return _text(least, max(least, int(schema.get("maxLength", MAX_LETTERS))))
    if kind == "array":
        items = schema.get("items")
        entry = pattern_of(items if isinstance(items, Mapping) else _ANY_TEXT)
        return _repeated(entry, r"\[", r"\]", schema, ("minItems", "maxItems"))
    return _object(schema) if kind == "object" else _KINDS.get(kind, _NEVER)


def is_whole(pattern: str, text: str) -> bool:
    match = _match(pattern, text)
    return match is not None and not match.partial


def may_follow(pattern: str, text: str, piece: str, *, hurry: int = 0) -> bool:
    """Return whether a piece can follow a text that can still come to fit a pattern.

    Args:
        pattern: what the whole must fit.
        text: what is written.
        piece: what is written next.
        hurry: 1: nothing is begun that can be left out; 2: strings end at once, too.

    >>> numbers = pattern_of({"type": "array", "items": {"type": "integer"}})
    >>> may_follow(numbers, "[1, 20", "]"), may_follow(numbers, "[1, 20", "x")
    (True, False)
    """
    if _match(pattern, text + piece) is None:
        return False
    before = (text + piece[:place] for place in range(len(piece) if hurry else 0))
    return all(
        _ending(pattern, written, hurry) in ("", letter)
        for written, letter in zip(before, piece, strict=False)
    )


def _ending(pattern: str, text: str, hurry: int) -> str:
    """Return the letter that ends what was begun last, empty if it cannot end yet."""
    is_inside_string = text.count('"') % 2 == 1
    endings = ('"' if hurry > 1 else "") if is_inside_string else "]}"
    return next((end for end in endings if _match(pattern, text + end) is not None), "")


def _match(pattern: str, text: str) -> Any:
    return _compiled(pattern).fullmatch(text, partial=True)


@cache
def _compiled(pattern: str) -> Any:
    return require_library("regex", extra="hub", purpose="JSON of hub models").compile(pattern)


def _kind(schema: Mapping[str, Any]) -> str:
    is_object = "properties" in schema or "additionalProperties" in schema
    kind = schema.get("type", "object" if is_object else "string")
    return str(kind[0]) if isinstance(kind, list | tuple) and kind else str(kind)


def _object(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        entries = (f"{_literal(name)}: ?{pattern_of(value)}" for name, value in properties.items())
        return rf"\{{{', ?'.join(entries)}\}}"
    values = schema.get("additionalProperties")
    value = pattern_of(values if isinstance(values, Mapping) else _ANY_TEXT)
    entry = f"{_text(1, MAX_KEY_LETTERS)}: ?{value}"
    return _repeated(entry, r"\{", r"\}", schema, ("minProperties", "maxProperties"))


def _repeated(
    entry: str, opening: str, closing: str, schema: Mapping[str, Any], bounds: tuple[str, str]
) -> str:
    least = int(schema.get(bounds[0], 0))
    most = max(least, int(schema.get(bounds[1], MAX_ITEMS)))
    if most == 0:
        return opening + closing
    entries = f"{entry}(?:, ?{entry}){{{max(least, 1) - 1},{most - 1}}}"
    return f"{opening}{entries if least else f'(?:{entries})?'}{closing}"


def _text(least: int, most: int) -> str:
    if most == 0:
        return '""'
    letters = f"{_FIRST_LETTER}{_LETTER}{{{max(least, 1) - 1},{most - 1}}}"
    return f'"{letters if least else f"(?:{letters})?"}"'


def _literal(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isalnum() else f"\\{letter}" for letter in written)


LANGUAGE_MODEL = "AutoModelForCausalLM"
FEW_TOKENS = 16
TRIED_FIRST = 64
SHARES_BEFORE_HURRY = (0.6, 0.8)


@dataclass(kw_only=True, eq=False)
class TransformersTextGenerator(SpeakingModel):
    """Answers of a causal language model; with a schema the model can only write JSON that fits it.

    Args:
        temperature: 0 for the likeliest words, whatever the seed; larger: drawn by seed. JSON is never drawn.
    """

    max_new_tokens: Count = 512
    temperature: Annotated[float, Bounds(ge=0, le=10)] = 0.0

    @LoadedOnce
    def generator_id(self) -> str:
        return self.identity("transformers-text", float(self.temperature))

    def generate(
        self, prompt: str, *, schema: Mapping[str, JsonValue] | None = None, seed: int = 0
    ) -> str:
        """Return the answer; JSON that fits the schema when one is given."""
        asked = prompt if schema is None else json_instruction(prompt, schema)
        model, tokens = self._model, self._tokens(asked)
        room = self._room(tokens.shape[1])
        guide = (
            None
            if schema is None
            else _JsonGuide(self._tokenizer, schema, n_given=tokens.shape[1], n_most=room)
        )
        with self.running(child_seed(seed, "text", prompt)):
            found = model.generate(
                input_ids=tokens,
                attention_mask=self.torch.ones_like(tokens),
                max_new_tokens=room,
                pad_token_id=self._padding,
                **self._choosing(guide),
            )
        return guide.written() if guide is not None else self._words(found[0, tokens.shape[1] :])

    def _choosing(self, guide: "_JsonGuide | None") -> dict[str, Any]:
        if guide is not None:
            end = self._tokenizer.eos_token_id
            return {
                "do_sample": False,
                "num_beams": 1,
                "logits_processor": [guide],
                **({} if end is None else {"eos_token_id": end}),
            }
        if self.temperature > 0.0:
            return {
                "do_sample": True,
                "num_beams": 1,
                "temperature": float(self.temperature),
                "top_k": 0,
                "top_p": 1.0,
            }
        return {"do_sample": False, "num_beams": 1}

    def _words(self, tokens: Any) -> str:
        text = str(self._tokenizer.decode(tokens, skip_special_tokens=True)).strip()
        return spoken_answer(text, where=self.model)

    def _tokens(self, prompt: str) -> Any:
        """Return the prompt as a chat message where the model has a form for it, otherwise as it is."""
        tokenizer = self._tokenizer
        is_chat = getattr(tokenizer, "chat_template", None) is not None
        if is_chat:
            message = [{"role": "user", "content": prompt}]
            prompt = tokenizer.apply_chat_template(
                message, add_generation_prompt=True, tokenize=False, enable_thinking=False
            )
        found = tokenizer(
            [prompt if is_chat else f"{prompt}\n"],
            add_special_tokens=not is_chat,
            return_tensors="pt",
        )
        return found["input_ids"].to(self._model.device)

    def _room(self, n_given: int) -> int:
        longest = getattr(self.config, "max_position_embeddings", None)
        most = self.max_new_tokens
        room = most if longest is None else min(most, longest - n_given)
        if room < min(FEW_TOKENS, most):
            raise ModelError(
                f"The prompt has {n_given} tokens and leaves no room for an answer: the model reads {longest}.",
                where=self.model,
                fix="Choose a model that reads more.",
            )
        return int(room)

    @property
    def _padding(self) -> int | None:
        tokenizer = self._tokenizer
        found = (
            tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        )
        return None if found is None else int(found)

    @LoadedOnce
    def _model(self) -> Any:
        return self.network(LANGUAGE_MODEL)

    @LoadedOnce
    def _tokenizer(self) -> Any:
        return self.load("AutoTokenizer")


class _JsonGuide:
    """Leaves the model only the likeliest token with which its text can still become JSON that fits a schema.

    Args:
        tokenizer: of the model.
        schema: what the JSON must fit.
        n_given: tokens of the prompt.
        n_most: tokens that may be written; when they run short, nothing is begun that can be left out.
    """

    def __init__(
        self, tokenizer: Any, schema: Mapping[str, JsonValue], *, n_given: int, n_most: int
    ) -> None:
        self._tokenizer = tokenizer
        self._pattern = pattern_of(schema)
        self._n_given = n_given
        self._n_most = n_most
        self._pieces: dict[int, str] = {}
        self._text = ""
        # Some tokenizers drop the space before the first word of a text: a token is read behind another one.
        self._before = tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
        self._before_text = self._decode(self._before)

    def __call__(self, tokens: Any, scores: Any) -> Any:
        share_written = (tokens.shape[1] - self._n_given) / self._n_most
        chosen = self._choose(
            scores[0], hurry=sum(share_written > share for share in SHARES_BEFORE_HURRY)
        )
        allowed = scores.new_full(scores.shape, float("-inf"))
        allowed[:, chosen] = 0.0
        return allowed

    def written(self) -> str:
        """Return the text.

        Raises:
            ModelError: if the model could not finish it.
        """
        if not is_whole(self._pattern, self._text):
            raise ModelError(
                "The model's answer was cut off.",
                given=self._text[-80:],
                fix="Raise max_new_tokens.",
            )
        return self._text

    def _choose(self, scores: Any, *, hurry: int) -> int:
        if is_whole(self._pattern, self._text):
            return int(self._tokenizer.eos_token_id or 0)
        tried = 0
        for n_tried in (TRIED_FIRST, len(scores)):
            best = scores.topk(min(n_tried, len(scores))).indices.tolist()
            for token in best[tried:]:
                piece = self._piece(token)
                if piece and may_follow(self._pattern, self._text, piece, hurry=hurry):
                    self._text += piece
                    return int(token)
            tried = len(best)
        raise ModelError(
            "The model has no token with which its answer could become JSON.",
            given=self._text[-80:],
        )

    def _piece(self, token: int) -> str:
        if token not in self._pieces:
            is_special = token in self._tokenizer.all_special_ids
            text = "" if is_special else self._decode([*self._before, token])
            self._pieces[token] = (
                text[len(self._before_text) :] if text.startswith(self._before_text) else ""
            )
        return self._pieces[token]

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))
