"""Marks that become labels: only then they count, and only for samples that prove nothing."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import JsonValue, TypeAdapter

from weakspot.core.errors import DataError, StoreError
from weakspot.core.given_labels import Names, names_at
from weakspot.pipeline.halves import used_rows
from weakspot.store.corrections import Correction
from weakspot.web.services.images.visible import visible_samples
from weakspot.web.services.mark_book import ALONE, Mark, MarkKind
from weakspot.web.services.samples.facts import files_of
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MOST_LISTED = 500


class MarkedLabel(View):
    """A label that somebody says is wrong, or a sample that is of no use.

    Args:
        sample_id: which sample.
        file: its file name.
        label: what it has now; empty if it has none.
        right: what it shall have; null if it is of no use.
        by: who said it.
        time: when.
        is_applied: whether it counts.
    """

    sample_id: str
    file: str
    label: list[str]
    right: list[str] | None
    by: str
    time: str
    is_applied: bool


class MarksView(View):
    """What people said of samples, and what of it counts.

    Args:
        counts: how many samples have each kind of mark.
        tags: all tags, most frequent first.
        labels: wrong labels with the right one, and samples of no use; the first few hundred, those that wait first.
        n_waiting: how many of all wait to be applied.
        n_applied: labels that were corrected, and count.
        n_without_right: wrong labels of which nobody knows the right one; they cannot be applied.
        n_of_proof: those that cannot be applied because runs are cross-fitted, and the samples prove slices.
        n_gone: marked samples that are not among those that people may look at.
    """

    counts: dict[str, int]
    tags: list[str]
    labels: list[MarkedLabel]
    n_waiting: int
    n_applied: int
    n_without_right: int
    n_of_proof: int
    n_gone: int


def marks_view(workspace: Workspace) -> MarksView:
    """Return what people said of samples."""
    book, found = workspace.shared.marks(), _look(workspace)
    shown = sorted(found.lines, key=lambda one: (one.is_applied, one.file))
    return MarksView(
        counts=book.counts(),
        tags=book.tags()[:MOST_LISTED],
        labels=shown[:MOST_LISTED],
        n_waiting=sum(not one.is_applied for one in found.lines),
        n_applied=len(workspace.project.store.corrections.read().entries),
        n_without_right=found.n_without_right,
        n_of_proof=found.n_of_proof,
        n_gone=found.n_gone,
    )


class _Found:
    """What can be applied, and how much cannot."""

    def __init__(self) -> None:
        self.lines: list[MarkedLabel] = []
        self.n_without_right = self.n_of_proof = self.n_gone = 0


def _look(workspace: Workspace) -> _Found:
    found, marked = _Found(), dict(_said(workspace))
    rows = _visible(workspace, marked)
    proving, corrected = _proving(workspace), workspace.project.store.corrections.read().by_sample()
    places = np.array(list(rows.values()), dtype=np.int64)
    names = dict(zip(rows, files_of(workspace, places), strict=True))
    for sample_id, mark in marked.items():
        if sample_id not in rows:
            found.n_gone += sample_id not in corrected
        elif mark.kind is MarkKind.LABEL and not mark.labels:
            found.n_without_right += 1
        elif rows[sample_id] in proving:
            found.n_of_proof += 1
        else:
            label = names_at(workspace.samples.dataset, rows[sample_id])
            found.lines.append(_line(sample_id, names[sample_id], label, mark))
    return found


def _visible(workspace: Workspace, sample_ids: Iterable[str]) -> dict[str, int]:
    """Return the rows of samples, of those that people may look at."""
    seen = visible_samples(workspace).rows
    column = workspace.samples.dataset.table.column("sample_id").take(pa.array(seen))
    wanted = pa.array(list(sample_ids), pa.string())
    places = np.flatnonzero(np.asarray(pc.is_in(column, value_set=wanted).combine_chunks()))
    ids = column.take(pa.array(places)).to_pylist()
    return dict(zip(ids, seen[places].tolist(), strict=True))


def _line(sample_id: str, file: str, label: Names, mark: Mark) -> MarkedLabel:
    right = None if mark.kind is MarkKind.UNUSABLE else mark.labels
    return MarkedLabel(
        sample_id=sample_id,
        file=file,
        label=list(label or ()),
        right=right,
        by=mark.by,
        time=mark.time,
        is_applied=(label is None) == (right is None) and set(label or ()) == set(right or ()),
    )


def _said(workspace: Workspace) -> Iterable[tuple[str, Mark]]:
    for sample_id, marks in workspace.shared.marks().by_sample.items():
        for mark in marks:
            if mark.kind in ALONE:
                yield sample_id, mark


def _proving(workspace: Workspace) -> set[int]:
    """Return the rows whose labels prove something although people see them: all evaluation samples of cross-fitted runs."""
    settings = workspace.project.settings
    is_crossed = settings.verify.scheme == "cross-fit"
    return set(used_rows(workspace.samples, settings).tolist()) if is_crossed else set()


class AppliedLabels(View):
    """Labels that were corrected.

    Args:
        time: when.
        samples: what was known of each sample before: an earlier correction, or null.
        n_labels: labels that were replaced.
        n_unusable: samples that were taken out.
    """

    time: str
    samples: dict[str, dict[str, JsonValue] | None]
    n_labels: int
    n_unusable: int


def apply_marks(workspace: Workspace, *, by: str) -> AppliedLabels:
    """Let marked labels count: they are written beside weakspot.toml, and the samples are another data set from now on.

    Raises:
        DataError: if there is nothing to apply.
    """
    with workspace.editing() as project:
        waiting = [one for one in _look(workspace).lines if not one.is_applied]
        if not waiting:
            raise DataError(
                "There is nothing to apply.",
                fix="Mark labels as wrong, with the right one, or images as unusable.",
            )
        file = project.store.corrections
        before, time = file.read(), datetime.now(UTC).isoformat()
        known = before.by_sample()
        made = [
            Correction(
                sample_id=one.sample_id,
                file=one.file,
                before=known[one.sample_id].before if one.sample_id in known else tuple(one.label),
                label=None if one.right is None else tuple(one.right),
                by=by,
                time=time,
            )
            for one in waiting
        ]
        file.write([*before.entries, *made])
    replaced = {one.sample_id: known.get(one.sample_id) for one in made}
    return AppliedLabels(
        time=time,
        samples={name: None if one is None else asdict(one) for name, one in replaced.items()},
        n_labels=sum(one.label is not None for one in made),
        n_unusable=sum(one.label is None for one in made),
    )


def take_out(workspace: Workspace, applied: AppliedLabels) -> None:
    """Undo an application: labels are again what they were before it.

    Raises:
        StoreError: if one of the labels was corrected again since.
    """
    with workspace.editing() as project:
        file = project.store.corrections
        known = file.read().by_sample()
        is_other = [
            one for one in applied.samples if one not in known or known[one].time != applied.time
        ]
        if is_other:
            raise StoreError(
                "Some of these labels were corrected again since.",
                given=len(is_other),
                fix="Undo that first.",
            )
        for sample_id, earlier in applied.samples.items():
            del known[sample_id]
            if earlier is not None:
                known[sample_id] = TypeAdapter(Correction).validate_python(earlier)
        file.write(known.values())
