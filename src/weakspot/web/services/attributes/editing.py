"""Changing attributes: every edit is written down with who made it, nothing is lost, and everything can be undone."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from weakspot.assign.editing import MOST_VALUES, checked_edit
from weakspot.assign.edits import AttributeEdit, EditKind, GivenValue
from weakspot.assign.representatives import LARGEST_SAMPLE, spread_rows
from weakspot.core.errors import DataError, ModelError, StoreError
from weakspot.pipeline.attributes.edit_log import AttributeEditFile
from weakspot.pipeline.attributes.edited_columns import reference_of
from weakspot.pipeline.attributes.words import given_values, proposed_attribute
from weakspot.web.services.attributes.columns import CodedAttributes, coded_attributes
from weakspot.web.services.attributes.values import LONGEST_ID
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

LONGEST_NAME = 80
LONGEST_PHRASE = 200
MOST_PHRASES = 12
MOST_EDITS = 2000

Name = Annotated[str, StringConstraints(max_length=LONGEST_NAME)]
Phrase = Annotated[str, StringConstraints(max_length=LONGEST_PHRASE)]
Identifier = Annotated[str, StringConstraints(max_length=LONGEST_ID)]


class NewValue(View):
    """A value as a person gives it.

    Args:
        title: what it is called.
        phrases: what it is assigned by; phrases are made from the name if there is none, and a second one if there is one.
    """

    title: Name
    phrases: tuple[Phrase, ...] = Field(default=(), max_length=MOST_PHRASES)


class EditRequest(View):
    """One change of the attributes.

    Args:
        version: of the edits that was seen; refused if somebody else has edited since.
        kind: what is changed.
        attribute: id of the attribute; empty for a new one.
        values: ids of the values meant; of those that are merged, the first stays.
        title: the new name of the attribute, value or merged value.
        given: new values, or the new phrases of one.
        question: what a question answerer would be asked for a new attribute.
        to: id of the attribute that a value is moved to.
        target: number of the edit that is undone or done again.
    """

    version: int = Field(ge=0, le=MOST_EDITS)
    kind: EditKind
    attribute: Identifier = ""
    values: tuple[Identifier, ...] = Field(default=(), max_length=MOST_VALUES)
    title: Name = ""
    given: tuple[NewValue, ...] = Field(default=(), max_length=MOST_VALUES)
    question: Phrase = ""
    to: Identifier = ""
    target: int = Field(default=0, ge=0, le=MOST_EDITS)


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


class EditView(View):
    """An edit that was made.

    Args:
        number: from 1, oldest first.
        kind: what was changed.
        sentence: the edit in words, as things were called then.
        by: who made it.
        time: ISO 8601, UTC.
        state: `holds`, or `undone`; undoing itself only `happened`.
    """

    number: int
    kind: EditKind
    sentence: str
    by: str
    time: str
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
        if log.version >= MOST_EDITS:
            raise StoreError(
                f"There are {MOST_EDITS} edits already.",
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
            number=one.number,
            kind=one.edit.kind,
            sentence=one.sentence,
            by=one.by,
            time=one.time,
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
    rows = spread_rows(reference_of(samples), LARGEST_SAMPLE)
    found, notes = proposed_attribute(
        plain, samples, workspace.prepared.assistants, workspace.project.settings, rows
    )
    values = [
        NewValue(title=one.value[:LONGEST_NAME], phrases=_short(one.phrases))
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
    return tuple(phrase[:LONGEST_PHRASE] for phrase in phrases)[:MOST_PHRASES]
