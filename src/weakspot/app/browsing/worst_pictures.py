"""A few pictures of each of the worst slices, from the half that people may look at."""

import numpy as np

from weakspot.app.browsing.overview import N_WORST
from weakspot.app.browsing.run_list import made_of_run
from weakspot.app.browsing.slice_samples import answers_of, looked_at
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.core.errors import WeakspotError
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice

N_PICTURES = 3


class ShownSample(View):
    """One sample.

    Args:
        row: its number.
        label: the true class.
        answer: what the classifier said.
        is_failure: whether that was a failure.
    """

    row: int
    label: str
    answer: str
    is_failure: bool


class WorstPictures(View):
    """Failures deepest inside each of the worst slices.

    Args:
        tables: what row numbers refer to.
        slices: samples by slice id; none for a slice of other samples than the project holds now.
    """

    tables: str
    slices: dict[str, list[ShownSample]]


def worst_pictures(workspace: Workspace, run_id: str) -> WorstPictures:
    """Return failures of the worst slices of a run, deepest inside first.

    Raises:
        StoreError: if there is no such run.
    """

    def choose(record: RunRecord) -> WorstPictures:
        shown = {found.slice_id: _samples(workspace, record, found) for found, _ in record.published()[:N_WORST]}
        return WorstPictures(tables=workspace.tables_key, slices=shown)

    return made_of_run(workspace, run_id, "worst pictures", choose)


def _samples(workspace: Workspace, record: RunRecord, found: FailureSlice) -> list[ShownSample]:
    try:
        looked = looked_at(workspace, record, found)
    except WeakspotError:
        return []
    rows = looked.problem.rows[looked.inside & looked.problem.failed][:N_PICTURES]
    answers = answers_of(looked.samples.dataset, rows, np.ones(len(rows), dtype=np.bool_))
    return [
        ShownSample(row=int(row), label=looked.problem.title, answer=answer, is_failure=True)
        for row, answer in zip(rows, answers, strict=True)
    ]
