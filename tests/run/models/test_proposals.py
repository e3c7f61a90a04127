import json
from dataclasses import dataclass, field

import pytest

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.run.assistants import MAX_ANSWER_LENGTH, Proposer, checked_json, schema_problems
from weakspot.store.project import ProjectStore

SCHEMA = {
    "type": "object",
    "properties": {
        "attributes": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3}
    },
    "required": ["attributes"],
    "additionalProperties": False,
}
GOOD = '{"attributes": ["colour", "size"]}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure! [1] Here are 2 of {{them}}:\n{GOOD}\nAnything else? {{}}",
        f'<think>maybe {{"attributes": ["no"]}}</think>{GOOD}',
        f'{{"attributes": []}} or rather {GOOD}',
        f"[{GOOD}]",
    ],
)
def test_checked_json__finds_the_first_value_that_fits(text):
    assert checked_json(text, SCHEMA) == {"attributes": ["colour", "size"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no JSON"),
        ("I cannot do that.", "holds no JSON"),
        ('{"attributes": ["colour", "si', "only the beginning"),
        ("{'attributes': ['colour']}", "holds no JSON"),
        ('__import__("os").system("true")', "holds no JSON"),
        ('{"attributes": ["a"], "x": NaN}', "holds no JSON"),
        ('{"attributes": ["\\ud800"]}', "holds no JSON"),
        ("{" * 50_000, "holds no JSON"),
        ('{"attributes":' * 10_000, "holds no JSON"),
        ("[]", "holds no JSON"),
        ("{}", "the answer lacks 'attributes'"),
        ('{"attributes": "colour"}', "'attributes' of the answer is no array"),
        ('{"attributes": [1]}', "item 1 of 'attributes' of the answer is no string"),
        ('{"attributes": []}', "has 0 items, fewer than 1"),
        ('{"attributes": ["a", "b", "c", "d"]}', "has 4 items, more than 3"),
        ('{"attributes": ["a"], "more": 1}', "has 'more', which was not asked for"),
        (" " * (MAX_ANSWER_LENGTH + 1), "longer than"),
    ],
)
def test_checked_json__says_what_is_wrong(text, said):
    with pytest.raises(ModelError, match=said):
        checked_json(text, SCHEMA)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("red", {"enum": ["red", "green"]}),
        ("x", {"const": "x"}),
        (3, {"type": "integer", "minimum": 3, "maximum": 3}),
        (2.5, {"type": "number"}),
        (True, {"type": "boolean"}),
        (None, {"type": ["string", "null"]}),
        (
            {"a": ["x"]},
            {
                "type": "object",
                "additionalProperties": {"type": "array"},
                "minProperties": 1,
                "maxProperties": 1,
            },
        ),
        (["a", "b"], {"type": "array", "uniqueItems": True}),
        ("abc", {"type": "string", "minLength": 3, "maxLength": 3, "description": "three letters"}),
        ({"x": 1}, {}),
    ],
)
def test_schema_problems__none_where_it_fits(value, schema):
    assert list(schema_problems(value, schema)) == []


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        ("blue", {"enum": ["red"]}, 'the answer is none of ["red"]'),
        (True, {"enum": [1]}, "the answer is none of [1]"),
        (True, {"type": "integer"}, "the answer is no integer"),
        (2.5, {"type": "integer"}, "the answer is no integer"),
        (1, {"type": ["string", "null"]}, "the answer is no string or null"),
        (2, {"minimum": 3}, "the answer has 2 as its value, fewer than 3"),
        ({"a": 1}, {"additionalProperties": {"type": "string"}}, "'a' of the answer is no string"),
        (["a", "a"], {"uniqueItems": True}, "the answer says something twice"),
        ("abcd", {"maxLength": 3}, "the answer has 4 letters, more than 3"),
    ],
)
def test_schema_problems__one_sentence_each(value, schema, problem):
    assert list(schema_problems(value, schema)) == [problem]


