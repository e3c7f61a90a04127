"""The samples that have given attribute values, right or wrong, a page at a time; from the discovery half only."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from weakspot.app.browsing.attribute_columns import coded_attributes, outcomes_of
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.core.arrays import BoolArray
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.failures import predicted_classes

MOST_CHOSEN = 3
LONGEST_ID = 300

Outcome = Literal["right", "wrong"]


class ChosenValue(View):
    """One value of one attribute.

    Args:
        attribute: id of the attribute.
        value: id of the value.
    """

    attribute: str = Field(max_length=LONGEST_ID)
    value: str = Field(max_length=LONGEST_ID)


class AttributeSamples(View):
    """Some of the samples that have all the values, in columns.

    Args:
        tables: what row numbers belong to.
        total: how many there are in all.
        offset: place of the first one here.
        rows: row numbers.
        labels: the true class of each.
        answers: what the classifier said of each.
        is_failure: whether that was a failure.
    """

    tables: str
    total: int
    offset: int
    rows: list[int]
    labels: list[str]
    answers: list[str]
    is_failure: list[bool]


def attribute_samples(
    workspace: Workspace,
    chosen: Sequence[ChosenValue],
    *,
    title: str | None = None,
    outcome: Outcome | None = None,
    offset: int = 0,
    limit: int = 100,
) -> AttributeSamples:
    """Return a page of samples.

    Args:
        workspace: the project.
        chosen: values that the samples have, one to three.
        title: a class; None for all.
        outcome: only right or only wrong ones.
        offset: place of the first sample wanted.
        limit: how many, at most.

    Raises:
        DataError: if there is no such class, attribute or value.
        StoreError: if an attribute is not assigned.
    """
    problem = outcomes_of(workspace, title)
    inside = have_values(workspace, chosen, title)
    if outcome is not None:
        inside = inside & (problem.failed == (outcome == "wrong"))
    places = np.flatnonzero(inside)
    page = places[offset : offset + limit]
    rows, failed = problem.rows[page], problem.failed[page]
    dataset = workspace.samples.dataset
    names = dataset.class_names
    if dataset.task is Task.SINGLE_LABEL:
        labels = [names[code] for code in dataset.labels[rows]]
        said = [names[code] for code in predicted_classes(dataset, rows)]
    else:
        labels = [title or ", ".join(names[code] for code in np.flatnonzero(dataset.label_matrix[row])) for row in rows]
        said = ["wrong" if one else "right" for one in failed]
    return AttributeSamples(
        tables=workspace.tables_key,
        total=len(places),
        offset=offset,
        rows=rows.tolist(),
        labels=labels,
        answers=said,
        is_failure=failed.tolist(),
    )


def have_values(workspace: Workspace, chosen: Sequence[ChosenValue], title: str | None) -> BoolArray:
    """Return which samples of a class on the discovery half have all the values."""
    if not 1 <= len(chosen) <= MOST_CHOSEN or len({one.attribute for one in chosen}) < len(chosen):
        raise DataError(f"Choose one value each of one to {MOST_CHOSEN} attributes.", where="values")
    problem, attributes = outcomes_of(workspace, title), coded_attributes(workspace)
    inside = np.ones(len(problem.rows), dtype=np.bool_)
    for one in chosen:
        attribute = attributes.attribute(one.attribute)
        inside &= attribute.known_codes()[problem.rows] == attribute.place(one.value)
    return inside
