"""What a repair is compared with: matched controls, and the embedder's own text side as a classifier without training."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray, generator, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import DataError, NotEnoughDataError, UnavailableError
from weakspot.core.failures import Side, predicted_labels
from weakspot.core.heads import RepairMaterial, TrainingSelection, positions_by
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.words.captions import Caption, content_words, counted, noun_of

CLIP = "clip"
PROMPT = "prompt"
MIN_PROBABILITY = 1e-12
DIGITS = 9


@dataclass(frozen=True, kw_only=True, eq=False)
class _Match:
    """The samples of one class from one source, and the positions of the selection that they may fill.

    Args:
        source: where the samples come from.
        labels: names of their true labels, or of the likeliest where those may not be read; None where nothing is known.
        is_labelled: whether true labels may be read.
        rows: all samples that there are, by sample id.
        places: positions of the selection, those that matter most first.
        blocks: number of each of these positions; positions with the same number are alike in weight and place in group_objectives.
    """

    source: Split
    labels: tuple[str, ...] | None
    is_labelled: bool
    rows: IntArray
    places: IntArray
    blocks: IntArray

    @property
    def title(self) -> str:
        return (
            " and ".join(self.labels)
            if self.labels
            else "no label"
            if self.labels is not None
            else "unknown"
        )


Rank = Callable[[_Match], DoubleArray]
"""Scores of the rows of a match; the largest come first, NaN last."""


def random_control(selection: TrainingSelection, material: RepairMaterial) -> TrainingSelection:
    """Return the control whose places that matter are filled by lot; only the seed and the sample ids decide."""

    def by_lot(match: _Match) -> DoubleArray:
        return generator(material.seed, "twin", match.source, match.title).random(len(match.rows))

    return _control(selection, material, lambda _matches: by_lot, "by lot")


def confidence_control(selection: TrainingSelection, material: RepairMaterial) -> TrainingSelection:
    """Return the control whose places that matter are filled by the samples that the classifier is least sure of.

    Raises:
        DataError: if no probabilities are known.
    """
    dataset = material.training.dataset
    every = np.concatenate(
        [
            one.rows
            for one in (material.training, material.pool, material.synthetic)
            if one is not None
        ]
    )
    if dataset.probabilities is None or not np.isfinite(dataset.probabilities[every, 0]).any():
        raise DataError(
            "The least confident samples cannot be found without probabilities.",
            fix="Give a classifier or probability columns, or leave this baseline out.",
        )
    return _control(
        selection,
        material,
        lambda _matches: lambda match: _doubt(dataset, match),
        "by least confidence",
    )


def class_name_control(selection: TrainingSelection, material: RepairMaterial) -> TrainingSelection:
    """Return the control whose places that matter are filled by the samples nearest to the mere name of their class.

    Raises:
        NotEnoughDataError: if nobody can embed the names, or there are no embeddings to compare them with.
    """
    embed, training = material.assistants.embed_texts, material.training
    if embed is None or CLIP not in training.spaces:
        raise NotEnoughDataError(
            "The names of classes cannot be compared with images: there is no embedder that knows words, or no CLIP embeddings.",
            fix="Choose an embedder with a text side and run weakspot embed, or leave this baseline out.",
        )

    def ranked(matches: Sequence[_Match]) -> Rank:
        phrases = {match.title: _phrase(match.labels) for match in matches}
        embeddings = (
            dict(zip(phrases, unit_rows(embed(list(phrases.values()))), strict=True))
            if phrases
            else {}
        )
        return lambda match: _closeness(training, match, embeddings[match.title])

    return _control(selection, material, ranked, "by closeness to the name of the class")


MATCHED_CONTROLS: Mapping[str, Callable[[TrainingSelection, RepairMaterial], TrainingSelection]] = {
    "random": random_control,
    "confidence": confidence_control,
    "class-name": class_name_control,
}
"""All matched controls, by the name of the baseline."""


# ------------------------------------------------------------------------------------------------ matching


def _control(
    selection: TrainingSelection,
    material: RepairMaterial,
    ranking: Callable[[Sequence[_Match]], Rank],
    how: str,
) -> TrainingSelection:
    importance, groups = _importance(selection)
    matches = list(_matches(selection, material, importance, groups))
    # Where all samples are taken and all count alike, nothing can be exchanged.
    open_matches = [
        match for match in matches if len(match.rows) != len(match.places) or match.blocks.any()
    ]
    rank = ranking(open_matches)
    rows, n_changed = selection.rows.copy(), 0
    for match in open_matches:
        order = np.argsort(-np.nan_to_num(rank(match), nan=-np.inf), kind="stable")
        taken = match.rows[order[: len(match.places)]]
        # Whoever shares a block counts the same; ascending rows in ascending places make equal sets equal arrays.
        placed = taken[np.lexsort((taken, match.blocks))]
        before = dict(zip(rows[match.places].tolist(), match.blocks.tolist(), strict=True))
        now = zip(placed.tolist(), match.blocks.tolist(), strict=True)
        n_changed += sum(before.get(row) != block for row, block in now)
        rows[match.places] = placed
    counted_in = sorted({match.source.value for match in matches})
    note = f"Matched control {how}: the same weights on as many samples of each class ({', '.join(counted_in)}); "
    changed = f"{n_changed} of {len(rows)} samples are others or count otherwise."
    same = "it is the same training set, because nothing is chosen among the samples of a class."
    return replace(selection, rows=rows, note=note + (changed if n_changed else same))


def _importance(selection: TrainingSelection) -> tuple[DoubleArray, IntArray]:
    """Return how much each position can count, and its group.

    Outside group objectives that is the weight. Within one, the worst group takes the weight of all groups, shared among its
    members: so the fewer they are, the more each matters.
    """
    importance, groups = (
        selection.weights.astype(np.float64),
        np.zeros(len(selection.rows), dtype=np.int64),
    )
    number = 0
    for group_objective in selection.group_objectives:
        total = sum(float(selection.weights[group].sum()) for group in group_objective)
        for group in group_objective:
            number += 1
            own = float(selection.weights[group].sum())
            importance[group] *= total / own if own > 0 else 0.0
            groups[group] = number
    return importance, groups


def _matches(
    selection: TrainingSelection,
    material: RepairMaterial,
    importance: DoubleArray,
    groups: IntArray,
) -> Iterator[_Match]:
    dataset = material.training.dataset
    is_covered = np.zeros(len(selection.rows), dtype=np.bool_)
    place_of = np.full(len(dataset), -1, dtype=np.int64)
    place_of[selection.rows] = np.arange(len(selection.rows))
    for source, is_labelled, every in _sources(material, selection.rows):
        codes, names = _classes(dataset, every, is_labelled=is_labelled)
        for code, positions in positions_by(codes).items():
            rows = every[positions]
            places = place_of[rows]
            places = places[places >= 0]
            is_covered[places] = True
            if not len(places):
                continue
            order, blocks = _by_importance(importance[places], groups[places], places)
            by_id = rows[np.argsort(dataset.sample_ids(rows), kind="stable")]
            yield _Match(
                source=source,
                labels=names[code],
                is_labelled=is_labelled,
                rows=by_id,
                places=places[order],
                blocks=blocks,
            )
    if not is_covered.all():
        raise DataError(
            "A selection has samples that are neither labelled training samples nor in the pool nor generated.",
            given=f"{int((~is_covered).sum())} of {len(is_covered)} samples",
        )


def _by_importance(
    importance: DoubleArray, groups: IntArray, places: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the order of positions, what matters most first, and the number of the block of each in that order."""
    with np.errstate(divide="ignore"):
        magnitude = np.floor(np.log10(np.where(importance > 0, importance, 1.0)))
    rounded = np.round(importance / 10.0**magnitude, DIGITS) * 10.0**magnitude
    order = np.lexsort((places, groups, -rounded))
    is_new = (np.diff(rounded[order]) != 0) | (np.diff(groups[order]) != 0)
    return order, np.concatenate([[0], np.cumsum(is_new)])


