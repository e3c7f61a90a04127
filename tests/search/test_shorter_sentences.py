"""Shorter wordings."""

import pytest

from weakspot.search.shorter_sentences import n_content_words, said_words, without_adjectives


@pytest.mark.parametrize(
    ("sentence", "shorter"),
    [
        ("it is on a yellow flower", ("it is on a flower",)),
        ("it is an orange square", ("it is a square",)),
        (
            "there is a dark grassy background",
            ("there is a background", "there is a dark background", "there is a grassy background"),
        ),
        ("the background is green", ()),
        ("it is dark", ()),
        ("there is one on the left", ()),
        ("it is in a net", ()),
    ],
)
def test_without_adjectives__leaves_out_what_stands_before_something(sentence: str, shorter: tuple[str, ...]) -> None:
    assert without_adjectives(sentence) == shorter


def test_n_content_words__counts_what_is_said() -> None:
    assert n_content_words(["it is on a yellow flower", "it is dark"]) == 3
    assert said_words("there is a grassy background") == ("grassy", "background")
