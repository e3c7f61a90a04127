"""Choosing and ordering images: what pages ask, and the rows that follow from it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.failures import predicted_labels
from weakspot.pipeline.preparation import CLIP
from weakspot.web.services.attributes.columns import coded_attributes
from weakspot.web.services.images.visible import (
    PARTS,
    RIGHT,
    WRONG,
    VisibleSamples,
    visible_samples,
)
from weakspot.web.services.mark_book import ANY, NONE
from weakspot.web.services.slices.changes import slice_of
from weakspot.web.services.slices.samples import Shown, look_at
from weakspot.web.services.workspace import Workspace

MOST_VALUES = 5
LONGEST_TEXT = 200
LONGEST_MARK = 510
"""As long as a tag can be, and what stands before it."""
MOST_KEPT = 16
CHUNK_ROWS = 16_384
MANY = 20_000
TEMPLATE = "an image of {phrase}"

Text = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Order = Literal["given", "sure", "unsure", "loss"]


class ImageQuery(BaseModel):
    """Which images, and in which order; everything is optional, and what is given must hold together.

    Args:
        label: true class.
        answer: predicted class.
        result: right or wrong.
        part: what samples are for.
        sure_from: least probability of the predicted class.
        sure_to: largest probability of the predicted class.
        attributes: ids of attributes.
        values: the value that each attribute must have.
        slice_id: a slice of the run.
        shown: which samples of the slice's class.
        run: which run; the newest by default.
        name: what the file's path contains.
        words: samples are compared with them; most similar first unless another order is asked for.
        like: id of a sample to compare with, in the same way.
        similar_from: least similarity to the words or the sample.
        mark: what people said of them: `any`, `none`, `label`, `unusable`, `note`, `tag`, or `tag:` and the tag.
        selection: samples that somebody picked out, by name.
        order: `given` is the order of the data, of a slice deepest inside first.
    """

    model_config = ConfigDict(frozen=True)

    label: Text | None = None
    answer: Text | None = None
    result: Literal["right", "wrong"] | None = None
    part: Literal["discovery half", "training", "pool"] | None = None
    sure_from: Share | None = None
    sure_to: Share | None = None
    attributes: Annotated[list[Text], Field(max_length=MOST_VALUES)] = []
    values: Annotated[list[Text], Field(max_length=MOST_VALUES)] = []
    slice_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")] | None = None
    shown: Shown = Shown.MEMBERS
    run: Annotated[str, StringConstraints(max_length=100)] | None = None
    name: Text | None = None
    words: Text | None = None
    like: Text | None = None
    similar_from: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] | None = None
    mark: (
        Annotated[
            str,
            StringConstraints(
                pattern=r"^(any|none|label|unusable|note|tag(:.+)?)$", max_length=LONGEST_MARK
            ),
        ]
        | None
    ) = None
    selection: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")] | None = None
    order: Order = "given"

    @property
    def is_compared(self) -> bool:
        return bool((self.words or "").strip() or self.like)


class ChosenImages:
    """Rows that were chosen, in order.

    Args:
        rows: rows of the data set [n].
        scores: similarity or depth of each [n]; None if nothing was compared.
    """

    def __init__(self, rows: IntArray, scores: FloatArray | None = None) -> None:
        self.rows = rows
        self.scores = scores

    def place_of(self, row: int) -> int | None:
        """Return the place of a row, None if it was not chosen."""
        places = np.flatnonzero(self.rows == row)
        return int(places[0]) if len(places) else None


def choose_images(workspace: Workspace, query: ImageQuery) -> ChosenImages:
    """Return what a query asks for; the last few are kept, so that paging through one costs nothing.

    Raises:
        DataError: if the query names a class, attribute, slice or sample that is not there, or compares what cannot be compared.
    """
    fields = set(ImageQuery.model_fields)
    marks = coded_attributes(workspace).mark if query.attributes else ""
    runs = workspace.project.store.runs.run_ids()[-1:] if query.slice_id else []
    said = workspace.shared.marks().version if query.mark else 0
    key = f"{query.model_dump_json(include=fields)} {marks} {runs} {said}"
    return workspace.once("chosen images", _Kept).get(key, lambda: _choose(workspace, query))


class _Kept:
    """The sets of images that were asked for last."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._sets: OrderedDict[str, ChosenImages] = OrderedDict()

    def get(self, key: str, make: Callable[[], ChosenImages]) -> ChosenImages:
        with self._guard:
            if key in self._sets:
                self._sets.move_to_end(key)
                return self._sets[key]
        made = make()
        with self._guard:
            self._sets[key] = made
            while len(self._sets) > MOST_KEPT:
                self._sets.popitem(last=False)
        return made


