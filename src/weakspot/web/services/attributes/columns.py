"""The attributes of a project as numbers, kept as long as neither assignment nor edits change."""

import threading
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from weakspot.assign.edited_attributes import EditedAttribute, EditedValue
from weakspot.assign.edits import EditLog
from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.attributes import Attribute, AttributeBook, marked_attributes
from weakspot.core.errors import DataError, StoreError
from weakspot.core.failures import ClassProblem
from weakspot.core.groups import several_to_a_group
from weakspot.core.run import StageProgress
from weakspot.pipeline.attributes.assignment import (
    assigned_editions,
    attributes_mark,
    unassigned_editions,
    with_attributes,
)
from weakspot.pipeline.attributes.edited_columns import Editions
from weakspot.pipeline.wiring import build_engine
from weakspot.project.project import Project
from weakspot.web.services.work import Arguments
from weakspot.web.services.workspace import Workspace

AttributeState = Literal["assigned", "waiting", "left out"]
CACHE = "attribute columns"
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
        views: what was counted from them, by name.
    """

    mark: str
    is_assigned: bool
    log: EditLog
    book: AttributeBook
    attributes: tuple[CodedAttribute, ...]
    notes: tuple[str, ...]
    views: dict[str, object] = field(default_factory=dict)

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
    return workspace.once(CACHE, _Cache).current(workspace)


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


class _Cache:
    """The newest attributes, and the codes of columns, which never change what they hold."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._newest: CodedAttributes | None = None
        self._codes: dict[tuple[str, str], AnyArray] = {}

    def current(self, workspace: Workspace) -> CodedAttributes:
        given = (
            workspace.samples,
            workspace.prepared.assistants,
            workspace.project.settings,
            workspace.project.store,
        )
        mark = attributes_mark(*given)
        with self._guard:
            if self._newest is None or self._newest.mark != mark:
                assigned = assigned_editions(*given)
                editions = assigned or unassigned_editions(
                    workspace.samples, workspace.project.store
                )
                self._newest = self._encode(mark, editions, is_assigned=assigned is not None)
            return self._newest

    def _encode(self, mark: str, editions: Editions, *, is_assigned: bool) -> CodedAttributes:
        coded, assignment = [], " ".join(mark.split(" ")[:2])
        kept: dict[tuple[str, str], AnyArray] = {}
        for attribute in editions.now.attributes:
            is_known, why, assigned = editions.state(attribute)
            codes = None
            if is_known:
                place = (assignment, attribute.column)
                codes = kept[place] = (
                    self._codes[place] if place in self._codes else _codes(editions, attribute)
                )
            state: AttributeState = "assigned" if is_known else "left out" if why else "waiting"
            coded.append(
                CodedAttribute(
                    edited=attribute,
                    record=attribute.record(None, assigned),
                    state=state,
                    note=why,
                    codes=codes,
                )
            )
        self._codes = kept
        notes = (*editions.base.book.notes, *editions.now.notes)
        return CodedAttributes(
            mark=mark,
            is_assigned=is_assigned,
            log=editions.log,
            book=editions.base.book,
            attributes=tuple(coded),
            notes=notes,
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


def assign(project: Project, arguments: Arguments, progress: StageProgress) -> dict[str, JsonValue]:
    """Assign attributes to all samples; what was assigned before is taken, of what people edited only what is new is assigned."""
    del arguments
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
