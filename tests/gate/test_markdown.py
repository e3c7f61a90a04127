import re

import pytest

from weakspot.gate.formats import MARK, MAX_CHARACTERS, markdown_comment


def test_markdown_comment__says_the_verdict_first(result):
    lines = markdown_comment(result()).splitlines()
    assert lines[0] == MARK
    assert lines[1] == "## ❌ weakspot: The policy is violated: 1 of 4 checks."


def test_markdown_comment__shows_what_was_before_and_what_is_now(result):
    assert "| disc | 100 | 90 % | 89 % | -1 % (-5 % to 3 %) | ✅ kept |" in markdown_comment(
        result()
    )


def test_markdown_comment__titles_are_text_and_nothing_else(result):
    comment = markdown_comment(result())
    row = next(line for line in comment.splitlines() if line.startswith("| slice\\_accuracy"))
    cells = re.split(r"(?<!\\)\|", row)
    assert len(cells) == 7
    assert "<b>" not in comment
    assert "@all" not in comment
    assert "https://" not in comment
    assert "&lt;b\\>" in row


def test_markdown_comment__all_checks_are_in_a_part_that_is_closed_at_first(result):
    comment = markdown_comment(result())
    assert comment.count("<details>") == comment.count("</details>") == 1
    assert "<summary>All 4 checks</summary>" in comment
    assert "⚪ not judged **slice\\_gap**: “small” has 3 samples." in comment


@pytest.mark.parametrize("n_more", [0, 100, 2000])
def test_markdown_comment__is_never_too_long_and_always_whole(result, n_more):
    comment = markdown_comment(result(n_more=n_more))
    assert len(comment) <= MAX_CHARACTERS
    assert comment.count("<details>") == comment.count("</details>") == 1
    assert "run-1" in comment
    assert ("more." in comment) == (n_more > 0 and len(comment) > MAX_CHARACTERS // 2)