def _choose(workspace: Workspace, query: ImageQuery) -> ChosenImages:
    seen = visible_samples(workspace)
    kept = _filter(workspace, query, seen)
    if query.slice_id is not None:
        places, depths = _slice_places(workspace, query, seen, kept)
    else:
        places, depths = np.flatnonzero(kept), None
    scores = depths
    if query.is_compared:
        scores = _similarities(workspace, query, seen.rows[places])
        is_near = np.isfinite(scores)
        if query.similar_from is not None:
            is_near &= scores >= query.similar_from
        places, scores = places[is_near], scores[is_near]
    if scores is None and query.order != "given" and len(places) > MANY:
        return ChosenImages(seen.rows[_among_all(workspace, query.order, seen, places)])
    order = _order(query, seen, places, scores)
    if order is not None:
        places, scores = places[order], None if scores is None else scores[order]
    return ChosenImages(seen.rows[places], scores)


def _filter(workspace: Workspace, query: ImageQuery, seen: VisibleSamples) -> BoolArray:
    kept = np.ones(len(seen), dtype=np.bool_)
    if query.part is not None:
        kept &= seen.parts == PARTS.index(query.part)
    if query.result is not None:
        kept &= seen.results == (WRONG if query.result == "wrong" else RIGHT)
    if query.sure_from is not None:
        kept &= seen.sure >= query.sure_from
    if query.sure_to is not None:
        kept &= seen.sure <= query.sure_to
    if query.label is not None:
        kept &= _has_label(workspace, seen, query.label)
    if query.answer is not None:
        kept &= _has_answer(workspace, seen, query.answer)
    return _filter_by_columns(workspace, query, seen, kept)


def _filter_by_columns(
    workspace: Workspace, query: ImageQuery, seen: VisibleSamples, kept: BoolArray
) -> BoolArray:
    if len(query.attributes) != len(query.values):
        raise DataError("Every attribute needs one value.", where="values", given=query.values)
    for attribute_id, value_id in zip(query.attributes, query.values, strict=True):
        attribute, value = coded_attributes(workspace).value(attribute_id, value_id)
        kept &= attribute.known_codes()[seen.rows] == attribute.place(value.value_id)
    if query.name:
        kept &= _is_named(workspace, seen.rows, query.name)
    if query.mark:
        kept &= _is_marked(workspace, seen.rows, query.mark)
    if query.selection:
        kept &= _are_among(workspace, seen.rows, _picked_out(workspace, query.selection))
    return kept


def _is_marked(workspace: Workspace, rows: IntArray, wanted: str) -> BoolArray:
    has_mark = _are_among(
        workspace, rows, workspace.shared.marks().samples(ANY if wanted == NONE else wanted)
    )
    return ~has_mark if wanted == NONE else has_mark


def _picked_out(workspace: Workspace, selection: str) -> list[str]:
    found = workspace.shared.selection(selection)
    if found is None:
        raise DataError(
            "There is no such selection.", where="selection", given=selection, fix="Pick again."
        )
    return found


def _are_among(workspace: Workspace, rows: IntArray, sample_ids: Iterable[str]) -> BoolArray:
    ids = workspace.samples.dataset.table.column("sample_id")
    found = pc.is_in(ids, value_set=pa.array(sorted(sample_ids), pa.string()))
    return np.asarray(found.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_)[rows]


def _has_label(workspace: Workspace, seen: VisibleSamples, name: str) -> BoolArray:
    dataset = workspace.samples.dataset
    code = dataset.class_code(name)
    if dataset.task is Task.SINGLE_LABEL:
        return np.equal(seen.labels, code)
    return np.asarray(dataset.label_matrix[seen.rows, code], dtype=np.bool_)


def _has_answer(workspace: Workspace, seen: VisibleSamples, name: str) -> BoolArray:
    dataset = workspace.samples.dataset
    code = dataset.class_code(name)
    if dataset.task is Task.SINGLE_LABEL:
        return np.equal(seen.answers, code)
    if not dataset.has_predictions:
        return np.zeros(len(seen), dtype=np.bool_)
    return np.asarray(predicted_labels(dataset, seen.rows)[:, code], dtype=np.bool_)


def _is_named(workspace: Workspace, rows: IntArray, text: str) -> BoolArray:
    keys = workspace.samples.dataset.table.column("key")
    found = pc.fill_null(pc.match_substring(keys, text, ignore_case=True), False)  # noqa: FBT003 - the fill value
    return np.asarray(found.combine_chunks().to_numpy(zero_copy_only=False))[rows]


