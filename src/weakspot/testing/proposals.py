"""JSON proposals from the vocabulary of the planted world, fitted to a JSON schema."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from pydantic import JsonValue

from weakspot.core.seeding import generator
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS, factors_of, scene_from_phrase, words_of

Schema = Mapping[str, JsonValue]


def propose(prompt: str, *, schema: Schema | None, seed: int) -> str:
    random = generator(seed, "planted text", prompt)
    if schema is None:
        return json.dumps(
            {"attributes": {name: list(FACTORS[name]) for name in _factors_asked(prompt)}}
        )
    return json.dumps(_fill(schema, "", prompt, random))


def _factors_asked(prompt: str) -> tuple[str, ...]:
    asked = set(words_of(prompt))
    named = tuple(name for name in FACTOR_NAMES if name in asked)
    return named or FACTOR_NAMES


def _fill(schema: Schema, key: str, prompt: str, random: np.random.Generator) -> JsonValue:
    if isinstance(choices := schema.get("enum"), list):
        return choices[int(random.integers(len(choices)))]
    kind = schema.get("type", "string")
    if kind == "object":
        properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
        return {name: _fill(inner, name, prompt, random) for name, inner in properties.items()}
    if kind == "array":
        return _items(schema, key, prompt, random)
    plain: dict[str, JsonValue] = {"integer": 1, "number": 0.5, "boolean": True, "null": None}
    if isinstance(kind, str) and kind in plain:
        return plain[kind]
    return _words(key, prompt, 1, random)[0]


def _items(schema: Schema, key: str, prompt: str, random: np.random.Generator) -> list[JsonValue]:
    inner = schema.get("items", {})
    least, most = _number(schema.get("minItems"), 1), _number(schema.get("maxItems"), 8)
    if isinstance(inner, dict) and (inner.get("type", "string") != "string" or "enum" in inner):
        return [_fill(inner, key, prompt, random) for _ in range(max(least, min(most, 3)))]
    words = _words(key, prompt, max(least, most), random)
    return [words[place % len(words)] for place in range(max(least, min(most, len(words))))]


def _number(value: JsonValue, otherwise: int) -> int:
    return int(value) if isinstance(value, int | float) else otherwise


def _words(key: str, prompt: str, n_most: int, random: np.random.Generator) -> Sequence[str]:
    """Return at most n words that suit a key: values of a factor, names of factors, or whole phrases."""
    stem = key.lower().removesuffix("s")
    if stem in FACTORS:
        values: Sequence[str] = FACTORS[stem]
    elif stem in ("attribute", "factor", "name"):
        values = _factors_asked(prompt)
    elif stem in ("value", "word"):
        values = [
            value for name in _factors_asked(prompt) if name != "kind" for value in FACTORS[name]
        ]
    else:
        kinds = " and ".join(factors_of(prompt).get("kind", ()))
        values = [scene_from_phrase(kinds, generator=random).caption for _ in range(n_most)]
    order = random.permutation(len(values))[:n_most]
    return [values[place] for place in order]
