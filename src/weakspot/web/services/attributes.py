"""Attributes: their values as numbers and as pages show them, and edits, which are written down and can be undone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, JsonValue

from weakspot.core.arrays import AnyArray, BoolArray, IntArray, even_part
from weakspot.core.dataset import Split, Task, several_to_a_group
from weakspot.core.errors import DataError, ModelError, StoreError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, Side
from weakspot.core.run import StageProgress
from weakspot.core.samples import Attribute, AttributeBook, AttributeSource, marked_attributes
from weakspot.project.nearest import label_texts
from weakspot.project.project import Project
from weakspot.run.attributes import (
    AttributeEditFile,
    Editions,
    assigned_editions,
    attributes_mark,
    given_values,
    proposed_attribute,
    reference_of,
    unassigned_editions,
    with_attributes,
)
from weakspot.run.wiring import build_engine
from weakspot.web.services.samples import ShownSamples, shown_samples
from weakspot.web.services.view import View, share_of
from weakspot.web.services.workspace import Workspace
from weakspot.words.editing import (
    MAX_EDITS,
    MAX_NAME_LENGTH,
    MAX_PHRASE_LENGTH,
    MAX_VALUES,
    AttributeEdit,
    EditedAttribute,
    EditedValue,
    EditLog,
    GivenValue,
    LoggedEdit,
    Name,
    Phrase,
    checked_edit,
)
from weakspot.words.representatives import MAX_SAMPLE

MAX_CODED = 64
AttributeState = Literal["assigned", "waiting", "left out"]
EVERYONE = "predictions of the discovery half"


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedAttribute:
    """An attribute with the value of every sample.

    Args:
        edited: the attribute as it is now.
        record: what assignment says of it.
        state: `waiting` until its words are assigned, `left out` if they cannot be.
        note: why it is left out.
        codes: [n] place of the value among the attribute's values plus one, 0 where it is not known; None unless assigned.
    """

    edited: EditedAttribute
    record: Attribute
    state: AttributeState
    note: str
    codes: AnyArray | None

    @property
    def attribute_id(self) -> str:
        """Return the id that edits and queries use."""
        return self.edited.attribute_id

    def known_codes(self) -> AnyArray:
        """Return the codes.

        Raises:
            StoreError: if its values are not assigned.
        """
        if self.codes is None:
            raise StoreError(
                f"The values of {self.edited.name!r} are not assigned.",
                fix="Assign the attributes first.",
            )
        return self.codes

    def place(self, value_id: str) -> int:
        return self.edited.values.index(self.edited.value(value_id)) + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedAttributes:
    """All attributes of a project.

    Args:
        mark: differs whenever anything here does.
        is_assigned: whether attributes were assigned to all samples; if not, only the user's own columns are here.
        log: the edits.
        book: the attributes before any edit.
        attributes: as they are now.
        notes: what was left out, in sentences.
    """

    mark: str
    is_assigned: bool
    log: EditLog
    book: AttributeBook
    attributes: tuple[CodedAttribute, ...]
    notes: tuple[str, ...]

    def attribute(self, attribute_id: str) -> CodedAttribute:
        """Return an attribute.

        Raises:
            DataError: if there is none of that id.
        """
        found = next((one for one in self.attributes if one.attribute_id == attribute_id), None)
        if found is None:
            raise DataError("There is no such attribute.", where="attribute", given=attribute_id)
        return found

    def value(self, attribute_id: str, value_id: str) -> tuple[CodedAttribute, EditedValue]:
        found = self.attribute(attribute_id)
        return found, found.edited.value(value_id)


def coded_attributes(workspace: Workspace) -> CodedAttributes:
    project, samples = workspace.project, workspace.samples
    given = samples, workspace.prepared.assistants, project.settings, project.store
    mark = attributes_mark(*given)

    def encode() -> CodedAttributes:
        assigned = assigned_editions(*given)
        editions = assigned or unassigned_editions(samples, project.store)
        return _encode(workspace, mark, editions, is_assigned=assigned is not None)

    return workspace.recent("attributes", mark, encode, most=1)


def predictions_of(workspace: Workspace, title: str | None) -> ClassProblem:
    """Return the samples of a class on the discovery half, or of all classes together: then one fails that fails in any class.

    Raises:
        DataError: if there is no class of that title.
    """
    if title is not None:
        return workspace.problem(title)
    return workspace.once(EVERYONE, lambda: _everyone(workspace))


def _everyone(workspace: Workspace) -> ClassProblem:
    n_rows = len(workspace.samples.dataset)
    known, failed = np.zeros((2, n_rows), dtype=np.bool_)
    for problem in workspace.problems.values():
        known[problem.rows] = True
        failed[problem.rows[problem.failed]] = True
    rows: IntArray = np.flatnonzero(known)
    wrong: BoolArray = failed[rows]
    return ClassProblem(
        class_name="",
        side=None,
        rows=rows,
        failed=wrong,
        confidence=np.zeros(0, dtype=np.float32),
        groups=several_to_a_group(workspace.samples.dataset.groups[rows]),
    )


def _encode(
    workspace: Workspace, mark: str, editions: Editions, *, is_assigned: bool
) -> CodedAttributes:
    coded, assignment = [], " ".join(mark.split(" ")[:2])
    for attribute in editions.now[0]:
        is_known, why, assigned = editions.state(attribute)
        # A column never changes what it holds.
        key, read = (assignment, attribute.column), partial(_codes, editions, attribute)
        state: AttributeState = "assigned" if is_known else "left out" if why else "waiting"
        coded.append(
            CodedAttribute(
                edited=attribute,
                record=attribute.record(None, assigned),
                state=state,
                note=why,
                codes=workspace.recent("attribute codes", key, read, most=MAX_CODED)
                if is_known
                else None,
            )
        )
    return CodedAttributes(
        mark=mark,
        is_assigned=is_assigned,
        log=editions.log,
        book=editions.base.book,
        attributes=tuple(coded),
        notes=(*editions.base.book.notes, *editions.now[1].values()),
    )


def _codes(editions: Editions, attribute: EditedAttribute) -> AnyArray:
    column = editions.column(attribute)
    if column is None:
        return np.zeros(len(editions.samples.dataset), dtype=np.uint16)
    coded = (
        column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    ).dictionary_encode()
    place_of = {value.value_id: place for place, value in enumerate(attribute.values, start=1)}
    words = [place_of.get(str(word), 0) for word in coded.dictionary.to_pylist()]
    places = np.array([*words, 0], dtype=np.uint16)
    return np.asarray(places[np.asarray(coded.indices.fill_null(len(words)))])


def assign(project: Project, progress: StageProgress) -> dict[str, JsonValue]:
    """Assign attributes to all samples; what was assigned before is taken, of what people edited only what is new is assigned."""
    opened = Project(project.folder, project.settings, progress=progress)
    progress("prepare", 0, None)
    prepared = opened.prepared()
    samples, notes = with_attributes(
        prepared.samples,
        assistants=prepared.assistants,
        settings=opened.settings,
        store=opened.store,
        engine=build_engine(opened.settings),
        progress=opened.progress_of("attributes"),
    )
    return {
        "n_attributes": len(marked_attributes(samples.dataset.table) or ()),
        "n_notes": len(notes),
    }


MAX_CHOSEN = 3

Result = Literal["right", "wrong"]


def attribute_samples(
    workspace: Workspace,
    chosen: Mapping[str, str],
    *,
    title: str | None = None,
    result: Result | None = None,
    offset: int = 0,
    limit: int = 100,
) -> ShownSamples:
    """Return a page of samples.

    Args:
        workspace: the project.
        chosen: ids of one to three attributes, and of the value of each that the samples have.
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
    page, dataset = places[offset : offset + limit], workspace.samples.dataset
    labels = label_texts(dataset, problem.rows[page]) if title is None else None
    return ShownSamples(
        tables=workspace.tables_key,
        total=len(places),
        offset=offset,
        samples=shown_samples(dataset, problem, page, labels=labels),
    )


