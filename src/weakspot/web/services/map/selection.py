"""What a selection of points has in common: counts, how often the classifier fails in it, and words for it.

All of it is about the discovery half, and describes what a person chose by eye; it proves nothing. A selection becomes a slice,
and is proven, like any other hypothesis.
"""

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.error_score import phrase_scores
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, Side
from weakspot.describe.caption_grammar.candidate_words import WordSources
from weakspot.lexicon.vocabulary import built_in_vocabulary
from weakspot.pipeline.preparation import CLIP
from weakspot.web.services.map.colours import COLUMN, TEMPLATE, colourings
from weakspot.web.services.map.places import MapSampleView, describe_samples, map_rows
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MOST_WORDS = 8
MOST_VALUES = 6
MOST_EXAMPLES = 12
EMBEDDED_AT_ONCE = 64
LEAST_SHARE_GAP = 0.05
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


class MapWord(View):
    """Words that tell selected samples from the rest of their class: `separation` is 0 (not at all) to 1 (all and only these)."""

    words: str
    separation: float


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
    words: tuple[MapWord, ...]
    values: tuple[MapValueShare, ...]
    examples: tuple[MapSampleView, ...]
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
    words: tuple[MapWord, ...] = ()
    values: tuple[MapValueShare, ...] = ()
    examples: tuple[MapSampleView, ...] = ()
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
        inside=_share(problem.failed[inside], problem.worth),
        rest=_share(problem.failed[~inside], problem.worth),
    )


def _share(flags: BoolArray, worth: float) -> Share:
    return Share.of(int(flags.sum()), len(flags), effective=worth * len(flags))


def _words(workspace: Workspace, title: str, chosen: IntArray) -> tuple[MapWord, ...]:
    problem, embeddings = workspace.class_embeddings(title)
    inside = np.isin(problem.rows, chosen)
    if inside.all():
        raise NotEnoughDataError(
            "The whole class is selected, so no words can tell the selection from the rest."
        )
    phrases, phrase_embeddings = _phrases(workspace, problem)
    found = phrase_scores(phrase_embeddings, embeddings, inside).score
    best = np.argsort(-np.round(found, 9), kind="stable")[:MOST_WORDS]
    return tuple(
        MapWord(words=phrases[place], separation=float(found[place]))
        for place in best.tolist()
        if found[place] > 0
    )


def _phrases(workspace: Workspace, problem: ClassProblem) -> tuple[tuple[str, ...], FloatArray]:
    """Return the built-in words for a class and their embeddings, embedded a few at a time so that others are not kept waiting."""
    is_absent = problem.side is Side.ABSENT
    found = WordSources().words_for(problem.class_name, None, is_absent=is_absent)
    words = tuple(dict.fromkeys((*found.adjectives, *found.places, *built_in_vocabulary().looks)))
    sentences = [TEMPLATE.format(phrase=phrase) for phrase in words]
    starts = range(0, len(sentences), EMBEDDED_AT_ONCE)

    def embed() -> FloatArray:
        parts = [workspace.embed_texts(sentences[at : at + EMBEDDED_AT_ONCE]) for at in starts]
        return np.concatenate(parts)

    return words, workspace.once(f"map words {problem.title}", embed)


def _examples(workspace: Workspace, title: str, chosen: IntArray) -> tuple[MapSampleView, ...]:
    """Return selected samples nearest to their own middle, failures first; without embeddings the first ones."""
    problem = workspace.problem(title)
    rows = problem.rows[np.isin(problem.rows, chosen)]
    if CLIP in workspace.samples.spaces:
        known, embeddings = workspace.class_embeddings(title)
        places = np.flatnonzero(np.isin(known.rows, chosen))
        if len(places):
            nearness = embeddings[places] @ embeddings[places].mean(axis=0)
            rows = known.rows[places][np.argsort(-nearness, kind="stable")]
    samples = describe_samples(workspace, np.sort(rows[: 4 * MOST_EXAMPLES]))
    by_row = {sample.row: sample for sample in samples}
    ordered = [by_row[row] for row in rows[: 4 * MOST_EXAMPLES].tolist()]
    return tuple(sorted(ordered, key=lambda sample: not sample.is_failure)[:MOST_EXAMPLES])


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
            shares = tuple(_share(has_value[side], problem.worth) for side in (inside, ~inside))
            if shares[0].value - shares[1].value >= LEAST_SHARE_GAP:
                found.append(
                    MapValueShare(
                        column=choice.title, value=str(value), inside=shares[0], rest=shares[1]
                    )
                )
    return tuple(sorted(found, key=lambda one: one.rest.value - one.inside.value)[:MOST_VALUES])