def _sources(material: RepairMaterial, chosen: IntArray) -> Iterator[tuple[Split, bool, IntArray]]:
    """Yield the samples of each source and whether their labels may be read; who is in two counts where it comes first.

    Labels of a pool are read only if all of it is labelled. While labels are still coming they stay unread, so that a control is
    the same before they were asked for and after.
    """
    dataset = material.training.dataset
    taken: IntArray = material.labelled
    yield Split.TRAIN, True, taken
    for source, samples in ((Split.POOL, material.pool), (Split.SYNTHETIC, material.synthetic)):
        if samples is not None and len(samples):
            rows = np.setdiff1d(samples.rows, taken)
            yield (
                source,
                bool(dataset.is_labelled[rows].all()),
                _distinct(dataset, rows, taken, chosen),
            )
            taken = np.union1d(taken, rows)


def _distinct(dataset: Dataset, rows: IntArray, taken: IntArray, chosen: IntArray) -> IntArray:
    """Return rows without copies of images that are there already: a strategy would not add them, nor need a control."""
    by_id = rows[np.argsort(dataset.sample_ids(rows), kind="stable")]
    is_chosen = np.isin(by_id, chosen)
    by_id = np.concatenate([by_id[is_chosen], by_id[~is_chosen]])
    contents = dataset.content_hashes(by_id)
    seen = set(dataset.content_hashes(taken))
    kept = []
    for row, content, is_kept in zip(by_id.tolist(), contents, np.isin(by_id, chosen), strict=True):
        if is_kept or content not in seen:
            kept.append(row)
        seen.add(content)
    return np.array(sorted(kept), dtype=np.int64)


