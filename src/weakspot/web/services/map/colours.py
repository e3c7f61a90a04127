"""What the points of the map can be coloured by: whatever is known of samples, slices, and similarity to words."""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray, unit_rows
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.failures import ClassProblem, class_problems, predicted_classes
from weakspot.pipeline.preparation import CLIP
from weakspot.web.services.attributes.columns import CodedAttribute, coded_attributes
from weakspot.web.services.map.codes import NOT_KNOWN, keep_commonest, name_unknown, plain_column
from weakspot.web.services.map.layouts import CHUNK_ROWS, pieces_of
from weakspot.web.services.map.places import PARTS, map_parts, map_plan, map_rows
from weakspot.web.services.slices.changes import slice_of
from weakspot.web.services.view import FLOAT32, View, pack
from weakspot.web.services.workspace import Workspace

UINT16 = np.dtype("<u2")
FEW_NUMBERS = 12
MOST_LABELS = 200
MOST_SLICES = 200
LOOKED_AT = 4000
TEMPLATE = "an image of {phrase}"
OTHER_CLASSES = "other classes"
COLUMN, ATTRIBUTE, LABEL, SLICE, DEPTH, PHRASE = (
    "column:",
    "attribute:",
    "label:",
    "slice:",
    "depth:",
    "phrase:",
)
Group = Literal["classifier", "samples", "columns", "slices"]


class MapColouringChoice(View):
    """One thing to colour by: what to ask for, what people read, and what it belongs to."""

    by: str
    title: str
    group: Group


class MapColouringsView(View):
    """Everything to colour by; `has_words` says whether words of one's own can be compared with samples, by `phrase:...`."""

    colourings: tuple[MapColouringChoice, ...]
    has_words: bool


class MapLegendEntry(View):
    """One value, how many points have it, and whether it means right, wrong or nothing, which have colours of their own."""

    value: str
    count: int
    meaning: Literal["right", "wrong", "unknown", ""] = ""


class MapColoursView(View):
    """What every point of the map has.

    Args:
        by: what was asked for.
        title: the same as people read it.
        map_id: whose points these are, in its order.
        codes: little-endian uint16 [n], base64: the place in the legend; None if there are numbers.
        legend: the values.
        values: little-endian float32 [n], base64; not a number where nothing is known; None if there are codes.
        low: smallest number.
        high: largest number.
    """

    by: str
    title: str
    map_id: str
    codes: str | None = None
    legend: tuple[MapLegendEntry, ...] = ()
    values: str | None = None
    low: float | None = None
    high: float | None = None


Coloured = tuple[str, AnyArray, list[str]] | tuple[str, AnyArray, None]
"""Title, codes and the names of codes; or title, numbers and None."""


def colourings(workspace: Workspace) -> MapColouringsView:
    dataset = workspace.samples.dataset
    found = [("split", "What samples are for", "samples")]
    if dataset.has_predictions:
        found.insert(0, ("result", "Right or wrong", "classifier"))
    if dataset.task is Task.SINGLE_LABEL:
        found.append(("class", "Class", "samples"))
        if dataset.has_predictions:
            found.append(("predicted", "Predicted class", "classifier"))
    else:
        found += [
            (LABEL + name, f"Label: {name}", "samples")
            for name in dataset.class_names[:MOST_LABELS]
        ]
    if dataset.probabilities is not None:
        found.append(("confidence", "Probability of the true label", "classifier"))
    found += [
        (COLUMN + name, name, "columns")
        for name in dataset.metadata_names
        if _says_something(workspace, name)
    ]
    found += [
        (ATTRIBUTE + one.attribute_id, one.edited.name, "columns") for one in _assign(workspace)
    ]
    record = workspace.record()
    if record is not None:
        for one in record.slices[:MOST_SLICES]:
            found.append((SLICE + one.slice_id, one.title, "slices"))
            found.append((DEPTH + one.slice_id, f"{one.title} (how far inside)", "slices"))
    has_words = workspace.has_text_side and CLIP in workspace.samples.spaces
    choices = [
        MapColouringChoice.model_validate({"by": by, "title": title, "group": group})
        for by, title, group in found
    ]
    return MapColouringsView(colourings=tuple(choices), has_words=has_words)


