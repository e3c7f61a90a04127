import json

import pytest
import torch

from weakspot.core.errors import ConfigError, ModelError
from weakspot.models.transformers.text import TransformersTextGenerator

NESTED = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["red", "green"]},
        "n_items": {"type": "integer"},
        "is_dark": {"type": "boolean"},
        "values": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {"type": "string", "maxLength": 5},
                "minItems": 2,
                "maxItems": 3,
            },
            "minProperties": 1,
            "maxProperties": 2,
        },
    },
    "required": ["kind"],
}


def _generator(folder, **options):
    return TransformersTextGenerator(
        model=folder, device="cpu", **{"max_new_tokens": 64, **options}
    )


def test_generate__random_weights_can_only_write_what_fits(saved):
    found = json.loads(
        _generator(saved("llama"), max_new_tokens=300).generate("Name things.", schema=NESTED)
    )
    assert list(found) == ["kind", "n_items", "is_dark", "values"]
    assert found["kind"] in ("red", "green")
    assert type(found["n_items"]) is int
    assert type(found["is_dark"]) is bool
    assert 1 <= len(found["values"]) <= 2
    assert all(
        2 <= len(items) <= 3 and all(0 < len(item) <= 5 for item in items)
        for items in found["values"].values()
    )


def test_generate__whatever_is_written_ends_in_time(saved):
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    for n_most in (40, 60, 90):
        found = json.loads(
            _generator(saved("llama"), max_new_tokens=n_most).generate(
                "Name things.", schema=schema
            )
        )
        assert found
        assert all(found)


def test_generate__too_short_for_json_says_so(saved):
    with pytest.raises(ModelError, match=r"cut off.*max_new_tokens"):
        _generator(saved("llama"), max_new_tokens=16).generate("Name things.", schema=NESTED)


def test_generate__same_prompt_same_text_without_drawing(saved):
    generator = _generator(saved("llama"))
    assert generator.generate("Name things.", seed=1) == generator.generate("Name things.", seed=2)
    assert generator.generate("Name things.") != generator.generate("Name other things.")


def test_generate__drawn_by_seed(saved):
    generator = _generator(saved("llama"), temperature=1.0)
    before = torch.random.get_rng_state()
    first, again, other = (generator.generate("Name things.", seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert torch.equal(before, torch.random.get_rng_state())


def test_generate__model_without_a_chat_form(saved):
    plain = _generator(saved("llama", is_chat=False))
    assert plain.generate("Name things.")
    assert plain.generate("Name things.") != _generator(saved("llama")).generate("Name things.")
    assert json.loads(
        plain.generate(
            "Name things.", schema={"type": "array", "items": {"type": "integer"}, "minItems": 1}
        )
    )


def test_generate__prompt_longer_than_the_model_reads(saved):
    generator = _generator(saved("llama", n_positions=64))
    with pytest.raises(ModelError, match=r"leaves no room for an answer: the model reads 64"):
        generator.generate("long " * 30)


def test_generate__model_that_writes_no_text(saved):
    with pytest.raises(ModelError, match="cannot load the model"):
        _generator(saved("vilt")).generate("Name things.")


def test_generator_id__temperature_decides_too(saved):
    assert (
        _generator(saved("llama")).generator_id
        != _generator(saved("llama"), temperature=0.5).generator_id
    )
    assert _generator(saved("llama")).generator_id == _generator(saved("llama")).generator_id


@pytest.mark.parametrize("temperature", [-1, "hot", True])
def test_generator__refuses_a_temperature(temperature):
    with pytest.raises(ConfigError, match="temperature"):
        TransformersTextGenerator(model="some/model", temperature=temperature)


def test_generate__thoughts_are_left_out(saved):
    generator = _generator(saved("llama"))
    read = generator._tokenizer
    tokens = read("<think>red?</think> green", return_tensors="pt")["input_ids"][0]
    assert generator._words(tokens) == "green"
    with pytest.raises(ModelError, match="still thinking.*max_new_tokens"):
        generator._words(read("<think>red", return_tensors="pt")["input_ids"][0])
