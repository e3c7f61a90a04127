"""Marks that come back from a file: of samples that people may look at, in one change."""

from collections import defaultdict
from pathlib import Path

from weakspot.core.dataset import Task
from weakspot.web.services.images.visible import visible_samples
from weakspot.web.services.mark_book import ALONE, MarkKind
from weakspot.web.services.marks.files import MarkTool, ReadMark, read_marks
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.changes import NewChange, add_change
from weakspot.web.state.marks import MARKS, NewMark, add_marks
from weakspot.web.state.store import StateStore


class ReadBack(View):
    """What a file said.

    Args:
        n_marked: marks that were made of it.
        n_same: lines that give a sample the label that it has.
        n_unknown: lines about samples or classes that are not there.
        n_unseen: lines about samples that nobody may look at; they are left out.
    """

    n_marked: int
    n_same: int
    n_unknown: int
    n_unseen: int


def read_back(
    workspace: Workspace, state: StateStore, tool: MarkTool, source: Path, *, by: str
) -> tuple[ReadBack, int | None]:
    """Make marks of what a file says; return what it said, and the number of the change, None if nothing was marked."""
    dataset = workspace.samples.dataset
    found, seen = read_marks(dataset, tool, source), visible_samples(workspace)
    is_single = dataset.task is Task.SINGLE_LABEL
    fits = [one for one in found.marks if not (is_single and len(one.labels) > 1)]
    visible = [one for one in fits if seen.place_of(one.row) is not None]
    told = ReadBack(
        n_marked=len(visible),
        n_same=found.n_same,
        n_unknown=found.n_unknown + len(found.marks) - len(fits),
        n_unseen=len(fits) - len(visible),
    )
    if not visible:
        return told, None
    change = NewChange(
        kind=MARKS,
        subject=MARKS,
        sentence=f"Read {len(visible)} marks from a file of {tool}",
        by=by,
    )
    ids = dict(zip(seen.rows.tolist(), dataset.sample_ids(seen.rows), strict=True))
    with state.writing() as rows:
        number = add_change(rows, change).change_id
        for mark, sample_ids in _by_mark(visible, ids).items():
            kind, labels, text = mark
            add_marks(
                rows, sample_ids, NewMark(kind=kind, labels=list(labels), text=text), number=number
            )
    return told, number


def _by_mark(
    marks: list[ReadMark], ids: dict[int, str]
) -> dict[tuple[MarkKind, tuple[str, ...], str], list[str]]:
    """Return samples by what is said of them; of what can be said once, the last line counts."""
    last = {(one.row, "" if one.kind in ALONE else f"{one.kind} {one.text}"): one for one in marks}
    found: dict[tuple[MarkKind, tuple[str, ...], str], list[str]] = defaultdict(list)
    for one in last.values():
        found[one.kind, one.labels, one.text].append(ids[one.row])
    return found