def _classes(
    dataset: Dataset, rows: IntArray, *, is_labelled: bool
) -> tuple[IntArray, list[tuple[str, ...] | None]]:
    if dataset.task is Task.SINGLE_LABEL:
        codes = dataset.labels[rows] if is_labelled else _likeliest(dataset, rows)
        names: list[tuple[str, ...] | None] = [(name,) for name in dataset.class_names]
        return np.where(codes < 0, len(names), codes), [*names, None]
    if not is_labelled and not dataset.has_predictions:
        return np.zeros(len(rows), dtype=np.int64), [None]
    matrix = dataset.label_matrix[rows] if is_labelled else predicted_labels(dataset, rows)
    sets, numbers = np.unique(matrix, axis=0, return_inverse=True)
    listed = np.array(dataset.class_names, dtype=object)
    return numbers.reshape(-1).astype(np.int64), [tuple(listed[one]) for one in sets]


def _likeliest(dataset: Dataset, rows: IntArray) -> IntArray:
    """Return the likeliest class of each row, -1 where nothing is known."""
    found = (
        np.full(len(rows), -1, dtype=np.int64)
        if dataset.predictions is None
        else dataset.predictions[rows].astype(np.int64)
    )
    if dataset.probabilities is None or not len(rows):
        return found
    probabilities = np.asarray(dataset.probabilities[rows])
    is_known = np.isfinite(probabilities).all(axis=1)
    found[is_known] = probabilities[is_known].argmax(axis=1)
    return found


# ------------------------------------------------------------------------------------------------ rankings


def _doubt(dataset: Dataset, match: _Match) -> DoubleArray:
    """Return minus the logarithm of the probability of the truth, or of the likeliest answer where the truth is not known."""
    said: AnyArray = np.asarray(dataset.probabilities)
    if dataset.task is Task.SINGLE_LABEL:
        found = (
            said[match.rows, dataset.labels[match.rows]]
            if match.is_labelled
            else said[match.rows].max(axis=1)
        )
        return np.asarray(-np.log(np.maximum(found.astype(np.float64), MIN_PROBABILITY)))
    probabilities = said[match.rows].astype(np.float64)
    each = np.maximum(probabilities, 1.0 - probabilities)
    if match.is_labelled:
        each = np.where(dataset.label_matrix[match.rows], probabilities, 1.0 - probabilities)
    return np.asarray(-np.log(np.maximum(each, MIN_PROBABILITY)).sum(axis=1))


def _closeness(samples: SampleSet, match: _Match, phrase: FloatArray) -> DoubleArray:
    """Return the cosine to the phrase; generated samples whose prompt names only the class come first of all."""
    found: AnyArray = samples.by_blocks(
        CLIP, match.rows, lambda embeddings: unit_rows(embeddings) @ phrase
    )
    if match.source is not Split.SYNTHETIC or PROMPT not in samples.dataset.metadata_names:
        return found.astype(np.float64)
    said = samples.dataset.metadata(PROMPT).take(match.rows).to_pylist()
    allowed = {word for name in match.labels or () for word in content_words(noun_of(name))}
    is_plain = np.array(
        [bool(prompt) and set(content_words(str(prompt))) <= allowed for prompt in said]
    )
    return np.where(is_plain, 2.0 + np.nan_to_num(found), found).astype(np.float64)


def _phrase(labels: tuple[str, ...] | None) -> str:
    """Return the words for labels and nothing else, for example `a photo of an apple`."""
    nouns = [noun_of(name) for name in labels or ()]
    if len(nouns) <= 1:
        return Caption(noun=nouns[0] if nouns else None).phrase
    return "a photo of " + " and ".join(counted(noun, noun) for noun in nouns)


