"""Answers as a table and in one sentence."""

from collections.abc import Sequence

from names.judging import Answer


def table_of(answers: Sequence[Answer]) -> str:
    """Return a Markdown table, one row a slice."""
    lines = ["| slice | needs | verdict | title | nearest words |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.key} | {one.kind_of_word} | {one.verdict} | {one.title} | {'; '.join(one.words[:4])} |"
        for one in answers
    ]
    return "\n".join(lines)


def summary_of(answers: Sequence[Answer]) -> str:
    """Return how many are right, wrong and silent.

    >>> right = Answer(key="a", kind_of_word="colour", verdict="right")
    >>> summary_of([right, Answer(key="b", kind_of_word="kind", verdict="unsure (right)")])
    '2 slices: 1 right (50 %), 0 wrong (0 %), 1 unsure, 0 no word, 0 not found; nearest word right for 2.'
    """
    total = max(1, len(answers))
    right = sum(one.verdict == "right" for one in answers)
    wrong = sum(one.verdict == "wrong" for one in answers)
    counts = {
        verdict: sum(one.verdict.startswith(verdict) for one in answers)
        for verdict in ("unsure", "no word", "not found")
    }
    others = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return (
        f"{len(answers)} slices: {right} right ({100 * right / total:.0f} %), {wrong} wrong ({100 * wrong / total:.0f} %), {others}; "
        f"nearest word right for {sum(one.is_first_right for one in answers)}."
    )
