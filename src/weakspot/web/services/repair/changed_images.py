"""Images that a repair changed the answer of: right now, or broken, among those that people may look at.

Figures of a repair are of test samples, which nobody looks at; these images are of the discovery half, and say what a change looks like.
"""

from dataclasses import dataclass

import numpy as np

from weakspot.backends.head_files import read_head
from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.errors import WeakspotError
from weakspot.core.run import RunRecord
from weakspot.pipeline.preparation import FEATURES
from weakspot.repair.history import HEAD
from weakspot.web.services.images.page import ListedImage, list_images
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MOST_SHOWN = 24


class ChangedImages(View):
    """What the current repair of a run changed on the discovery half.

    Args:
        tables: what row numbers belong to.
        half: whose images these are.
        n_right_now: wrong before, right after.
        n_broken: right before, wrong after.
        right_now: some of the first, members of the repaired slices first.
        broken: some of the second.
        note: why nothing is shown; empty if something is.
    """

    tables: str
    half: str
    n_right_now: int = 0
    n_broken: int = 0
    right_now: tuple[ListedImage, ...] = ()
    broken: tuple[ListedImage, ...] = ()
    note: str = ""


def changed_images(workspace: Workspace, run_id: str | None = None) -> ChangedImages:
    """Return images that the current repair of a run changed; a note if its layer is not there or cannot be used on these samples.

    Raises:
        StoreError: if there is no such run.
    """
    nothing = ChangedImages(tables=workspace.tables_key, half=workspace.discovery.name)
    record = workspace.record(run_id)
    if record is None or not record.repairs or record.repairs[0].head_file is None:
        return nothing
    try:
        changes = _changes(workspace, record)
    except WeakspotError as error:
        return nothing.model_copy(update={"note": error.what})
    if changes is None:
        return nothing
    return ChangedImages(
        tables=workspace.tables_key,
        half=workspace.discovery.name,
        n_right_now=int(changes.right_now.sum()),
        n_broken=int(changes.broken.sum()),
        right_now=tuple(list_images(workspace, changes.rows[changes.right_now][:MOST_SHOWN])),
        broken=tuple(list_images(workspace, changes.rows[changes.broken][:MOST_SHOWN])),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Changes:
    """Rows, members of repaired slices first, and what became of each [n]."""

    rows: IntArray
    right_now: BoolArray
    broken: BoolArray


def _changes(workspace: Workspace, record: RunRecord) -> _Changes | None:
    samples = workspace.samples_for(record)
    dataset = samples.dataset
    if dataset.task is not Task.SINGLE_LABEL or FEATURES not in samples.spaces:
        return None
    rows = workspace.discovery.rows
    rows = rows[samples.has_embeddings(FEATURES, rows)]
    head, names = read_head(workspace.project.store.runs.run_folder(record.run_id) / HEAD.name)
    probabilities = samples.by_blocks(
        FEATURES, rows, head.reordered(names, dataset.class_names).probabilities
    )
    criterion = workspace.criterion
    before = criterion.failed(dataset, rows)
    after = criterion.failed_predictions(probabilities, dataset.labels[rows], dataset.class_names)
    inside = np.zeros(len(dataset), dtype=np.bool_)
    known = record.slices_by_id()
    for slice_id in record.repairs[0].plan.slice_ids:
        if slice_id in known:
            inside[known[slice_id].members(samples.only(rows))] = True
    order = np.argsort(~inside[rows], kind="stable")
    return _Changes(
        rows=rows[order], right_now=(before & ~after)[order], broken=(~before & after)[order]
    )
