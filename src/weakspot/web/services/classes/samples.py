"""The samples of a class that people look at: those of the discovery half, as packed columns."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.failures import ClassProblem, predicted_classes
from weakspot.pipeline.preparation import CLIP
from weakspot.web.services.view import FLOAT32, INT32, UINT8, SamplePage, pack
from weakspot.web.services.workspace import Workspace, make_beside

MOST_SAMPLES = 200_000
RIGHT_OR_WRONG = ("right", "wrong")


class ClassSamples(SamplePage):
    """Samples of a class on the discovery half, in a fixed order: those that can be compared with phrases come first.

    Columns are base64 of little-endian numbers, one per sample from `offset` on.

    Args:
        title: the class, as people read it.
        n_comparable: how many of them have an embedding.
        answers: what the classifier can say; `answer` counts into it.
        rows: int32 row numbers.
        failed: uint8, 1 where the classifier failed.
        confidence: float32 probability that the classifier gave to the truth, NaN where unknown.
        answer: int32 place in `answers`, -1 where unknown.
    """

    title: str
    n_comparable: int
    answers: list[str]
    rows: str
    failed: str
    confidence: str
    answer: str


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassMembers:
    """The samples of a class on the discovery half, those with embeddings first.

    Args:
        problem: all of them, in that order.
        embeddings: unit vectors [n_comparable, d] of the first ones; None if there is no space to compare phrases in, so that
            phrases speak of columns and all can be compared.
    """

    problem: ClassProblem
    embeddings: FloatArray | None

    @property
    def n_comparable(self) -> int:
        return len(self.problem.rows) if self.embeddings is None else len(self.embeddings)

    @property
    def comparable(self) -> ClassProblem:
        return self.problem.only(np.arange(self.n_comparable))

    @property
    def failed(self) -> BoolArray:
        return self.problem.failed[: self.n_comparable]


def class_members(workspace: Workspace, title: str) -> ClassMembers:
    """Return the samples of a class, made once.

    Raises:
        DataError: if there is no such class.
    """
    problem = workspace.problem(title)
    return workspace.once(f"class members {title}", lambda: known_first(workspace, problem))


def class_samples(
    workspace: Workspace, title: str, *, offset: int = 0, limit: int = MOST_SAMPLES
) -> ClassSamples:
    make_beside(workspace, "ready for phrases", lambda: _get_ready(workspace), patience=0.0)
    members = class_members(workspace, title)
    problem, part = members.problem, slice(offset, offset + limit)
    dataset = workspace.samples.dataset
    names, codes = coded_answers(dataset, problem.rows[part], problem.failed[part])
    return ClassSamples(
        title=title,
        tables=workspace.tables_key,
        total=len(problem.rows),
        n_comparable=members.n_comparable,
        offset=offset,
        answers=list(names),
        rows=pack(problem.rows[part], INT32),
        failed=pack(problem.failed[part], UINT8),
        confidence=pack(problem.confidence[part], FLOAT32),
        answer=pack(codes, INT32),
    )


def coded_answers(
    dataset: Dataset, rows: IntArray, failed: BoolArray
) -> tuple[tuple[str, ...], AnyArray]:
    """Return the possible answers, and which of them each row got; in a multi-label task an answer is only right or wrong."""
    if dataset.task is Task.SINGLE_LABEL:
        return dataset.class_names, predicted_classes(dataset, rows)
    return RIGHT_OR_WRONG, failed.astype(np.int32)


def titles_of_row(workspace: Workspace, row: int) -> tuple[str, ...]:
    """Return the classes whose discovery samples a row is among; none if it is not on the discovery half."""
    rows = workspace.discovery.rows
    place = int(np.searchsorted(rows, row))
    if place >= len(rows) or int(rows[place]) != row:
        return ()
    dataset = workspace.samples.dataset
    if dataset.task is Task.SINGLE_LABEL:
        found = [dataset.class_names[int(dataset.labels[row])]]
    else:
        has = dataset.label_matrix[row]
        found = [
            name if has[code] else f"no {name}" for code, name in enumerate(dataset.class_names)
        ]
    return tuple(title for title in found if title in workspace.problems)


def _get_ready(workspace: Workspace) -> None:
    """Load what the first phrase needs while people still look at images: the text side, and compiled loops."""
    from weakspot.web.services.classes.embedding_pass import products

    one: FloatArray = np.zeros((1, 1), dtype=np.float32)
    products(one, one[0], one[0], np.zeros((3, 1), dtype=np.float32))
    if workspace.has_text_side:
        workspace.embed_texts(["an image"])


def known_first(workspace: Workspace, problem: ClassProblem) -> ClassMembers:
    """Return the samples of a class, those with embeddings first."""
    if CLIP not in workspace.samples.spaces:
        return ClassMembers(problem=problem, embeddings=None)
    known, embeddings = workspace.class_embeddings(problem.title)
    left_out = np.flatnonzero(~np.isin(problem.rows, known.rows))
    order = np.argsort(problem.rows)
    first = order[np.searchsorted(problem.rows, known.rows, sorter=order)]
    whole = problem.only(np.concatenate([first, left_out]))
    return ClassMembers(problem=whole, embeddings=embeddings)
