"""What people ask to be done with slices, and the names and rules that follow from it; texts are one line, numbers are bounded."""

from itertools import product
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from weakspot.core.errors import DataError, ModelError
from weakspot.core.failures import Side
from weakspot.core.rules import AllOfRule, AnyOfRule, Rule
from weakspot.core.slices import SliceName
from weakspot.describe.caption_grammar.class_view import ClassView
from weakspot.lexicon.titles import title_of_words
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

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
    values: list[Annotated[str, Field(max_length=LONGEST_VALUE)]] = Field(
        min_length=1, max_length=MOST_VALUES
    )
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
    rows: list[Annotated[int, Field(ge=0, le=LARGEST_ROW)]] = Field(
        min_length=1, max_length=MOST_ROWS
    )
    words: Words
    tables: Annotated[str, Field(max_length=200)] = ""


PERSON = "person"
N_NEAREST = 50


def spoken_name(workspace: Workspace, class_name: str, side: Side | None, words: str) -> SliceName:
    """Return a person's words as a name; with a text side, also how accurate the classifier is on the samples nearest to them."""
    title = title_of_words(words, class_name) if side is not Side.ABSENT else ""
    phrase = f"an image of {words}"
    name = SliceName(phrase=phrase, contrast=words, title=title, score=0.0, describer=PERSON)
    problem = next(
        (
            one
            for one in workspace.problems.values()
            if (one.class_name, one.side) == (class_name, side)
        ),
        None,
    )
    if problem is None:
        return name
    try:
        text = workspace.embed_texts([name.phrase])[0]
        known, embeddings = workspace.class_embeddings(problem.title)
    except ModelError:
        return name
    if not len(embeddings):
        return name
    view = ClassView(
        rows=known.rows,
        embeddings=embeddings,
        failed=known.failed,
        covariance=np.zeros((0, 0), dtype=np.float32),
    )
    accuracies = view.accuracies_nearest(text)
    nearest = float(accuracies[view.n_near(N_NEAREST) - 1])
    return name.model_copy(update={"accuracy_nearest": nearest, "curve": view.curve(accuracies)})


MOST_PARTS = 64


def any_of(first: Rule, second: Rule) -> Rule:
    return _either([*_choices(first), *_choices(second)])


def all_of(first: Rule, second: Rule) -> Rule:
    return _either([_both(one, other) for one, other in product(_choices(first), _choices(second))])


def _choices(rule: Rule) -> tuple[Rule, ...]:
    return rule.rules if isinstance(rule, AnyOfRule) else (rule,)


def _conditions(rule: Rule) -> tuple[Rule, ...]:
    return rule.rules if isinstance(rule, AllOfRule) else (rule,)


def _both(first: Rule, second: Rule) -> Rule:
    conditions: list[Rule] = []
    for condition in (*_conditions(first), *_conditions(second)):
        if condition not in conditions:
            conditions.append(condition)
    return conditions[0] if len(conditions) == 1 else AllOfRule(rules=tuple(conditions))


def _either(parts: list[Rule]) -> Rule:
    different: list[Rule] = []
    for part in parts:
        if part not in different:
            different.append(part)
    if len(different) > MOST_PARTS:
        raise DataError(
            "The merged rule would have too many parts.",
            given=len(different),
            fix="Merge simpler slices.",
        )
    return different[0] if len(different) == 1 else AnyOfRule(rules=tuple(different))
