"""Pages of images that were chosen, and what there is to choose from."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Task
from weakspot.core.failures import predicted_labels
from weakspot.nearest.images import label_texts
from weakspot.pipeline.preparation import CLIP
from weakspot.web.services.attributes.columns import coded_attributes
from weakspot.web.services.images.choosing import ImageQuery, choose_images, row_of
from weakspot.web.services.images.visible import (
    PARTS,
    UNKNOWN,
    WRONG,
    visible_samples,
)
from weakspot.web.services.samples.facts import names_of
from weakspot.web.services.view import SamplePage, View
from weakspot.web.services.workspace import Workspace

MOST_AT_ONCE = 200
MOST_LISTED = 1000
NOT_KNOWN = "not known"
FARTHEST = 2**53


class ImagePageQuery(ImageQuery):
    """Which images, in which order, and which of them.

    Args:
        offset: place of the first one.
        limit: how many at most.
        around: id of a sample; the page that it is on is returned instead.
    """

    offset: Annotated[int, Field(ge=0, le=FARTHEST)] = 0
    limit: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 60
    around: Annotated[str, Field(max_length=200)] | None = None


class ListedImage(View):
    """An image among others.

    Args:
        row: its row.
        sample_id: its id, which stays when rows change.
        name: file name, or what the source calls it.
        label: true label; several are joined by commas.
        answer: what the classifier answered.
        is_failure: whether that was a failure; null if it is not known.
        score: similarity, or depth inside a slice; null if nothing was compared.
        marks: what people said of it, in a few words.
    """

    row: int
    sample_id: str
    name: str
    label: str
    answer: str
    is_failure: bool | None
    score: float | None
    marks: list[str]


class ImagePage(SamplePage):
    """Some of the images that were chosen.

    Args:
        place: where the sample is that was asked for; null if none was, or it is not among them.
        n_visible: how many images people may look at in all.
        images: in order.
    """

    place: int | None
    n_visible: int
    images: list[ListedImage]


def image_page(workspace: Workspace, query: ImagePageQuery) -> ImagePage:
    """Return some of the images that a query asks for.

    Raises:
        DataError: if the query names what is not there.
    """
    chosen = choose_images(workspace, query)
    place, offset = None, query.offset
    if query.around is not None:
        place = chosen.place_of(row_of(workspace, query.around))
        offset = 0 if place is None else place - place % query.limit
    part = slice(offset, offset + query.limit)
    scores = None if chosen.scores is None else chosen.scores[part].tolist()
    return ImagePage(
        tables=workspace.tables_key,
        total=len(chosen.rows),
        offset=offset,
        place=place,
        n_visible=len(visible_samples(workspace)),
        images=list_images(workspace, chosen.rows[part], scores),
    )


def list_images(
    workspace: Workspace, rows: IntArray, scores: Sequence[float | None] | None = None
) -> list[ListedImage]:
    """Return visible rows as pages show them."""
    seen, dataset = visible_samples(workspace), workspace.samples.dataset
    book = workspace.shared.marks()
    results = seen.results[np.searchsorted(seen.rows, rows)].tolist()
    columns = zip(
        rows.tolist(),
        dataset.sample_ids(rows),
        names_of(dataset, rows),
        label_texts(dataset, rows),
        _answers(workspace, rows),
        results,
        [None] * len(rows) if scores is None else scores,
        strict=True,
    )
    return [
        ListedImage(
            row=row,
            sample_id=sample_id,
            name=name,
            label=label,
            answer=answer,
            is_failure=None if result == UNKNOWN else result == WRONG,
            score=score,
            marks=[one.words for one in book.of(sample_id)],
        )
        for row, sample_id, name, label, answer, result, score in columns
    ]


def _answers(workspace: Workspace, rows: IntArray) -> list[str]:
    dataset, seen = workspace.samples.dataset, visible_samples(workspace)
    if not dataset.has_predictions:
        return [NOT_KNOWN] * len(rows)
    if dataset.task is Task.SINGLE_LABEL:
        codes = seen.answers[np.searchsorted(seen.rows, rows)].tolist()
        return [dataset.class_names[code] if code >= 0 else NOT_KNOWN for code in codes]
    matrix = predicted_labels(dataset, rows)
    return [
        ", ".join(dataset.class_names[code] for code in np.flatnonzero(line)) or "none"
        for line in matrix
    ]


class Choice(View):
    """Something to choose: what to ask for, and what people read."""

    value: str
    title: str


class AttributeChoice(View):
    """An attribute, and its values."""

    value: str
    title: str
    values: list[Choice]


class ImageChoices(View):
    """What there is to choose images by.

    Args:
        classes: all classes.
        parts: what samples are for; only those that there are.
        attributes: those whose values are known.
        slices: of the newest run, dismissed ones left out.
        has_results: whether the classifier's answers are known.
        has_probabilities: whether it says how sure it is.
        has_words: whether images can be compared with words.
        has_embeddings: whether images can be compared with one another.
        is_multi_label: whether an image can have several labels.
        marks: how many images have each kind of mark.
        tags: that people gave, most frequent first.
    """

    classes: list[str]
    parts: list[str]
    attributes: list[AttributeChoice]
    slices: list[Choice]
    has_results: bool
    has_probabilities: bool
    has_words: bool
    has_embeddings: bool
    is_multi_label: bool
    marks: dict[str, int]
    tags: list[str]


def image_choices(workspace: Workspace) -> ImageChoices:
    dataset, seen = workspace.samples.dataset, visible_samples(workspace)
    record, book = workspace.record(), workspace.shared.marks()
    hidden = record.dismissed() if record is not None else {}
    counts = np.bincount(seen.parts, minlength=len(PARTS))
    return ImageChoices(
        classes=list(dataset.class_names),
        parts=[part for part, count in zip(PARTS, counts, strict=True) if count],
        attributes=[
            AttributeChoice(
                value=one.attribute_id,
                title=one.edited.name,
                values=[
                    Choice(value=value.value_id, title=value.title)
                    for value in one.edited.values[:MOST_LISTED]
                ],
            )
            for one in coded_attributes(workspace).attributes[:MOST_LISTED]
            if one.state == "assigned"
        ],
        slices=[
            Choice(value=one.slice_id, title=one.title)
            for one in (record.slices if record is not None else ())
            if one.slice_id not in hidden
        ][:MOST_LISTED],
        has_results=dataset.has_predictions,
        has_probabilities=dataset.probabilities is not None,
        has_words=workspace.has_text_side and CLIP in workspace.samples.spaces,
        has_embeddings=CLIP in workspace.samples.spaces,
        is_multi_label=dataset.task is Task.MULTI_LABEL,
        marks=book.counts(),
        tags=book.tags()[:MOST_LISTED],
    )
