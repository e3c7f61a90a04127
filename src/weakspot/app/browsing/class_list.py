"""All classes, those first of which something can be learnt."""

import numpy as np

from weakspot.app.browsing.background import made_beside
from weakspot.app.browsing.class_samples import class_members
from weakspot.app.browsing.suggestions import has_text_side, vocabulary_vectors
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.preparation import JOINT
from weakspot.core.error_score import phrase_scores
from weakspot.core.errors import WeakspotError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem

LEAST_ACCURACY, MOST_ACCURACY = 0.2, 0.8
WAIT_SECONDS = 0.5


class ClassRow(View):
    """One class on the discovery half.

    Args:
        title: the class, as people read it.
        n_samples: its samples.
        n_failed: failures among them.
        accuracy: share of right ones, with its interval.
        best_score: the largest Error Score of any suggested word; null if it is not known.
        is_promising: whether there are enough right and wrong samples to tell what sets them apart: accuracy from 20 to 80 %.
    """

    title: str
    n_samples: int
    n_failed: int
    accuracy: Share
    best_score: float | None
    is_promising: bool


class ClassList(View):
    """All classes, most promising first.

    Args:
        classes: promising ones by their best score, then the others in the same way.
        tables: what row numbers belong to.
        is_ranked: whether best scores are known; if not, they are being worked out: ask again.
        can_compare: whether phrases can be compared with samples at all.
    """

    classes: list[ClassRow]
    tables: str
    is_ranked: bool
    can_compare: bool


def class_list(workspace: Workspace) -> ClassList:
    """Return all classes of the discovery half; best scores are worked out beside the request."""
    can_compare = has_text_side(workspace) and JOINT in workspace.samples.spaces
    scores: dict[str, float] | None = {}
    if can_compare:
        try:
            scores = made_beside(workspace, "best scores", lambda: best_scores(workspace), patience=WAIT_SECONDS)
        except WeakspotError:
            can_compare = False
    rows = [_row(problem, (scores or {}).get(title)) for title, problem in workspace.problems.items()]
    return ClassList(
        classes=sorted(rows, key=_order), tables=workspace.tables_key, is_ranked=scores is not None, can_compare=can_compare
    )


def best_scores(workspace: Workspace) -> dict[str, float]:
    """Return for every class the largest Error Score of a word of the built-in vocabulary."""
    prompts = np.stack(list(vocabulary_vectors(workspace).values()))
    found: dict[str, float] = {}
    for title in workspace.problems:
        members = class_members(workspace, title)
        if members.vectors is not None and members.failed.any() and not members.failed.all():
            found[title] = float(phrase_scores(prompts, members.vectors, members.failed).score.max(initial=0.0))
    return found


def _row(problem: ClassProblem, best_score: float | None) -> ClassRow:
    accuracy = Share.of(problem.n_right, len(problem.rows))
    return ClassRow(
        title=problem.title,
        n_samples=len(problem.rows),
        n_failed=problem.n_failed,
        accuracy=accuracy,
        best_score=best_score,
        is_promising=LEAST_ACCURACY <= accuracy.value <= MOST_ACCURACY,
    )


def _order(row: ClassRow) -> tuple[bool, float, int, str]:
    return not row.is_promising, -(row.best_score or 0.0), -row.n_failed, row.title
