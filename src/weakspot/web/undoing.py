"""Undo: what to do about each kind of change; refused where the same thing was changed again since."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import select

from weakspot.core.errors import DataError
from weakspot.web.changing import Changing
from weakspot.web.problems import RefusedError
from weakspot.web.services.marks.applying import AppliedLabels, take_out
from weakspot.web.services.repair.results import current_repair, go_back_to
from weakspot.web.services.slices.undoing import give_names_back, swap_slices
from weakspot.web.state.changes import ChangeView, add_change, change_of, mark_undone
from weakspot.web.state.marks import MARKS, undo_marks
from weakspot.web.state.studies import open_or_close
from weakspot.web.state.tables import ChangeRow

UNDO = "undo"
Undo = Callable[[Changing, Mapping[str, Any]], None]


def _names(changing: Changing, data: Mapping[str, Any]) -> None:
    workspace, by = changing.parts.workspace, changing.person.name
    give_names_back(workspace, data["run"], data["slice"], data["names"], by=by)


def _slices(changing: Changing, data: Mapping[str, Any]) -> None:
    workspace, by = changing.parts.workspace, changing.person.name
    swap_slices(workspace, data["run"], back=data["back"], away=data["away"], by=by)


def _repair(changing: Changing, data: Mapping[str, Any]) -> None:
    workspace = changing.parts.workspace
    if current_repair(workspace, data["run"]) != data["after"]:
        raise RefusedError(
            409, "Another repair was made or chosen since.", fix="Choose one on the page Repair."
        )
    go_back_to(workspace, data["before"], data["run"])


def _labels(changing: Changing, data: Mapping[str, Any]) -> None:
    take_out(changing.parts.workspace, AppliedLabels.model_validate(data))


def _study(changing: Changing, data: Mapping[str, Any]) -> None:
    state, person = changing.parts.state, changing.person
    open_or_close(state, person, data["study"], is_open=data["was_open"])


UNDOS: dict[str, Undo] = {
    "slice words": _names,
    "slices": _slices,
    "repair": _repair,
    "labels": _labels,
    "study": _study,
}


def can_undo(kind: str) -> bool:
    """Return whether a kind of change can be undone."""
    return kind == MARKS or kind in UNDOS


def undo(changing: Changing, change_id: int) -> None:
    """Undo a change.

    Raises:
        RefusedError: 404 if there is none, 409 if it was undone or the same thing was changed since, with what was done.
    """
    change, data = change_of(changing.parts.state, change_id)
    if not can_undo(change.kind):
        raise DataError("This cannot be undone.", given=change.sentence)
    made = changing.change(UNDO, f"{UNDO} {change_id}", f"Undid: {change.sentence}")
    if change.kind == MARKS:
        made = made.model_copy(update={"subject": MARKS})
        changing.told(undo_marks(changing.parts.state, change_id, change=made))
        return
    with changing.parts.workspace.editing():
        # Another tab may have undone it while this one waited.
        change, data = change_of(changing.parts.state, change_id)
        _refuse_newer(changing, change, data)
        UNDOS[change.kind](changing, data)
        with changing.parts.state.writing() as rows:
            number = add_change(rows, made.model_copy(update={"subject": change.subject})).change_id
            mark_undone(rows, change_id, number)
    changing.told(number)


def _refuse_newer(changing: Changing, change: ChangeView, data: Mapping[str, Any]) -> None:
    subjects = [change.subject, *data.get("subjects", [])]
    asked = (
        select(ChangeRow)
        .where(
            ChangeRow.subject.in_(subjects),
            ChangeRow.change_id > change.change_id,
            ChangeRow.undone_by.is_(None),
            ChangeRow.kind != UNDO,
        )
        .order_by(ChangeRow.change_id.desc())
    )
    with changing.parts.state.reading() as rows:
        newer = rows.scalars(asked).first()
        if newer is not None:
            raise RefusedError(
                409,
                f"{newer.by} changed the same thing since: {newer.sentence}",
                fix="Undo that first.",
            )