def test_schema_problems__keyword_that_is_not_checked_is_refused():
    with pytest.raises(ConfigError, match=r"does not check.*anyOf"):
        list(schema_problems({}, {"anyOf": []}))


@dataclass
class Talker:
    answers: list
    generator_id: str = "talker@1"
    asked: list = field(default_factory=list)

    def generate(self, prompt, *, schema=None, seed=0):
        self.asked.append((prompt, seed))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def store(tmp_path):
    return ProjectStore.create(tmp_path)


def test_proposer__asks_once_and_remembers(store):
    talker = Talker([GOOD])
    propose = Proposer(talker, store, seed=3)
    assert (
        propose("Name attributes.", SCHEMA)
        == propose("Name attributes.", SCHEMA)
        == json.loads(GOOD)
    )
    assert talker.asked == [("Name attributes.", 3)]
    silent = Talker([])
    assert Proposer(silent, ProjectStore.open(store.root), seed=3)(
        "Name attributes.", SCHEMA
    ) == json.loads(GOOD)
    assert silent.asked == []


def test_proposer__another_question_schema_seed_or_model_is_asked_anew(store):
    talker = Talker([GOOD] * 5)
    Proposer(talker, store, seed=0)("a", SCHEMA)
    Proposer(talker, store, seed=0)("b", SCHEMA)
    Proposer(talker, store, seed=1)("a", SCHEMA)
    Proposer(talker, store, seed=0)("a", {"type": "object"})
    Proposer(Talker(talker.answers, generator_id="talker@2", asked=talker.asked), store, seed=0)(
        "a", SCHEMA
    )
    assert len(talker.asked) == 5


def test_proposer__second_chance_with_another_seed_and_the_reason(store):
    talker = Talker(["Sure!", GOOD])
    assert Proposer(talker, store, seed=0)("Name attributes.", SCHEMA) == json.loads(GOOD)
    (_, first_seed), (again, second_seed) = talker.asked
    assert again.startswith("Name attributes.\n")
    assert "holds no JSON" in again
    assert first_seed != second_seed
    assert Proposer(Talker([]), store, seed=0)("Name attributes.", SCHEMA) == json.loads(GOOD)


def test_proposer__two_useless_answers_are_an_error_and_nothing_is_kept(store):
    with pytest.raises(ModelError, match="lacks 'attributes'"):
        Proposer(Talker(["Sure!", "{}"]), store, seed=0)("a", SCHEMA)
    assert Proposer(Talker([GOOD]), store, seed=0)("a", SCHEMA) == json.loads(GOOD)


@pytest.mark.parametrize(
    "failure", [UnavailableError("It is down."), ModelError("Cut off."), TimeoutError("slow"), None]
)
def test_proposer__whatever_goes_wrong_is_a_model_error(store, failure):
    with pytest.raises(ModelError):
        Proposer(Talker([failure, failure]), store, seed=0)("a", SCHEMA)


def test_proposer__second_chance_after_a_useless_answer_not_after_an_endpoint_that_is_down(store):
    assert Proposer(Talker([ModelError("Cut off."), GOOD]), store, seed=0)(
        "a", SCHEMA
    ) == json.loads(GOOD)
    with pytest.raises(ModelError, match="It is down"):
        Proposer(Talker([UnavailableError("It is down."), GOOD]), store, seed=0)("b", SCHEMA)


def test_proposer__endpoint_that_is_down_is_asked_once(store):
    talker = Talker([GOOD, UnavailableError("It is down."), GOOD])
    propose = Proposer(talker, store, seed=0)
    propose("a", SCHEMA)
    for prompt in ("b", "b", "c"):
        with pytest.raises(ModelError, match="It is down"):
            propose(prompt, SCHEMA)
    assert len(talker.asked) == 2
    assert propose("a", SCHEMA) == json.loads(GOOD)