TEMPLATES = (
    "a photo of {}",
    "a picture of {}",
    "an image that shows {}",
    "a snapshot of {}",
    "a close-up of {}",
)
ANYTHING = "a photo"
OPENING = "a photo of "
SCALE = 100.0
CHUNK_ROWS = 65_536


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroShot:
    """A classifier made of phrases: a sample belongs to the class of the phrase that is most similar to it.

    Args:
        phrases: what stands for each row of `embeddings`, for people.
        embeddings: unit vectors [m, d], each the mean over several templates.
        classes: class of each of them [m]; every class has at least one.
        anything: unit vector [d] of a photo of anything; a label of a multi-label task is there if it fits better than that.
        task: single-label or multi-label.
        scale: what similarities are multiplied by before they become probabilities, the inverse of a temperature.
    """

    phrases: tuple[str, ...]
    embeddings: FloatArray
    classes: IntArray
    anything: FloatArray
    task: Task = Task.SINGLE_LABEL
    scale: float = SCALE

    @property
    def note(self) -> str:
        """Return what it does, in a sentence."""
        n_classes = int(self.classes.max()) + 1
        groups = len(self.phrases) - n_classes
        further = f" and {groups} of slices" if groups else ""
        return f"Nothing is trained: the embedder compares images with phrases, {n_classes} of classes{further}."

    def probabilities(self, embeddings: FloatArray) -> FloatArray:
        """Return probabilities [n, c] of embeddings [n, d] of the same space; NaN where there is no embedding."""
        if (
            embeddings.ndim != self.embeddings.ndim
            or embeddings.shape[1] != self.embeddings.shape[1]
        ):
            raise DataError(
                "The samples have embeddings of another width than the phrases.",
                given=embeddings.shape,
                fix=f"Take the embeddings of the embedder that embeds the phrases, which have {self.embeddings.shape[1]} numbers.",
            )
        n_classes = int(self.classes.max()) + 1
        found = np.empty((len(embeddings), n_classes), dtype=np.float32)
        for start in range(0, len(embeddings), CHUNK_ROWS):
            found[start : start + CHUNK_ROWS] = self._of(
                unit_rows(embeddings[start : start + CHUNK_ROWS]), n_classes
            )
        return found

    def _of(self, samples: FloatArray, n_classes: int) -> DoubleArray:
        similarities = (samples @ self.embeddings.T).astype(np.float64)
        best = np.stack(
            [similarities[:, self.classes == code].max(axis=1) for code in range(n_classes)], axis=1
        )
        if self.task is Task.MULTI_LABEL:
            plain = (samples @ self.anything).astype(np.float64)
            return np.asarray(
                1.0 / (1.0 + np.exp(-self.scale * (best - plain[:, None]))), dtype=np.float64
            )
        powers = np.exp(self.scale * (best - best.max(axis=1, keepdims=True)))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)


def zero_shot(
    class_names: Sequence[str],
    embed_texts: EmbedTexts | None,
    *,
    slices: Sequence[FailureSlice] = (),
    task: Task = Task.SINGLE_LABEL,
) -> ZeroShot:
    """Return the classifier that needs no training: one phrase a class, and one more for every slice of it that has a name.

    Args:
        class_names: the classes, in the order of probability columns.
        embed_texts: phrases to unit vectors of the space that samples have embeddings in.
        slices: their best names are further phrases of their classes.
        task: single-label or multi-label.

    Raises:
        UnavailableError: if phrases cannot be embedded.
    """
    if embed_texts is None:
        raise UnavailableError(
            "The embedder has no text side, so classes cannot be told apart by their names.",
            fix="Choose an embedder with text, or learn its text side: weakspot lab align.",
        )
    things = [
        (code, counted(noun_of(name), noun_of(name))) for code, name in enumerate(class_names)
    ]
    things = list(dict.fromkeys([*things, *_groups(class_names, slices)]))
    texts = [template.format(thing) for _, thing in things for template in TEMPLATES]
    embeddings = unit_rows(embed_texts(texts)).reshape(len(things), len(TEMPLATES), -1)
    return ZeroShot(
        phrases=tuple(TEMPLATES[0].format(thing) for _, thing in things),
        embeddings=unit_rows(embeddings.mean(axis=1)),
        classes=np.array([code for code, _ in things], dtype=np.int64),
        anything=unit_rows(embed_texts([ANYTHING]))[0],
        task=task,
    )


def _groups(
    class_names: Sequence[str], slices: Sequence[FailureSlice]
) -> Iterator[tuple[int, str]]:
    """Yield class and thing of the best name of every slice; of samples that lack a label there is nothing to name."""
    for found in slices:
        name = found.name
        if name is not None and found.side is not Side.ABSENT and found.class_name in class_names:
            phrase = name.phrase.strip()
            thing = phrase[len(OPENING) :] if phrase.lower().startswith(OPENING) else phrase
            yield class_names.index(found.class_name), thing
