"""The values of attributes as pages show them: how many samples of each the classifier gets right and wrong, and which ones."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.attributes import AttributeSource
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import DataError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, Side
from weakspot.web.services.attributes.columns import (
    AttributeState,
    CodedAttribute,
    CodedAttributes,
    coded_attributes,
    predictions_of,
)
from weakspot.web.services.samples.facts import answers_of
from weakspot.web.services.view import SamplePage, View
from weakspot.web.services.workspace import Workspace

MOST_CHOSEN = 3
LONGEST_ID = 300

Result = Literal["right", "wrong"]


class ChosenValue(View):
    """One value of one attribute.

    Args:
        attribute: id of the attribute.
        value: id of the value.
    """

    attribute: str = Field(max_length=LONGEST_ID)
    value: str = Field(max_length=LONGEST_ID)


class AttributeSamples(SamplePage):
    """Some of the samples that have all the values, in columns.

    Args:
        rows: row numbers.
        labels: the true class of each.
        answers: what the classifier answered for each.
        is_failure: whether that was a failure.
    """

    rows: list[int]
    labels: list[str]
    answers: list[str]
    is_failure: list[bool]


def attribute_samples(
    workspace: Workspace,
    chosen: Sequence[ChosenValue],
    *,
    title: str | None = None,
    result: Result | None = None,
    offset: int = 0,
    limit: int = 100,
) -> AttributeSamples:
    """Return a page of samples.

    Args:
        workspace: the project.
        chosen: values that the samples have, one to three.
        title: a class; None for all.
        result: only right or only wrong ones.
        offset: place of the first sample wanted.
        limit: how many, at most.

    Raises:
        DataError: if there is no such class, attribute or value.
        StoreError: if an attribute is not assigned.
    """
    problem = predictions_of(workspace, title)
    inside = have_values(workspace, chosen, title)
    if result is not None:
        inside = inside & (problem.failed == (result == "wrong"))
    places = np.flatnonzero(inside)
    page = places[offset : offset + limit]
    rows, failed = problem.rows[page], problem.failed[page]
    dataset = workspace.samples.dataset
    names = dataset.class_names
    if dataset.task is Task.SINGLE_LABEL:
        labels = [names[code] for code in dataset.labels[rows]]
    else:
        labels = [
            title or ", ".join(names[code] for code in np.flatnonzero(dataset.label_matrix[row]))
            for row in rows
        ]
    return AttributeSamples(
        tables=workspace.tables_key,
        total=len(places),
        offset=offset,
        rows=rows.tolist(),
        labels=labels,
        answers=answers_of(dataset, rows, failed),
        is_failure=failed.tolist(),
    )


def have_values(
    workspace: Workspace, chosen: Sequence[ChosenValue], title: str | None
) -> BoolArray:
    if not 1 <= len(chosen) <= MOST_CHOSEN or len({one.attribute for one in chosen}) < len(chosen):
        raise DataError(
            f"Choose one value each of one to {MOST_CHOSEN} attributes.", where="values"
        )
    problem, attributes = predictions_of(workspace, title), coded_attributes(workspace)
    inside = np.ones(len(problem.rows), dtype=np.bool_)
    for one in chosen:
        attribute = attributes.attribute(one.attribute)
        inside &= attribute.known_codes()[problem.rows] == attribute.place(one.value)
    return inside


MOST_VIEWS = 200


class AttributeValueView(View):
    """One value.

    Args:
        value_id: what edits and queries use.
        title: what people call it.
        failures: how many of its samples on the discovery half fail, with interval.
        training: how many of the training samples of the class, or of all, have it; null without training samples.
        phrases: what it is assigned by.
        merged: what was merged into it.
    """

    value_id: str
    title: str
    failures: Share
    training: Share | None
    phrases: list[str]
    merged: list[str]


class AttributeView(View):
    """One attribute.

    Args:
        attribute_id: what edits and queries use.
        name: what people call it.
        source: where it is from.
        state: whether its values are assigned.
        note: why it is left out.
        is_worded: whether it is assigned by words, so that values can be added and moved, and phrases changed.
        values: in the order of their making.
        unknown: failures among the samples of which the value is not known.
        unsure_share: share of the samples with an embedding whose value is unsure.
        missing_share: share of all samples of which nothing is known.
        agreement: share of reference samples on which both halves of the wordings say the same; null where no words were used.
    """

    attribute_id: str
    name: str
    source: AttributeSource
    state: AttributeState
    note: str
    is_worded: bool
    values: list[AttributeValueView]
    unknown: Share
    unsure_share: float
    missing_share: float
    agreement: float | None


class AttributesView(View):
    """All attributes of a project on its discovery half.

    Args:
        tables: what row numbers belong to.
        title: the class that was asked for; null for all classes together.
        titles: all classes.
        is_assigned: whether attributes were assigned to all samples; if not, only the user's own columns are here.
        can_tell: whether there is a text side, so that attributes can be assigned by words.
        version: of the edits; whoever edits says which version was seen.
        failures: of the class, or of all classes together: then a sample fails that fails in any class.
        n_training: training samples of the class, or of all.
        attributes: in the order of their making.
        notes: what was left out, in sentences.
    """

    tables: str
    title: str | None
    titles: list[str]
    is_assigned: bool
    can_tell: bool
    version: int
    failures: Share
    n_training: int
    attributes: list[AttributeView]
    notes: list[str]


def attribute_histograms(workspace: Workspace, title: str | None = None) -> AttributesView:
    """Return the attributes with right and wrong samples of every value, within a class or over all.

    Raises:
        DataError: if there is no class of that title.
    """
    found = coded_attributes(workspace)
    name = f"histograms {title!r}"
    view = found.views.get(name)
    if view is None:
        if len(found.views) > MOST_VIEWS:
            found.views.clear()
        view = found.views[name] = _count(workspace, found, title)
    assert isinstance(view, AttributesView)
    return view


def _count(workspace: Workspace, found: CodedAttributes, title: str | None) -> AttributesView:
    problem = predictions_of(workspace, title)
    training = training_rows(workspace, None if title is None else problem)
    return AttributesView(
        tables=workspace.tables_key,
        title=title,
        titles=list(workspace.problems),
        is_assigned=found.is_assigned,
        can_tell=workspace.has_text_side,
        version=found.log.version,
        failures=_share(problem.n_failed, len(problem.rows), problem.worth),
        n_training=len(training),
        attributes=[_attribute(one, problem, training) for one in found.attributes],
        notes=list(found.notes),
    )


def training_rows(workspace: Workspace, problem: ClassProblem | None) -> IntArray:
    dataset = workspace.samples.dataset
    rows = dataset.rows_of(Split.TRAIN)
    if problem is None:
        return rows
    rows, code = rows[dataset.is_labelled[rows]], dataset.class_code(problem.class_name)
    if dataset.task is Task.SINGLE_LABEL:
        return np.asarray(rows[dataset.labels[rows] == code])
    has_label = dataset.label_matrix[rows, code]
    return np.asarray(rows[~has_label if problem.side is Side.ABSENT else has_label])


def _share(count: int, total: int, worth: float) -> Share:
    return Share.of(count, total, effective=worth * total)


def _attribute(found: CodedAttribute, problem: ClassProblem, training: IntArray) -> AttributeView:
    edited, record, is_known = found.edited, found.record, found.codes is not None
    n_values = len(edited.values) + 1
    counts = np.zeros((n_values, 2), dtype=np.int64)
    in_training = np.zeros(n_values, dtype=np.int64)
    if found.codes is not None:
        places = 2 * found.codes[problem.rows].astype(np.int64) + problem.failed
        counts = np.bincount(places, minlength=2 * n_values).reshape(n_values, 2)
        in_training = np.bincount(found.codes[training], minlength=n_values)
    worth = problem.worth
    shares = [_share(int(wrong), int(right + wrong), worth) for right, wrong in counts]
    values = [
        AttributeValueView(
            value_id=value.value_id,
            title=value.title,
            failures=shares[place],
            training=Share.of(int(in_training[place]), len(training)) if len(training) else None,
            phrases=list(written.phrases),
            merged=list(written.merged),
        )
        for place, (value, written) in enumerate(
            zip(edited.values, record.values, strict=True), start=1
        )
    ]
    return AttributeView(
        attribute_id=found.attribute_id,
        name=edited.name,
        source=edited.source,
        state=found.state,
        note=found.note,
        is_worded=edited.is_worded,
        values=values,
        unknown=shares[0],
        unsure_share=record.unsure_share if is_known else 0.0,
        missing_share=record.missing_share if is_known else 0.0,
        agreement=record.agreement if is_known else None,
    )
