"""What the points of the map can be coloured by, and what a selection of them has in common.

All of it is about the discovery half, and describes what a person chose by eye; it proves nothing. A selection becomes a slice,
and is proven, like any other hypothesis.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, class_problems, predicted_classes
from weakspot.discover.error_score import phrase_scores
from weakspot.run.preparation import CLIP
from weakspot.web.services.attributes import CodedAttribute, coded_attributes
from weakspot.web.services.classes import ScoredWords
from weakspot.web.services.images import PARTS, TEMPLATE, ListedImage, list_images
from weakspot.web.services.sample_map import (
    CHUNK_ROWS,
    map_parts,
    map_plan,
    map_rows,
    pieces_of,
)
from weakspot.web.services.slice_editing import slice_of
from weakspot.web.services.view import FLOAT32, View, pack, share_of
from weakspot.web.services.workspace import Workspace
from weakspot.words.caption_grammar import CaptionGrammarDescriber
from weakspot.words.captions import built_in_vocabulary

MAX_CODED_VALUES = 1000
NOT_KNOWN, OTHERS = "not known", "other values"


def name_unknown(codes: IntArray, names: tuple[str, ...] | list[str]) -> tuple[IntArray, list[str]]:
    """Return codes in which -1 has a name too, if it occurs."""
    if len(codes) and codes.min() < 0:
        return np.where(codes < 0, len(names), codes).astype(np.int64), [*names, NOT_KNOWN]
    return np.asarray(codes, dtype=np.int64), list(names)


def keep_commonest(codes: IntArray, names: list[str]) -> tuple[IntArray, list[str]]:
    """Return codes with the commonest values only, the rest taken together."""
    if len(names) <= MAX_CODED_VALUES:
        return codes, names
    counts = np.bincount(codes, minlength=len(names))
    kept = np.sort(np.argsort(-counts, kind="stable")[: MAX_CODED_VALUES - 1])
    place = np.full(len(names), len(kept), dtype=np.int64)
    place[kept] = np.arange(len(kept))
    return place[codes], [*(names[code] for code in kept.tolist()), OTHERS]


def plain_column(column: pa.ChunkedArray) -> pa.Array:
    """Return a column of numbers, truth values or texts; whatever else it holds is written out."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    is_plain = any(
        test(array.type)
        for test in (
            pa.types.is_floating,
            pa.types.is_integer,
            pa.types.is_boolean,
            pa.types.is_string,
        )
    )
    return (
        array
        if is_plain
        else pa.array(
            [None if value is None else str(value) for value in array.to_pylist()], pa.string()
        )
    )


UINT16 = np.dtype("<u2")
FEW_NUMBERS = 12
MAX_LABELS = 200
MAX_SLICES = 200
LOOKED_AT = 4000
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
            (LABEL + name, f"Label: {name}", "samples") for name in dataset.class_names[:MAX_LABELS]
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
        for one in record.slices[:MAX_SLICES]:
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


MAX_WORDS = 8
MAX_VALUE_SHARES = 6
MAX_EXAMPLES = 12
EMBEDDED_AT_ONCE = 64
MIN_SHARE_GAP = 0.05
FEW_SAMPLES = 20
BY_CHANCE = (
    "Fewer than {few} samples of {title!r} are selected: some words always fit so few by chance."
)


class MapClassCount(View):
    """Selected samples of one class beside the rest of it.

    Args:
        title: the class.
        inside: how many of the selected ones failed.
        rest: how many of the others failed.
    """

    title: str
    inside: Share
    rest: Share


class MapValueShare(View):
    """A value of a column that selected samples have more often than the rest of their class."""

    column: str
    value: str
    inside: Share
    rest: Share


class MapSelectionView(View):
    """What a selection holds.

    Args:
        n_selected: samples of the discovery half.
        n_surroundings: selected points that are not of the discovery half; they are not described.
        classes: the classes in it, most samples first.
        title: the class that words, values and examples are about; empty if there is none.
        words: best first.
        values: largest difference first.
        examples: the most typical of them, failures first.
        note: what is unknown, and why.
    """

    n_selected: int
    n_surroundings: int
    classes: tuple[MapClassCount, ...]
    title: str
    words: tuple[ScoredWords, ...]
    values: tuple[MapValueShare, ...]
    examples: tuple[ListedImage, ...]
    note: str


