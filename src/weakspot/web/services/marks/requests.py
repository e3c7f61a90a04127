"""What people ask to be marked, and the samples that they mean: only those that people may look at."""

from typing import Annotated

import numpy as np
from pydantic import Field, StringConstraints

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError, StoreError
from weakspot.web.services.images.choosing import ImageQuery, choose_images
from weakspot.web.services.images.visible import visible_samples
from weakspot.web.services.mark_book import MarkKind
from weakspot.web.services.samples.facts import names_of
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MOST_MARKED = 20_000
LARGEST_ROW = 2**53
MOST_LABELS = 200
LONGEST_NOTE, LONGEST_LABEL = 500, 1000

Row = Annotated[int, Field(ge=0, le=LARGEST_ROW)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=LONGEST_NOTE)]


class MeantSamples(View):
    """Samples that somebody means: rows, or everything that a query chooses.

    Args:
        rows: row numbers.
        tables: what the row numbers refer to.
        query: which images, if no rows are given.
    """

    rows: list[Row] = Field(default=[], max_length=MOST_MARKED)
    tables: Annotated[str, Field(max_length=200)] = ""
    query: ImageQuery | None = None


class MarkRequest(MeantSamples):
    """What is said of some samples.

    Args:
        kind: what is said.
        labels: the right labels, if the given one is wrong; empty if the right one is not known.
        text: of a note or a tag.
    """

    kind: MarkKind
    labels: list[Annotated[str, Field(max_length=LONGEST_LABEL)]] = Field(
        default=[], max_length=MOST_LABELS
    )
    text: Text = ""


class MarkRemoval(MeantSamples):
    """Marks that are taken back.

    Args:
        kind: only those of a kind; all if none is named.
        text: only the note or tag with this text.
    """

    kind: MarkKind | None = None
    text: Text | None = None


def meant_rows(workspace: Workspace, meant: MeantSamples) -> IntArray:
    """Return the rows that are meant.

    Raises:
        StoreError: if the samples have changed since.
        DataError: if there are none or too many, or nobody may look at one of them.
    """
    if meant.query is not None:
        rows = choose_images(workspace, meant.query).rows
    else:
        if meant.tables != workspace.tables_key:
            raise StoreError(
                "The samples have changed since this page was loaded.", fix="Load the page again."
            )
        rows = np.unique(np.array(meant.rows, dtype=np.int64))
        seen = visible_samples(workspace)
        if not np.isin(rows, seen.rows).all():
            raise DataError(
                "Among these are samples that nobody may look at.",
                where="rows",
                fix="Images of the confirmation half and of the test split are shown to nobody.",
            )
    if not len(rows):
        raise DataError("No image is meant.", fix="Pick at least one.")
    if len(rows) > MOST_MARKED:
        raise DataError(
            f"At most {MOST_MARKED:,} images can be meant at once.",
            given=len(rows),
            fix="Choose fewer, for example by a filter.",
        )
    return rows


def check_mark(workspace: Workspace, asked: MarkRequest) -> MarkRequest:
    """Return what is said in a form in which it is kept.

    Raises:
        DataError: if it names a class that is not there, several where there is one, or says nothing.
    """
    dataset = workspace.samples.dataset
    labels = list(dict.fromkeys(asked.labels)) if asked.kind is MarkKind.LABEL else []
    for name in labels:
        dataset.class_code(name)
    if dataset.task is Task.SINGLE_LABEL and len(labels) > 1:
        raise DataError("An image has one label here.", where="labels", given=labels)
    has_text = asked.kind in (MarkKind.NOTE, MarkKind.TAG)
    if has_text and not asked.text:
        raise DataError(f"A {asked.kind.value} needs words.", where="text")
    if has_text and not asked.text.isprintable():
        raise DataError("Only words, in one line.", where="text")
    return asked.model_copy(update={"labels": labels, "text": asked.text if has_text else ""})


def clean_text(text: str) -> str:
    r"""Return words of a file as people could have typed them: in one line, and not too long.

    >>> clean_text(" two\nlines\x00 ")
    'two lines'
    """
    seen = "".join(one if one.isprintable() else " " for one in text)
    return " ".join(seen.split())[:LONGEST_NOTE]


def spoken(workspace: Workspace, rows: IntArray) -> str:
    """Return how samples are called in a sentence."""
    if len(rows) == 1:
        return names_of(workspace.samples.dataset, rows)[0]
    return f"{len(rows):,} images"