def have_values(workspace: Workspace, chosen: Mapping[str, str], title: str | None) -> BoolArray:
    if not 1 <= len(chosen) <= MAX_CHOSEN:
        raise DataError(f"Choose one value each of one to {MAX_CHOSEN} attributes.", where="values")
    problem, attributes = predictions_of(workspace, title), coded_attributes(workspace)
    inside = np.ones(len(problem.rows), dtype=np.bool_)
    for attribute_id, value_id in chosen.items():
        attribute = attributes.attribute(attribute_id)
        inside &= attribute.known_codes()[problem.rows] == attribute.place(value_id)
    return inside


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
    return workspace.recent(
        "histograms", (found.mark, title), lambda: _count(workspace, found, title)
    )


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
        failures=share_of(problem, problem.n_failed, len(problem.rows)),
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


def _attribute(found: CodedAttribute, problem: ClassProblem, training: IntArray) -> AttributeView:
    edited, record, is_known = found.edited, found.record, found.codes is not None
    n_values = len(edited.values) + 1
    counts = np.zeros((n_values, 2), dtype=np.int64)
    in_training = np.zeros(n_values, dtype=np.int64)
    if found.codes is not None:
        places = 2 * found.codes[problem.rows].astype(np.int64) + problem.failed
        counts = np.bincount(places, minlength=2 * n_values).reshape(n_values, 2)
        in_training = np.bincount(found.codes[training], minlength=n_values)
    shares = [share_of(problem, int(wrong), int(right + wrong)) for right, wrong in counts]
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


MAX_PHRASES = 12


class NewValue(GivenValue, View):
    """A value as a person gives it; phrases are made from the name if there is none, and a second one if there is one."""

    title: Name
    phrases: tuple[Phrase, ...] = Field(default=(), max_length=MAX_PHRASES)


class EditRequest(AttributeEdit, View):
    """One change of the attributes.

    Args:
        version: of the edits that was seen; refused if somebody else has edited since.
        given: new values, or the new phrases of one.
    """

    version: int = Field(ge=0, le=MAX_EDITS)
    given: tuple[NewValue, ...] = Field(default=(), max_length=MAX_VALUES)


