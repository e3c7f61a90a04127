"""Images that people may look at: which they are, how they are chosen and ordered, pages and lists of them.

The confirmation half and the test split are not among them, unless runs are cross-fitted: then either half is looked at in turn.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from weakspot.core.arrays import AnyArray, BoolArray, ByteArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import DataError
from weakspot.core.failures import class_problems, predicted_classes, predicted_labels
from weakspot.data.locations import shown_location
from weakspot.project.nearest import label_texts
from weakspot.project.nearest_rows import EmbeddingShards, nearest_rows
from weakspot.run.halves import used_rows
from weakspot.run.preparation import CLIP
from weakspot.store.csv_tables import csv_text
from weakspot.web.services.attributes import coded_attributes
from weakspot.web.services.samples import ShownSample, files_of, names_of, predicted_names
from weakspot.web.services.slice_editing import slice_of
from weakspot.web.services.slices import Shown, look_at
from weakspot.web.services.view import SamplePage, View
from weakspot.web.services.workspace import ANY, NONE, Workspace

PARTS = ("discovery half", "training", "pool")
BLOCK_ROWS = 100_000
UNKNOWN, RIGHT, WRONG = -1, 0, 1


@dataclass(frozen=True, kw_only=True, eq=False)
class VisibleSamples:
    """What filters read of every visible sample.

    Args:
        rows: rows of the data set, ascending [n].
        parts: places in `PARTS` [n].
        labels: class codes [n], -1 if unlabelled; all -1 in a multi-label task.
        answers: predicted class codes [n], -1 if unknown; all -1 in a multi-label task.
        results: `RIGHT`, `WRONG` or `UNKNOWN` [n]; with several labels one fails that fails in any class.
        sure: largest probability [n], NaN if unknown.
        truth: probability of the true label [n], NaN if unknown; with several labels the smallest.
    """

    rows: IntArray
    parts: ByteArray
    labels: AnyArray
    answers: AnyArray
    results: AnyArray
    sure: FloatArray
    truth: FloatArray

    def __len__(self) -> int:
        """Return how many samples people may look at."""
        return len(self.rows)

    def place_of(self, row: int) -> int | None:
        """Return the place of a row, None if nobody may look at it."""
        place = int(np.searchsorted(self.rows, row))
        return place if place < len(self.rows) and int(self.rows[place]) == row else None


def visible_samples(workspace: Workspace) -> VisibleSamples:
    return workspace.once("visible samples", lambda: _read(workspace))


def is_visible(workspace: Workspace, row: int) -> bool:
    """Return whether people may look at a sample."""
    return visible_samples(workspace).place_of(row) is not None


def _read(workspace: Workspace) -> VisibleSamples:
    dataset = workspace.samples.dataset
    rows, parts = _visible_rows(workspace)
    is_single = dataset.task is Task.SINGLE_LABEL
    nothing = np.full(len(rows), UNKNOWN, dtype=np.int32)
    sure = _largest(dataset, rows)
    answers = (
        _predicted_codes(dataset, rows, sure) if is_single and dataset.has_predictions else nothing
    )
    results, truth = _results(workspace, rows)
    if is_single:
        results = np.where(answers == UNKNOWN, UNKNOWN, results).astype(np.int8)
    return VisibleSamples(
        rows=rows,
        parts=parts,
        labels=dataset.labels[rows].astype(np.int32) if is_single else nothing,
        answers=answers,
        results=results,
        sure=sure,
        truth=truth,
    )


def _visible_rows(workspace: Workspace) -> tuple[IntArray, ByteArray]:
    looked_at, *surroundings = rows_by_part(workspace)
    if workspace.project.settings.verify.scheme == "cross-fit":
        looked_at = np.concatenate([looked_at, workspace.confirmation.rows])
    return in_order([looked_at, *surroundings])


def rows_by_part(workspace: Workspace) -> list[IntArray]:
    """Return the rows of the discovery half, of training and of the pool, without those that slices are evaluated on."""
    samples, dataset = workspace.samples, workspace.samples.dataset
    is_evaluated = np.zeros(len(dataset), dtype=np.bool_)
    is_evaluated[used_rows(samples, workspace.project.settings)] = True
    others = [dataset.rows_of(split) for split in (Split.TRAIN, Split.POOL)]
    return [workspace.discovery.rows, *(rows[~is_evaluated[rows]] for rows in others)]


def in_order(groups: Sequence[IntArray]) -> tuple[IntArray, ByteArray]:
    """Return rows of several groups, ascending [n], and the group of each [n]."""
    rows = np.concatenate(groups).astype(np.int64)
    parts = np.repeat(np.arange(len(groups), dtype=np.uint8), [len(group) for group in groups])
    order = np.argsort(rows, kind="stable")
    return rows[order], parts[order]


def _predicted_codes(dataset: Dataset, rows: IntArray, sure: FloatArray) -> AnyArray:
    found = [predicted_classes(dataset, block) for block in _blocks(rows)]
    codes = np.concatenate([np.empty(0, dtype=np.int32), *found]).astype(np.int32)
    return codes if dataset.predictions is not None else np.where(np.isfinite(sure), codes, UNKNOWN)


def _largest(dataset: Dataset, rows: IntArray) -> FloatArray:
    if dataset.probabilities is None:
        return np.full(len(rows), np.nan, dtype=np.float32)
    found = [np.asarray(dataset.probabilities[block]).max(axis=1) for block in _blocks(rows)]
    return np.concatenate([np.empty(0, dtype=np.float32), *found]).astype(np.float32)


def _results(workspace: Workspace, rows: IntArray) -> tuple[AnyArray, FloatArray]:
    dataset = workspace.samples.dataset
    results = np.full(len(rows), UNKNOWN, dtype=np.int8)
    truth: FloatArray = np.full(len(rows), np.nan, dtype=np.float32)
    if not dataset.has_predictions:
        return results, truth
    for problem in class_problems(dataset, rows, workspace.criterion):
        places = np.searchsorted(rows, problem.rows)
        results[places] = np.maximum(results[places], np.where(problem.failed, WRONG, RIGHT))
        truth[places] = np.fmin(truth[places], problem.confidence)
    return results, truth


def _blocks(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS)]


MAX_VALUES = 5
MAX_TEXT_LENGTH = 200
MAX_MARK_LENGTH = 510
"""As long as a tag can be, and what stands before it."""
MAX_KEPT = 16
CHUNK_ROWS = 16_384
MANY = 20_000
TEMPLATE = "an image of {phrase}"

Text = Annotated[str, StringConstraints(max_length=MAX_TEXT_LENGTH)]
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
    attributes: Annotated[list[Text], Field(max_length=MAX_VALUES)] = []
    values: Annotated[list[Text], Field(max_length=MAX_VALUES)] = []
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
                pattern=r"^(any|none|label|unusable|note|tag(:.+)?)$", max_length=MAX_MARK_LENGTH
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
    return workspace.recent("images", key, lambda: _choose(workspace, query), most=MAX_KEPT)


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


MAX_AT_ONCE = 200
MAX_LISTED = 1000
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
    limit: Annotated[int, Field(ge=1, le=MAX_AT_ONCE)] = 60
    around: Annotated[str, Field(max_length=200)] | None = None


class ListedImage(ShownSample):
    """An image among others.

    Args:
        sample_id: its id, which stays when rows change.
        name: file name, or what the source calls it.
        part: what it is for.
        marks: what people said of it, in a few words.
    """

    sample_id: str
    name: str
    part: str
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
    is_multi = dataset.task is Task.MULTI_LABEL and dataset.has_predictions
    nothing = "none" if is_multi else NOT_KNOWN
    places = np.searchsorted(seen.rows, rows)
    columns = zip(
        rows.tolist(),
        dataset.sample_ids(rows),
        names_of(dataset, rows),
        label_texts(dataset, rows),
        [", ".join(one) or nothing for one in predicted_names(dataset, rows)],
        seen.results[places].tolist(),
        seen.parts[places].tolist(),
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
            part=PARTS[part],
            marks=[one.words for one in book.of(sample_id)],
        )
        for row, sample_id, name, label, answer, result, part, score in columns
    ]


class Choice(View):
    """Something to choose: what to ask for, and what people read."""

    value: str
    title: str


class AttributeChoice(Choice):
    """An attribute, and its values."""

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
                    for value in one.edited.values[:MAX_LISTED]
                ],
            )
            for one in coded_attributes(workspace).attributes[:MAX_LISTED]
            if one.state == "assigned"
        ],
        slices=[
            Choice(value=one.slice_id, title=one.title)
            for one in (record.slices if record is not None else ())
            if one.slice_id not in hidden
        ][:MAX_LISTED],
        has_results=dataset.has_predictions,
        has_probabilities=dataset.probabilities is not None,
        has_words=workspace.has_text_side and CLIP in workspace.samples.spaces,
        has_embeddings=CLIP in workspace.samples.spaces,
        is_multi_label=dataset.task is Task.MULTI_LABEL,
        marks=book.counts(),
        tags=book.tags()[:MAX_LISTED],
    )


N_NEAREST = 8


class NearestImages(View):
    """What looks most like an image, most similar first.

    Args:
        tables: what row numbers belong to.
        right: those that the classifier is right on.
        wrong: those that it is wrong on.
        note: why there are none; empty if there are.
    """

    tables: str
    right: list[ListedImage]
    wrong: list[ListedImage]
    note: str


def nearest_images(workspace: Workspace, row: int) -> NearestImages:
    """Return the images that look most like a sample."""
    samples = workspace.samples
    tables, note = workspace.tables_key, "There are no embeddings to compare images with."
    if CLIP in samples.spaces:
        embedding = samples.embeddings(CLIP, np.array([row]))[0]
        if np.isfinite(embedding).all():
            return NearestImages(
                tables=tables,
                right=_nearest(workspace, embedding, _are(workspace, RIGHT, row)),
                wrong=_nearest(workspace, embedding, _are(workspace, WRONG, row)),
                note="",
            )
        note = "This image has no embedding to compare with."
    return NearestImages(tables=tables, right=[], wrong=[], note=note)


def _are(workspace: Workspace, result: int, but: int) -> BoolArray:
    """Return which rows of the data set have a result and may be looked at, without one [n]."""
    seen = visible_samples(workspace)
    found = np.zeros(len(workspace.samples.dataset), dtype=np.bool_)
    found[seen.rows[seen.results == result]] = True
    found[but] = False
    return found


def _nearest(workspace: Workspace, embedding: FloatArray, within: BoolArray) -> list[ListedImage]:
    if not within.any():
        return []
    shards = EmbeddingShards([workspace.samples.space(CLIP).embeddings])
    (found,) = nearest_rows(shards, embedding, N_NEAREST, within=within)
    return list_images(workspace, found.rows, [float(score) for score in found.scores])


AT_ONCE = 2000


def image_lines(workspace: Workspace, query: ImageQuery, *, with_paths: bool) -> Iterator[str]:
    """Return the lines of a CSV file: of the chosen images, in their order.

    Raises:
        DataError: if the query names what is not there.
    """
    chosen = choose_images(workspace, query)
    return _lines(workspace, chosen.rows, with_paths=with_paths)


def _lines(workspace: Workspace, rows: IntArray, *, with_paths: bool) -> Iterator[str]:
    header = ["file", *(["path"] if with_paths else []), "label", "prediction", "result", "id"]
    yield csv_text(header, [])
    dataset = workspace.samples.dataset
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        files = files_of(workspace, part)
        places = dataset.table.column("location").take(pa.array(part)).to_pylist()
        rows_of_part = [
            [
                file,
                *([shown_location(place) if place else ""] if with_paths else []),
                one.label,
                one.answer,
                {None: "", True: "wrong", False: "right"}[one.is_failure],
                one.sample_id,
            ]
            for file, place, one in zip(files, places, list_images(workspace, part), strict=True)
        ]
        yield csv_text([], rows_of_part)