def colours(workspace: Workspace, by: str) -> MapColoursView:
    """Return what every point has.

    Raises:
        DataError: if there is no such thing to colour by.
    """
    title, found, names = _colour(workspace, by)
    key = map_plan(workspace).key
    if names is None:
        known = found[np.isfinite(found)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (None, None)
        return MapColoursView(
            by=by, title=title, map_id=key, values=pack(found, FLOAT32), low=low, high=high
        )
    codes, kept = keep_commonest(found, names)
    counts = np.bincount(codes, minlength=len(kept)).tolist()
    meanings = {"right": "right", "wrong": "wrong"} if by == "result" else {}
    meanings |= {OTHER_CLASSES: "unknown"} if by.startswith(SLICE) else {}
    legend = [
        MapLegendEntry.model_validate(
            {
                "value": name,
                "count": count,
                "meaning": "unknown" if name == NOT_KNOWN else meanings.get(name, ""),
            }
        )
        for name, count in zip(kept, counts, strict=True)
    ]
    return MapColoursView(
        by=by, title=title, map_id=key, codes=pack(codes, UINT16), legend=tuple(legend)
    )


def _colour(workspace: Workspace, by: str) -> Coloured:
    plain: Mapping[str, Callable[[Workspace], Coloured]] = {
        "result": _result,
        "class": _class,
        "predicted": _predicted,
        "confidence": _confidence,
        "split": lambda workspace: (
            "What samples are for",
            map_parts(workspace).astype(np.int64),
            list(PARTS),
        ),
    }
    given: Mapping[str, Callable[[Workspace, str], Coloured]] = {
        COLUMN: _column,
        ATTRIBUTE: _attribute,
        LABEL: _label,
        SLICE: _members,
        DEPTH: _depth,
        PHRASE: _similarity,
    }
    if by in plain:
        return plain[by](workspace)
    for prefix, make in given.items():
        if by.startswith(prefix):
            return make(workspace, by[len(prefix) :])
    raise DataError(
        "There is no such thing to colour by.", given=by[:100], fix="Choose one that the map lists."
    )


def _result(workspace: Workspace) -> Coloured:
    codes = np.full(len(map_rows(workspace)), 2, dtype=np.int64)
    for problem, places in _placed_problems(workspace):
        codes[places] = np.where(codes[places] == 1, 1, problem.failed)
    return "Right or wrong", codes, ["right", "wrong", NOT_KNOWN]


def _class(workspace: Workspace) -> Coloured:
    dataset = workspace.samples.dataset
    labels = dataset.labels[map_rows(workspace)]
    return "Class", *name_unknown(labels, dataset.class_names)


def _predicted(workspace: Workspace) -> Coloured:
    dataset = workspace.samples.dataset
    if dataset.task is not Task.SINGLE_LABEL or not dataset.has_predictions:
        raise DataError("There is no predicted class.", given=dataset.task.value)
    return "Predicted class", *name_unknown(
        predicted_classes(dataset, map_rows(workspace)), dataset.class_names
    )


def _confidence(workspace: Workspace) -> Coloured:
    found = np.full(len(map_rows(workspace)), np.nan, dtype=np.float32)
    for problem, places in _placed_problems(workspace):
        found[places] = np.fmin(found[places], problem.confidence)
    return "Probability of the true label", found, None


def _label(workspace: Workspace, name: str) -> Coloured:
    dataset, rows = workspace.samples.dataset, map_rows(workspace)
    has_label = dataset.label_matrix[rows, dataset.class_code(name)].astype(np.int64)
    return (
        f"Label: {name}",
        np.where(dataset.is_labelled[rows], has_label, 2),
        ["without", "with", NOT_KNOWN],
    )


def _column(workspace: Workspace, name: str) -> Coloured:
    column = plain_column(
        workspace.samples.dataset.metadata(name).take(pa.array(map_rows(workspace)))
    )
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        numbers = np.asarray(
            pc.cast(column, pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False),
            dtype=np.float64,
        )
        if len(np.unique(numbers[np.isfinite(numbers)])) > FEW_NUMBERS:
            return name, numbers.astype(np.float32), None
    coded = column.dictionary_encode()
    codes = np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return name, *name_unknown(codes, [str(value) for value in coded.dictionary.to_pylist()])


def _attribute(workspace: Workspace, attribute_id: str) -> Coloured:
    found = coded_attributes(workspace).attribute(attribute_id)
    codes = found.known_codes()[map_rows(workspace)].astype(np.int64) - 1
    return found.edited.name, *name_unknown(codes, [value.title for value in found.edited.values])


def _assign(workspace: Workspace) -> list[CodedAttribute]:
    """Return the attributes that were assigned from images; those that were columns from the start are listed as columns."""
    listed = coded_attributes(workspace).attributes
    return [one for one in listed if one.state == "assigned" and one.record.source != "metadata"]


def _members(workspace: Workspace, slice_id: str) -> Coloured:
    title, scores, is_of_class, is_member = _slice_scores(workspace, slice_id)
    del scores
    return (
        title,
        np.where(is_of_class, is_member.astype(np.int64), 2),
        ["rest of the class", "in the slice", OTHER_CLASSES],
    )


def _depth(workspace: Workspace, slice_id: str) -> Coloured:
    title, scores, is_of_class, _ = _slice_scores(workspace, slice_id)
    return (
        f"{title} (how far inside)",
        np.where(is_of_class, scores, np.nan).astype(np.float32),
        None,
    )


def _slice_scores(
    workspace: Workspace, slice_id: str
) -> tuple[str, DoubleArray, AnyArray, AnyArray]:
    record = workspace.record()
    if record is None:
        raise DataError("The project has no run yet, so it has no slices.", given=slice_id[:100])
    found, samples, rows = (
        slice_of(record, slice_id),
        workspace.samples_for(record),
        map_rows(workspace),
    )
    is_of_class = np.isin(rows, found.class_rows(samples.only(rows)))
    scores, is_member = np.full(len(rows), np.nan), np.zeros(len(rows), dtype=np.bool_)
    own = np.flatnonzero(is_of_class)
    for start in range(0, len(own), CHUNK_ROWS):
        places = own[start : start + CHUNK_ROWS]
        scores[places] = found.rule.scores(samples, rows[places])
        is_member[places] = found.rule.members(samples, rows[places])
    return found.title, scores, is_of_class, is_member


def _similarity(workspace: Workspace, phrase: str) -> Coloured:
    words = " ".join(phrase.split())
    if not words:
        raise DataError("No words were given to compare samples with.")
    target = workspace.embed_texts([TEMPLATE.format(phrase=words)])[0]
    if map_plan(workspace).space != CLIP:
        raise DataError(
            "Words can be compared with embeddings of the joint space only.", fix="weakspot embed"
        )
    pieces = [
        unit_rows(piece) @ target
        for piece in pieces_of(workspace.samples, CLIP, map_rows(workspace))
    ]
    return (
        f"Similarity to “{words}”",
        np.concatenate([np.zeros(0, dtype=np.float32), *pieces]),
        None,
    )


def _placed_problems(workspace: Workspace) -> list[tuple[ClassProblem, IntArray]]:
    rows = map_rows(workspace)
    problems = class_problems(workspace.samples.dataset, rows, workspace.criterion)
    return [(problem, np.searchsorted(rows, problem.rows)) for problem in problems]


def _says_something(workspace: Workspace, name: str) -> bool:
    """Return whether a column groups samples, or orders them; names of files, for example, do neither."""
    rows = map_rows(workspace)[:LOOKED_AT]
    column = plain_column(workspace.samples.dataset.metadata(name).take(pa.array(rows)))
    n_known = int(len(column) - column.null_count)
    n_different = len(column.drop_null().unique())
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return n_different > 1
    return 1 < n_different <= max(FEW_NUMBERS, n_known // 2)
