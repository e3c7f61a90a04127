import pytest

from weakspot.backends.thinking import without_thinking


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