def selection(workspace: Workspace, rows: IntArray, title: str | None = None) -> MapSelectionView:
    """Return what selected samples have in common.

    Args:
        workspace: the project.
        rows: selected rows; what is not of the discovery half is counted and left aside.
        title: the class that words are looked for in; the one with most selected samples by default.
    """
    wanted = np.intersect1d(rows, map_rows(workspace))
    chosen = np.intersect1d(wanted, workspace.discovery.rows)
    inside = {
        problem.title: np.isin(problem.rows, chosen) for problem in workspace.problems.values()
    }
    counts = [
        _count(problem, inside[problem.title])
        for problem in workspace.problems.values()
        if inside[problem.title].any()
    ]
    counts.sort(key=lambda count: (-count.inside.total, count.title))
    if title is not None and title not in inside:
        raise DataError(f"There is no class {title!r}.", given=title[:100])
    about = title if title is not None else (counts[0].title if counts else "")
    words: tuple[ScoredWords, ...] = ()
    values: tuple[MapValueShare, ...] = ()
    examples: tuple[ListedImage, ...] = ()
    note = (
        "" if counts else "No selected sample is of the discovery half, so they are not described."
    )
    if about and inside[about].any():
        values = _values(workspace, workspace.problem(about), inside[about])
        examples = _examples(workspace, about, chosen)
        try:
            words = _words(workspace, about, chosen)
            note = (
                BY_CHANCE.format(few=FEW_SAMPLES, title=about)
                if inside[about].sum() < FEW_SAMPLES
                else ""
            )
        except (ModelError, DataError, NotEnoughDataError) as error:
            note = error.what
    return MapSelectionView(
        n_selected=len(chosen),
        n_surroundings=len(wanted) - len(chosen),
        classes=tuple(counts),
        title=about,
        words=words,
        values=values,
        examples=examples,
        note=note,
    )


def _count(problem: ClassProblem, inside: BoolArray) -> MapClassCount:
    return MapClassCount(
        title=problem.title,
        inside=_share(problem, problem.failed[inside]),
        rest=_share(problem, problem.failed[~inside]),
    )


def _share(problem: ClassProblem, flags: BoolArray) -> Share:
    return share_of(problem, int(flags.sum()), len(flags))


def _words(workspace: Workspace, title: str, chosen: IntArray) -> tuple[ScoredWords, ...]:
    problem, embeddings = workspace.class_embeddings(title)
    inside = np.isin(problem.rows, chosen)
    if inside.all():
        raise NotEnoughDataError(
            "The whole class is selected, so no words can tell the selection from the rest."
        )
    phrases, phrase_embeddings = _phrases(workspace, problem)
    found = phrase_scores(phrase_embeddings, embeddings, inside).score
    best = np.argsort(-np.round(found, 9), kind="stable")[:MAX_WORDS]
    return tuple(
        ScoredWords(words=phrases[place], score=float(found[place]))
        for place in best.tolist()
        if found[place] > 0
    )


def _phrases(workspace: Workspace, problem: ClassProblem) -> tuple[tuple[str, ...], FloatArray]:
    """Return the built-in words for a class and their embeddings, embedded a few at a time so that others are not kept waiting."""
    describer = CaptionGrammarDescriber(n_kinds=0)
    found = describer.words_for(problem.class_name, problem.side)
    words = tuple(dict.fromkeys((*found.adjectives, *found.places, *built_in_vocabulary().looks)))
    sentences = [TEMPLATE.format(phrase=phrase) for phrase in words]
    starts = range(0, len(sentences), EMBEDDED_AT_ONCE)

    def embed() -> FloatArray:
        parts = [workspace.embed_texts(sentences[at : at + EMBEDDED_AT_ONCE]) for at in starts]
        return np.concatenate(parts)

    return words, workspace.once(f"map words {problem.title}", embed)


def _examples(workspace: Workspace, title: str, chosen: IntArray) -> tuple[ListedImage, ...]:
    """Return selected samples nearest to their own middle, failures first; without embeddings the first ones."""
    problem = workspace.problem(title)
    rows = problem.rows[np.isin(problem.rows, chosen)]
    if CLIP in workspace.samples.spaces:
        known, embeddings = workspace.class_embeddings(title)
        places = np.flatnonzero(np.isin(known.rows, chosen))
        if len(places):
            nearness = embeddings[places] @ embeddings[places].mean(axis=0)
            rows = known.rows[places][np.argsort(-nearness, kind="stable")]
    samples = list_images(workspace, np.sort(rows[: 4 * MAX_EXAMPLES]))
    by_row = {sample.row: sample for sample in samples}
    ordered = [by_row[row] for row in rows[: 4 * MAX_EXAMPLES].tolist()]
    return tuple(sorted(ordered, key=lambda sample: not sample.is_failure)[:MAX_EXAMPLES])


def _values(
    workspace: Workspace, problem: ClassProblem, inside: BoolArray
) -> tuple[MapValueShare, ...]:
    found: list[MapValueShare] = []
    dataset = workspace.samples.dataset
    for choice in colourings(workspace).colourings:
        if not choice.by.startswith(COLUMN) or inside.all():
            continue
        column = dataset.metadata(choice.title).take(pa.array(problem.rows)).combine_chunks()
        if pa.types.is_floating(column.type):
            continue
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = np.asarray(
            coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64
        )
        for code, value in enumerate(coded.dictionary.to_pylist()):
            has_value = codes == code
            shares = tuple(_share(problem, has_value[side]) for side in (inside, ~inside))
            if shares[0].value - shares[1].value >= MIN_SHARE_GAP:
                found.append(
                    MapValueShare(
                        column=choice.title, value=str(value), inside=shares[0], rest=shares[1]
                    )
                )
    return tuple(
        sorted(found, key=lambda one: one.rest.value - one.inside.value)[:MAX_VALUE_SHARES]
    )
