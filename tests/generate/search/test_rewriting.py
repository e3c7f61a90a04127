import json

import pytest

from weakspot.core.errors import ModelError
from weakspot.generate.search.finding import shorter_wordings


class Says:
    """Answers with what it is told to."""

    generator_id = "says"

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def generate(self, prompt, *, schema=None, seed=0):
        self.asked.append((prompt, schema["required"], seed))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_rewriter__asks_for_fewer_words():
    language = Says(json.dumps({"captions": ["it is on a flower.", " ", 3, "it is outside."]}))
    wordings = shorter_wordings(
        "it is on a small flower.", language=language, class_name="house_fly", seed=7
    )
    assert wordings == ("it is on a flower.", "it is outside.")
    ((prompt, required, seed),) = language.asked
    assert '"it is on a small flower."' in prompt
    assert "do not name house fly" in prompt
    assert (required, seed) == (["captions"], 7)


@pytest.mark.parametrize(
    "answer", ["no JSON", "[]", "{}", '{"captions": "it is red"}', ModelError("It is gone.")]
)
def test_rewriter__an_answer_of_no_use_gives_nothing(answer):
    assert shorter_wordings("it is red.", language=Says(answer), class_name="fly") == ()
