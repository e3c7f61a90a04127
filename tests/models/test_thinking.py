import pytest

from weakspot.core.errors import ModelError
from weakspot.models.prompts import spoken_answer, without_thinking


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("green", "green"),
        ("  a dog\n", "  a dog\n"),
        ("<think>red?\nno</think>\n green", "green"),
        ("<THINKING>x</THINKING>green", "green"),
        ("<reasoning>x</reasoning> <think>y</think> green", "green"),
        ("[THINK]x[/THINK]green", "green"),
        ("◁think▷x◁/think▷green", "green"),
        ("opened by the prompt</think>green", "green"),
        ("<think>cut off", ""),
        ("</think>", ""),
        ("I think <b>so</b>", "I think <b>so</b>"),
    ],
)
def test_without_thinking(said, answer):
    assert without_thinking(said) == answer


def test_spoken_answer__only_thoughts_are_an_error():
    assert spoken_answer("<think>a disc?</think> a disc", where="tiny") == "a disc"
    assert spoken_answer("", where="tiny") == ""
    with pytest.raises(ModelError, match=r"still thinking.*tiny.*max_new_tokens"):
        spoken_answer("<think>a disc, or", where="tiny")
