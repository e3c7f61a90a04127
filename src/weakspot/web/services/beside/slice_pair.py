"""Two slices beside each other: the images that both hold, those of one alone, and what sets these apart.

Images and their counts are of the samples that people may look at; figures of the slices themselves are those of their tests.
"""

from enum import StrEnum

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.evidence import Share, sides_of
from weakspot.core.failures import class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.web.services.images.page import ListedImage, list_images
from weakspot.web.services.map.colours import COLUMN, colourings
from weakspot.web.services.slices.table import SliceLine, slice_lines
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MOST_SHOWN = 24
MOST_VALUES = 10
LEAST_SHARE_GAP = 0.1


class Belonging(StrEnum):
    """Which of two slices an image belongs to."""

    BOTH = "both"
    FIRST = "first"
    SECOND = "second"


class SharedPart(View):
    """Images that belong to both slices, or to one of them alone.

    Args:
        which: to which of them.
        failed: how many of them fail.
        images: some of them, failures first.
    """

    which: Belonging
    failed: Share
    images: tuple[ListedImage, ...]


class ValueOfTwo(View):
    """A value that members of one slice have more often than those of the other."""

    column: str
    value: str
    first: Share
    second: Share


class SlicePair(View):
    """Two slices of a run.

    Args:
        run_id: which run.
        tables: what row numbers belong to.
        first: the one, as in the table of slices.
        second: the other.
        overlap: members of both as a part of the members of either; null if there are none.
        parts: images of both, of the first alone, of the second alone.
        values: what sets their members apart, largest difference first.
        first_rule: who belongs to the first.
        second_rule: who belongs to the second.
        sentence: how they lie to each other, in words.
    """

    run_id: str
    tables: str
    first: SliceLine
    second: SliceLine
    overlap: float | None
    parts: tuple[SharedPart, ...]
    values: tuple[ValueOfTwo, ...]
    first_rule: str
    second_rule: str
    sentence: str


def slice_pair(
    workspace: Workspace, record: RunRecord, first: FailureSlice, second: FailureSlice
) -> SlicePair:
    """Return two slices of a run beside each other."""
    samples = _looked_at(workspace, record)
    failed = np.zeros(len(samples.dataset), dtype=np.bool_)
    members = [_members(workspace, samples, one, failed) for one in (first, second)]
    rows = {
        Belonging.BOTH: np.flatnonzero(members[0] & members[1]),
        Belonging.FIRST: np.flatnonzero(members[0] & ~members[1]),
        Belonging.SECOND: np.flatnonzero(members[1] & ~members[0]),
    }
    n_either = sum(len(one) for one in rows.values())
    lines = {line.slice_id: line for line in slice_lines(record)}
    return SlicePair(
        run_id=record.run_id,
        tables=workspace.tables_key,
        first=lines[first.slice_id],
        second=lines[second.slice_id],
        overlap=len(rows[Belonging.BOTH]) / n_either if n_either else None,
        parts=tuple(_part(workspace, which, found, failed) for which, found in rows.items()),
        values=_values(workspace, samples, *(np.flatnonzero(one) for one in members)),
        first_rule=first.rule.sentence,
        second_rule=second.rule.sentence,
        sentence=_sentence(first, second, rows),
    )


def _looked_at(workspace: Workspace, record: RunRecord) -> SampleSet:
    rows = workspace.discovery.rows
    if workspace.project.settings.verify.scheme == "cross-fit":
        rows = np.sort(np.concatenate([rows, workspace.confirmation.rows]))
    return workspace.samples_for(record).only(rows, name=workspace.discovery.name)


def _members(
    workspace: Workspace, samples: SampleSet, found: FailureSlice, failed: BoolArray
) -> BoolArray:
    """Return which rows of the data set are members; their failures are noted."""
    sides = sides_of(
        found, samples, class_problems(samples.dataset, samples.rows, workspace.criterion)
    )
    members = np.zeros(len(samples.dataset), dtype=np.bool_)
    if sides.problem is not None:
        members[sides.problem.rows[sides.inside]] = True
        failed[sides.problem.rows[sides.problem.failed]] = True
    return members


def _part(workspace: Workspace, which: Belonging, rows: IntArray, failed: BoolArray) -> SharedPart:
    ordered = rows[np.argsort(~failed[rows], kind="stable")]
    return SharedPart(
        which=which,
        failed=Share.of(int(failed[rows].sum()), len(rows)),
        images=tuple(list_images(workspace, ordered[:MOST_SHOWN])),
    )


def _values(
    workspace: Workspace, samples: SampleSet, first: IntArray, second: IntArray
) -> tuple[ValueOfTwo, ...]:
    if not len(first) or not len(second):
        return ()
    found: list[ValueOfTwo] = []
    for choice in colourings(workspace).colourings:
        if not choice.by.startswith(COLUMN):
            continue
        column = samples.dataset.metadata(choice.title)
        if pa.types.is_floating(column.type):
            continue
        sides = [_texts(column.take(pa.array(rows))) for rows in (first, second)]
        for value in sorted({*sides[0], *sides[1]} - {None}, key=str):
            shares = [Share.of(side.count(value), len(side)) for side in sides]
            if abs(shares[0].value - shares[1].value) >= LEAST_SHARE_GAP:
                found.append(
                    ValueOfTwo(
                        column=choice.title, value=str(value), first=shares[0], second=shares[1]
                    )
                )
    return tuple(
        sorted(found, key=lambda one: -abs(one.first.value - one.second.value))[:MOST_VALUES]
    )


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [None if value is None else str(value) for value in column.to_pylist()]


def _sentence(first: FailureSlice, second: FailureSlice, rows: dict[Belonging, IntArray]) -> str:
    both, alone, other = (len(rows[which]) for which in Belonging)
    if first.class_name != second.class_name:
        return "They are of different classes, so they share no image."
    if not both:
        return "They share no image."
    if not alone or not other:
        outer = second.title if not alone else first.title
        return (
            "They hold the same images."
            if not alone and not other
            else f"One lies inside the other: its images are all in “{outer}” too."
        )
    return f"They share {both} images; {alone} are in the first alone, {other} in the second alone."
