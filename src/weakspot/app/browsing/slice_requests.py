"""What people ask to be done with slices; texts are one line, numbers are bounded."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from weakspot.app.browsing.view import View

LONGEST_WORDS, LONGEST_REASON, LONGEST_VALUE = 200, 500, 1000
MOST_ROWS = 20_000
MOST_VALUES = 200
LARGEST_ROW = 2**40
LARGEST_SCORE = 1e9


def _one_line(text: str) -> str:
    """Return a text without blanks around it; refuse what cannot be read in a line."""
    stripped = text.strip()
    if not stripped:
        raise ValueError("Say something.")
    if not stripped.isprintable():
        raise ValueError("Only words, in one line.")
    return stripped


Words = Annotated[str, Field(min_length=1, max_length=LONGEST_WORDS), AfterValidator(_one_line)]
Reason = Annotated[str, Field(min_length=1, max_length=LONGEST_REASON), AfterValidator(_one_line)]
SliceId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]


class Renaming(View):
    """New words for a slice."""

    words: Words


class Dismissal(View):
    """Why a slice is set aside."""

    reason: Reason


class NewThreshold(View):
    """Where membership begins, in the measure of the rule."""

    threshold: float = Field(ge=-LARGEST_SCORE, le=LARGEST_SCORE, allow_inf_nan=False)


class Narrowing(View):
    """Keep only members with some values of a column, or all but those.

    Args:
        column: its name.
        values: what it holds.
        is_kept: whether these values stay, or go.
    """

    column: Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]
    values: list[Annotated[str, Field(max_length=LONGEST_VALUE)]] = Field(min_length=1, max_length=MOST_VALUES)
    is_kept: bool


class Merging(View):
    """Two slices to be made one.

    Args:
        first: one of them.
        second: the other.
        how: `either` for the members of either, `both` for the members of both.
        words: what the new one is called.
    """

    first: SliceId
    second: SliceId
    how: Literal["either", "both"]
    words: Words


class PickedRows(View):
    """Samples that a person picked out.

    Args:
        title: their class.
        rows: row numbers; those of other classes, or of samples that are not to be looked at, are left out.
        words: what they have in common.
        tables: what the row numbers refer to; empty if that is not known.
    """

    title: Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]
    rows: list[Annotated[int, Field(ge=0, le=LARGEST_ROW)]] = Field(min_length=1, max_length=MOST_ROWS)
    words: Words
    tables: Annotated[str, Field(max_length=200)] = ""
