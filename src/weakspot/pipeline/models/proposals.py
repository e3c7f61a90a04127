"""Answers of language models as checked JSON: parsed, compared with a schema, never executed.

The schemas of weakspot use a dozen keywords of JSON Schema, so they are checked here instead of asking everyone to install a
library for all of them. A keyword that is not known here is refused: an answer must not pass because nobody looked.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from weakspot.core.errors import ConfigError, ModelError, WeakspotError
from weakspot.core.roles import TextGenerator
from weakspot.core.seeding import child_seed
from weakspot.pipeline.models.answers import failing_as_model_error, storable
from weakspot.store.project import ProjectStore
from weakspot.store.texts import text_cache, text_keys

WHO = "language model"
LONGEST_ANSWER = 200_000
MOST_STARTS = 1000
AGAIN = "{prompt}\n\nAn earlier answer could not be used: {problem} Answer with JSON only."
_SHOWN = 160
_THOUGHT = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)
_ANY_START = re.compile(r'[\[{"]|-?\d|true|false|null')
_STARTS = {"object": re.compile(r"\{"), "array": re.compile(r"\["), "string": re.compile(r'"')}
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$schema", "$id", "$comment"}
)
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
Schema = Mapping[str, JsonValue]


def checked_json(text: str, schema: Schema) -> JsonValue:
    """Return the first JSON value in an answer that fits a schema; words and code fences around it are ignored.

    >>> checked_json('Sure! Here it is: {"colours": ["red"]}', {"type": "object", "required": ["colours"]})
    {'colours': ['red']}

    Raises:
        ModelError: with what is wrong with the answer.
        ConfigError: if the schema uses what is not known here.
    """
    problems: list[str] = []
    for value in _values(text, _STARTS.get(str(schema.get("type")), _ANY_START)):
        found = list(schema_problems(value, schema))
        if not found:
            return value
        problems.append(found[0])
    if not problems:
        what = "The language model's answer holds no JSON, or only the beginning of some."
        raise ModelError(what, given=text.strip()[:_SHOWN])
    raise ModelError(
        f"The language model's answer does not fit: {problems[0]}.", given=text.strip()[:_SHOWN]
    )


def schema_problems(value: JsonValue, schema: Schema, where: str = "the answer") -> Iterator[str]:
    """Yield everything in which a value does not fit a schema.

    Args:
        value: a parsed value.
        schema: the part of JSON Schema that weakspot uses.
        where: how the value is called in sentences.
    """
    unknown = sorted(set(schema) - _ANNOTATIONS - set(_CHECKS) - {"type"})
    if unknown:
        raise ConfigError(
            "This schema uses keywords that weakspot does not check.",
            given=unknown,
            fix=f"Use {sorted(_CHECKS)}.",
        )
    wanted = schema.get("type")
    kinds = wanted if isinstance(wanted, list) else [wanted] if wanted is not None else []
    if kinds and not any(_TYPES[str(kind)](value) for kind in kinds if str(kind) in _TYPES):
        yield f"{where} is no {' or '.join(map(str, kinds))}"
        return
    for keyword, check in _CHECKS.items():
        if keyword in schema:
            yield from check(value, schema[keyword], schema, where)


class Proposer:
    """Asks a language model for JSON; the same question gets the same answer, from the project folder if it was asked before.

    Args:
        generator: the language model.
        store: the project's data.
        seed: seed of the run.
    """

    def __init__(self, generator: TextGenerator, store: ProjectStore, *, seed: int) -> None:
        self._generator = generator
        self._store = store
        self._seed = seed
        self._failure: ModelError | None = None

    def __call__(self, prompt: str, schema: Schema) -> JsonValue:
        """Return a checked answer; one that does not fit is asked for once more, with another seed and the reason.

        A model that cannot be reached is not asked again: others that want something of it need not wait for it, too.

        Raises:
            ModelError: if the second answer does not fit either, or none comes.
        """
        try:
            return self._remembered(prompt, schema)
        except ModelError as error:
            if isinstance(error.__cause__, WeakspotError):
                self._failure = error
            raise

    def _remembered(self, prompt: str, schema: Schema) -> JsonValue:
        with failing_as_model_error(WHO):
            cache = text_cache(self._store.data, f"proposals {self._generator.generator_id}")
        key = text_keys([json.dumps(["proposal", prompt, schema, self._seed], ensure_ascii=False)])
        kept = cache.texts(key)[0]
        if kept is not None:
            return checked_json(kept, schema)
        if self._failure is not None:
            raise self._failure
        text, value = self._check(prompt, schema)
        with self._store.writing():
            cache.append(key, [text])
        return value

    def _check(self, prompt: str, schema: Schema) -> tuple[str, JsonValue]:
        try:
            first = self._said(prompt, schema, self._seed)
            return first, checked_json(first, schema)
        except ModelError as error:
            if isinstance(error.__cause__, WeakspotError):
                raise
            again = AGAIN.replace("{problem}", error.what).replace("{prompt}", prompt)
        second = self._said(again, schema, child_seed(self._seed, "proposal", "again"))
        return second, checked_json(second, schema)

    def _said(self, prompt: str, schema: Schema, seed: int) -> str:
        with failing_as_model_error(WHO):
            return storable(self._generator.generate(prompt, schema=schema, seed=seed))


def _values(text: str, starts: re.Pattern[str]) -> Iterator[JsonValue]:
    """Yield the JSON values in a text, in order, none of them inside another; what a model thought aloud is skipped.

    Args:
        text: the answer.
        starts: what such values start with.
    """
    if len(text) > LONGEST_ANSWER:
        raise ModelError(
            f"The language model's answer is longer than {LONGEST_ANSWER:,} letters.",
            given=text[:_SHOWN],
        )
    answer = _THOUGHT.sub("", text)
    decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
    place = 0
    for _ in range(MOST_STARTS):
        start = starts.search(answer, place)
        if start is None:
            return
        try:
            value, place = decoder.raw_decode(answer, start.start())
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            place = start.end()
            continue
        yield value


def _refuse(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is too large")
    return value


Check = Callable[[Any, Any, Schema, str], Iterator[str]]


def _check_enum(value: Any, allowed: Any, _schema: Schema, where: str) -> Iterator[str]:
    if not any(type(value) is type(one) and value == one for one in allowed):
        yield f"{where} is none of {json.dumps(allowed, ensure_ascii=False)[:_SHOWN]}"


def _check_required(value: Any, names: Any, _schema: Schema, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{where} lacks {name!r}" for name in names if name not in value)


def _check_properties(value: Any, properties: Any, _schema: Schema, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in properties.items():
            if name in value:
                yield from schema_problems(value[name], inner, f"{name!r} of {where}")


def _check_further(value: Any, allowed: Any, schema: Schema, where: str) -> Iterator[str]:
    declared: Any = schema.get("properties", {})
    further = [name for name in value if name not in declared] if isinstance(value, dict) else []
    for name in further:
        if allowed is False:
            yield f"{where} has {name!r}, which was not asked for"
        elif isinstance(allowed, Mapping):
            yield from schema_problems(value[name], allowed, f"{name!r} of {where}")


def _check_items(value: Any, inner: Any, _schema: Schema, where: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(value, start=1):
            yield from schema_problems(item, inner, f"item {number} of {where}")


def _check_unique(value: Any, wanted: Any, _schema: Schema, where: str) -> Iterator[str]:
    if (
        wanted
        and isinstance(value, list)
        and len({json.dumps(item, sort_keys=True) for item in value}) < len(value)
    ):
        yield f"{where} says something twice"


def _bound(
    kind: type | tuple[type, ...], measure: Callable[[Any], float], sign: int, words: str
) -> Check:
    def check(value: Any, bound: Any, _schema: Schema, where: str) -> Iterator[str]:
        if (
            isinstance(value, kind)
            and not isinstance(value, bool)
            and sign * (measure(value) - bound) < 0
        ):
            yield f"{where} has {measure(value):g} {words}, {'fewer' if sign > 0 else 'more'} than {bound}"

    return check


_CHECKS: Mapping[str, Check] = {
    "enum": _check_enum,
    "const": lambda value, wanted, schema, where: _check_enum(value, [wanted], schema, where),
    "required": _check_required,
    "properties": _check_properties,
    "additionalProperties": _check_further,
    "minProperties": _bound(dict, len, 1, "entries"),
    "maxProperties": _bound(dict, len, -1, "entries"),
    "items": _check_items,
    "minItems": _bound(list, len, 1, "items"),
    "maxItems": _bound(list, len, -1, "items"),
    "uniqueItems": _check_unique,
    "minLength": _bound(str, len, 1, "letters"),
    "maxLength": _bound(str, len, -1, "letters"),
    "minimum": _bound((int, float), float, 1, "as its value"),
    "maximum": _bound((int, float), float, -1, "as its value"),
}