class EditResult(View):
    """What an edit came to.

    Args:
        version: of the edits now.
        sentence: the edit in words.
        waiting: names of attributes whose words have to be assigned before they can be used.
    """

    version: int
    sentence: str
    waiting: list[str]


class EditView(LoggedEdit, View):
    """An edit that was made, and whether it `holds` or is `undone`; undoing itself only `happened`."""

    state: Literal["holds", "undone", "happened"]


class EditsView(View):
    """All edits, newest first."""

    version: int
    edits: list[EditView]


class ProposedValuesView(View):
    """Values for an attribute that somebody names, from whoever could be asked.

    Args:
        name: of the attribute.
        question: what images would be asked.
        values: with phrases.
        notes: what to know, in sentences.
    """

    name: str
    question: str
    values: list[NewValue]
    notes: list[str]


def edit_attributes(workspace: Workspace, request: EditRequest, *, by: str) -> EditResult:
    """Make a change, with nobody else in between.

    Raises:
        StoreError: if somebody else has edited since the version that was seen.
        DataError: if the change cannot be made.
        ModelError: if words have to be assigned and there is no text side.
    """
    with workspace.editing() as project:
        file = AttributeEditFile(project.store)
        log = file.read()
        if log.version != request.version:
            newest = log.entries[-1] if log.entries else None
            said = "Somebody else" if newest is None else newest.by or "Somebody else"
            what = "" if newest is None else f": {newest.sentence}"
            raise StoreError(
                f"{said} has edited the attributes since{what}",
                fix="Look at what changed, then do it again.",
            )
        if log.version >= MAX_EDITS:
            raise StoreError(
                f"There are {MAX_EDITS} edits already.",
                fix="Start another project; slices on edited attributes need all of them.",
            )
        found = coded_attributes(workspace)
        edit = _complete(workspace, found, request)
        sentence = checked_edit(found.book, log, edit)
        file.add(log, edit, by=by, sentence=sentence)
    now = coded_attributes(workspace)
    return EditResult(
        version=now.log.version,
        sentence=sentence,
        waiting=[one.edited.name for one in now.attributes if one.state == "waiting"],
    )


def edits_of(workspace: Workspace) -> EditsView:
    log = coded_attributes(workspace).log
    undone = log.undone()
    entries = [
        EditView(
            **dict(one),
            state="happened"
            if one.edit.kind in ("undo", "redo")
            else "undone"
            if one.number in undone
            else "holds",
        )
        for one in reversed(log.entries)
    ]
    return EditsView(version=log.version, edits=entries)


def propose_values(workspace: Workspace, name: str) -> ProposedValuesView:
    """Return values for an attribute that somebody names: from the question answerer or the language model, or built-in ones.

    Raises:
        UnavailableError: if nobody can be asked.
        ModelError: if whoever was asked gave none.
    """
    plain = " ".join(name.split())
    if not plain:
        raise DataError("Say what the attribute is called.", where="name")
    samples = workspace.samples
    rows = even_part(reference_of(samples), MAX_SAMPLE)
    found, notes = proposed_attribute(
        plain, samples, workspace.prepared.assistants, workspace.project.settings, rows
    )
    values = [
        NewValue(title=one.value[:MAX_NAME_LENGTH], phrases=_short(one.phrases))
        for one in found.values
    ]
    return ProposedValuesView(name=plain, question=found.question, values=values, notes=list(notes))


def _complete(workspace: Workspace, found: CodedAttributes, request: EditRequest) -> AttributeEdit:
    given: tuple[GivenValue, ...] = ()
    if request.given:
        if not workspace.has_text_side:
            raise ModelError(
                "The embedder has no text side, so values cannot be assigned by words.",
                fix="weakspot lab align",
            )
        name = (
            request.title
            if request.kind == "add attribute"
            else found.attribute(request.attribute).edited.spoken_name
        )
        titles = _titles(found, request)
        phrases = given_values(
            name,
            [(title, one.phrases) for title, one in zip(titles, request.given, strict=True)],
            workspace.samples.dataset.class_names,
        )
        given = tuple(
            GivenValue(title=title, phrases=each)
            for title, each in zip(titles, phrases, strict=True)
        )
    rest = request.model_dump(exclude={"version", "given"})
    return AttributeEdit(**rest, given=given)


def _titles(found: CodedAttributes, request: EditRequest) -> list[str]:
    """Return what the given values are called; other phrases are given for a value that has its title already."""
    if not all(
        phrase.isprintable() for one in request.given for phrase in (one.title, *one.phrases)
    ):
        raise DataError(
            "Names and phrases must not hold letters that cannot be printed.", where="given"
        )
    if request.kind == "change phrases" and len(request.values) == 1:
        return [found.value(request.attribute, request.values[0])[1].title] * len(request.given)
    titles = [" ".join(one.title.split()) for one in request.given]
    if not all(titles):
        raise DataError("Every value needs a name.", where="given")
    return titles


def _short(phrases: Sequence[str]) -> tuple[str, ...]:
    return tuple(phrase[:MAX_PHRASE_LENGTH] for phrase in phrases)[:MAX_PHRASES]
