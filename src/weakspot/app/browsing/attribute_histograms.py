"""Attributes as pages show them: how many samples of every value the classifier gets right and wrong."""

import numpy as np

from weakspot.app.browsing.attribute_columns import AttributeState, CodedAttribute, CodedAttributes, coded_attributes, outcomes_of
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.core.arrays import IntArray
from weakspot.core.attributes import AttributeSource
from weakspot.core.dataset import Split, Task
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, Side

MOST_VIEWS = 200


class AttributeValueView(View):
    """One value.

    Args:
        value_id: what edits and queries use.
        title: what people call it.
        failures: how many of its samples on the discovery half fail, with interval.
        training: how many of the training samples of the class, or of all, have it; null without training samples.
        phrases: what it is told by.
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
        is_worded: whether it is told by words, so that values can be added and moved, and phrases changed.
        values: in the order of their making.
        unknown: failures among the samples of which the value is not known.
        unsure_share: share of the samples with a vector whose value could not be told.
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
        can_tell: whether there is a text side, so that attributes can be told by words.
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
        view = found.views[name] = _counted(workspace, found, title)
    assert isinstance(view, AttributesView)
    return view


def _counted(workspace: Workspace, found: CodedAttributes, title: str | None) -> AttributesView:
    problem = outcomes_of(workspace, title)
    training = training_rows(workspace, None if title is None else problem)
    return AttributesView(
        tables=workspace.tables_key,
        title=title,
        titles=list(workspace.problems),
        is_assigned=found.is_assigned,
        can_tell=workspace.prepared.assistants.embed_texts is not None,
        version=found.log.version,
        failures=Share.of(problem.n_failed, len(problem.rows)),
        n_training=len(training),
        attributes=[_attribute(one, problem, training) for one in found.attributes],
        notes=list(found.notes),
    )


def training_rows(workspace: Workspace, problem: ClassProblem | None) -> IntArray:
    """Return the training samples of a class, or all of them."""
    dataset = workspace.samples.dataset
    rows = dataset.rows_of(Split.TRAIN)
    if problem is None:
        return rows
    rows, code = rows[dataset.is_labelled[rows]], dataset.class_code(problem.class_name)
    if dataset.task is Task.SINGLE_LABEL:
        return np.asarray(rows[dataset.labels[rows] == code])
    has_label = dataset.label_matrix[rows, code]
    return np.asarray(rows[~has_label if problem.side is Side.ABSENT else has_label])


def _attribute(found: CodedAttribute, problem: ClassProblem, training: IntArray) -> AttributeView:
    edited, record, is_known = found.edited, found.record, found.codes is not None
    n_values = len(edited.values) + 1
    counts = np.zeros((n_values, 2), dtype=np.int64)
    in_training = np.zeros(n_values, dtype=np.int64)
    if found.codes is not None:
        places = 2 * found.codes[problem.rows].astype(np.int64) + problem.failed
        counts = np.bincount(places, minlength=2 * n_values).reshape(n_values, 2)
        in_training = np.bincount(found.codes[training], minlength=n_values)
    shares = [Share.of(int(wrong), int(right + wrong)) for right, wrong in counts]
    values = [
        AttributeValueView(
            value_id=value.value_id,
            title=value.title,
            failures=shares[place],
            training=Share.of(int(in_training[place]), len(training)) if len(training) else None,
            phrases=list(written.phrases),
            merged=list(written.merged),
        )
        for place, (value, written) in enumerate(zip(edited.values, record.values, strict=True), start=1)
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