def _slice_places(
    workspace: Workspace, query: ImageQuery, seen: VisibleSamples, kept: BoolArray
) -> tuple[IntArray, FloatArray]:
    """Return the places of a slice's samples that are kept, in the order of the slice, and how deep they lie."""
    record = workspace.record(query.run)
    if record is None:
        raise DataError("The project has no run yet, so it has no slices.", given=query.slice_id)
    looked = look_at(workspace, record, slice_of(record, str(query.slice_id)))
    wanted, _ = looked.places(query.shown)
    rows = looked.problem.rows[wanted]
    places = np.minimum(np.searchsorted(seen.rows, rows), max(0, len(seen) - 1))
    is_kept = (seen.rows[places] == rows) & kept[places]
    depths = np.maximum(looked.scores[wanted], -1e30).astype(np.float32)
    return places[is_kept], depths[is_kept]


def _similarities(workspace: Workspace, query: ImageQuery, rows: IntArray) -> FloatArray:
    """Return how similar samples are to words or to a sample; NaN where there is no embedding."""
    samples = workspace.samples
    if CLIP not in samples.spaces:
        raise DataError(
            "There are no embeddings to compare images with.", fix="Run `weakspot embed`."
        )
    target = _target(workspace, query)
    parts = [
        _cosines(samples.embeddings(CLIP, rows[start : start + CHUNK_ROWS]), target)
        for start in range(0, len(rows), CHUNK_ROWS)
    ]
    return np.concatenate([np.empty(0, dtype=np.float32), *parts])


def _cosines(embeddings: FloatArray, target: FloatArray) -> FloatArray:
    """Return the cosines [n] of embeddings [n, d] with a unit vector [d], 0 where one has no length; no embedding is copied."""
    lengths = np.sqrt(np.einsum("ij,ij->i", embeddings, embeddings))
    return np.asarray((embeddings @ target) / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _target(workspace: Workspace, query: ImageQuery) -> FloatArray:
    words = " ".join((query.words or "").split())
    if words and query.like:
        raise DataError("Compare with words or with an image, not with both.", given=words)
    if words:
        told: FloatArray = workspace.embed_texts([TEMPLATE.format(phrase=words)])[0]
        return told
    row = row_of(workspace, str(query.like))
    embedding = workspace.samples.embeddings(CLIP, np.array([row]))
    if not np.isfinite(embedding).all():
        raise DataError("This image has no embedding to compare with.", given=query.like)
    unit: FloatArray = unit_rows(embedding)[0]
    return unit


def row_of(workspace: Workspace, sample_id: str) -> int:
    """Return the row of a sample that people may look at.

    Raises:
        DataError: if there is none.
    """
    row = find_row(workspace, sample_id)
    if row is None or visible_samples(workspace).place_of(row) is None:
        raise DataError(
            "There is no such image among those that people may look at.",
            given=sample_id,
            fix="Images of the confirmation half and of the test split are shown to nobody.",
        )
    return row


def find_row(workspace: Workspace, sample_id: str) -> int | None:
    """Return the row of a sample, visible or not; None if there is none."""
    column = workspace.samples.dataset.table.column("sample_id")
    row = int(pc.index(column, pa.scalar(sample_id, pa.string())).as_py())
    return row if row >= 0 else None


def _order(
    query: ImageQuery, seen: VisibleSamples, places: IntArray, scores: AnyArray | None
) -> IntArray | None:
    """Return the order of places, None if they are in it; what has no value comes last, and equals stay in the order of the data."""
    if query.order in ("sure", "unsure", "loss"):
        return np.argsort(_worst_last(query.order, seen)[places], kind="stable")
    if query.is_compared and scores is not None:
        return largest_first(scores)
    return None


def largest_first(scores: FloatArray) -> IntArray:
    """Return the order of scores [n], largest first; equals stay as they are, which numpy's own stable order takes three times as long for.

    >>> largest_first(np.array([0.5, 2.0, 0.5, -1.0], dtype=np.float32)).tolist()
    [1, 0, 2, 3]
    """
    bits = (0.0 - scores.astype(np.float32)).view(np.uint32)
    # Bits of floats are in the order of the floats once those of negative ones are turned round.
    rising = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    with_places = rising << np.uint64(32) | np.arange(len(scores), dtype=np.uint64)
    return np.asarray(np.sort(with_places) & np.uint64(0xFFFFFFFF), dtype=np.int64)


def _among_all(
    workspace: Workspace, order: Order, seen: VisibleSamples, places: IntArray
) -> IntArray:
    """Return places in an order by going through all samples in that order, which is made once: sorting a million takes long."""
    everyone = workspace.once(
        f"images by {order}", lambda: np.argsort(_worst_last(order, seen), kind="stable")
    )
    is_chosen = np.zeros(len(seen), dtype=np.bool_)
    is_chosen[places] = True
    return np.asarray(everyone[is_chosen[everyone]])


def _worst_last(order: Order, seen: VisibleSamples) -> FloatArray:
    """Return numbers that put samples into an order when they are sorted; the loss of a sample falls with the probability of its label."""
    if order == "loss":
        return seen.truth
    return -seen.sure if order == "sure" else seen.sure
