"""Retraining with further samples, chosen from a pool: at random, labelled, unsure, far from everything, or deep inside the slices.

Strategies see the pool without its labels, in an order that does not depend on the table.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import ClassVar, Literal

import numpy as np

from weakspot.core.arrays import (
    BoolArray,
    DoubleArray,
    FloatArray,
    IntArray,
    generator,
    unit_rows,
)
from weakspot.core.bounds import PositiveFraction
from weakspot.core.dataset import NO_LABEL, Dataset, Task
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import Side, predicted_labels
from weakspot.core.heads import RepairMaterial, TrainingSelection, balanced_weights, class_parts
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.repair.strategies.strategy import Strategy
from weakspot.words.captions import plain_caption

CLIP = "clip"
N_LIKELIEST = 2
GUESS_CHUNK_ROWS = 8_192
MAX_ASKED = 10_000
LIKELY, NEAREST = 1, 2


def _is_likely(samples: SampleSet, rows: IntArray, code: int) -> BoolArray:
    dataset = samples.dataset
    probabilities = np.nan_to_num(np.asarray(dataset.probabilities)[rows], nan=-1.0)
    own = probabilities[:, code : code + 1]
    n_ahead = (probabilities > own).sum(axis=1) + (probabilities[:, :code] == own).sum(axis=1)
    likely = (n_ahead < N_LIKELIEST) & (own[:, 0] >= 0)
    if dataset.task is Task.MULTI_LABEL:
        likely |= predicted_labels(dataset, rows)[:, code]
    return np.asarray(likely, dtype=np.bool_)


def _is_nearest(embeddings: FloatArray, names: FloatArray, code: int) -> BoolArray:
    is_known: BoolArray = np.asarray(np.isfinite(embeddings).all(axis=1), dtype=np.bool_)
    similarities = unit_rows(np.where(is_known[:, None], embeddings, 0.0)) @ names.T
    return np.asarray(is_known & (similarities.argmax(axis=1) == code), dtype=np.bool_)


Within = Literal["pool", "slices"]


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenPool:
    """Pool samples that may be chosen, and judged without their labels.

    The class of samples is judged by two witnesses, and the witnesses by the labelled training samples. One is the classifier: the
    class is among the two that it finds most probable (or, multi-label, it predicts the label). Members of a slice fail, so the
    most probable class alone would leave out the very samples that are looked for. The other is the joint space: the class name is
    the nearest of all class names. What both say, or one alone, is believed in the order in which it is right among training
    samples, and not at all if it is right no more often than chance.

    Args:
        samples: the data set without the labels of pool samples, so that no choice can depend on them.
        rows: the rows that may be chosen, ordered by sample id; of the same image only one, and none that is trained on already.
        material: what the strategy was given.
        strategy: its registered name, for messages.
    """

    samples: SampleSet
    rows: IntArray
    material: RepairMaterial
    strategy: str

    @property
    def budget(self) -> int:
        """Return how many may be chosen."""
        return self.material.budget

    def members(self, found: FailureSlice) -> IntArray:
        """Return the rows inside a slice, judged without labels: the rule holds, and the class may be the slice's."""
        inside = self.rows[found.rule.members(self.samples, self.rows)]
        return inside[self.possible(found, inside, self.budget)]

    def candidates(self, slices: Sequence[FailureSlice], within: Within) -> IntArray:
        """Return the whole pool, or only what is inside one of the slices, ordered by sample id."""
        if within == "pool":
            return self.rows
        listed = [self.members(found) for found in slices]
        inside = self.rows[np.isin(self.rows, np.concatenate(listed))] if listed else self.rows[:0]
        if slices and not len(inside):
            raise nothing_inside(self.strategy, len(self.rows))
        return inside

    def possible(self, found: FailureSlice, rows: IntArray, enough: int) -> BoolArray:
        """Return which rows may be of the class of a slice [len(rows)]; the most believable, until there are enough.

        Every row is where no witness can be asked or believed, and for slices of samples that lack a label: most samples lack it.
        """
        code = self.samples.dataset.class_code(found.class_name)
        believable = [] if found.side is Side.ABSENT else self._believable(code)
        if not believable:
            return np.ones(len(rows), dtype=np.bool_)
        testimonies = self._testimony(rows, code)
        believed: BoolArray = np.zeros(len(rows), dtype=np.bool_)
        for testimony in believable:
            if believed.sum() < enough:
                believed |= testimonies == testimony
        return believed

    def _believable(self, code: int) -> list[int]:
        """Return what speaks for the class, most often right first; what was never heard among training samples comes last."""
        known = (LIKELY if self.samples.dataset.probabilities is not None else 0) | (
            NEAREST if self._names is not None else 0
        )
        kinds = [kind for kind in (LIKELY | NEAREST, NEAREST, LIKELY) if kind & known == kind]
        rows = self._training[:: max(1, -(-len(self._training) // MAX_ASKED))]
        truth = self._truth(rows, code)
        if not truth.any():
            return kinds
        testimonies = self._testimony(rows, code)
        chance = float(truth.mean())
        rates = {
            kind: (float(truth[testimonies == kind].sum()) + chance)
            / (float((testimonies == kind).sum()) + 1.0)
            for kind in kinds
        }
        believable = sorted(
            (kind for kind in kinds if rates[kind] > chance), key=lambda kind: -rates[kind]
        )
        return (
            [*believable, *(kind for kind in kinds if kind not in testimonies)]
            if believable
            else []
        )

    def _truth(self, rows: IntArray, code: int) -> BoolArray:
        dataset = self.samples.dataset
        is_single = dataset.task is Task.SINGLE_LABEL
        return np.asarray(
            dataset.labels[rows] == code if is_single else dataset.label_matrix[rows, code],
            dtype=np.bool_,
        )

    def _testimony(self, rows: IntArray, code: int) -> IntArray:
        testimonies = np.zeros(len(rows), dtype=np.int64)
        for start in range(0, len(rows), GUESS_CHUNK_ROWS):
            part = slice(start, start + GUESS_CHUNK_ROWS)
            if self.samples.dataset.probabilities is not None:
                testimonies[part] += LIKELY * _is_likely(self.samples, rows[part], code)
            if self._names is not None:
                testimonies[part] += NEAREST * _is_nearest(
                    self.samples.embeddings(CLIP, rows[part]), self._names, code
                )
        return testimonies

    @cached_property
    def _names(self) -> FloatArray | None:
        """Return a unit vector for every class name [c, d], None if names cannot be compared with images."""
        space, embed_texts = self.samples.spaces.get(CLIP), self.material.assistants.embed_texts
        if embed_texts is None or space is None or not space.has_text:
            return None
        return unit_rows(
            embed_texts([plain_caption(name).phrase for name in self.samples.dataset.class_names])
        )

    @cached_property
    def _training(self) -> IntArray:
        """Return labelled training rows, in an order that does not depend on the table."""
        return by_id(self.samples, self.material.labelled)


def open_pool(material: RepairMaterial, strategy: str) -> OpenPool:
    """Return the pool of the material.

    Raises:
        NotEnoughDataError: if there is no pool, or nothing may be taken from it.
    """
    if material.pool is None or not len(material.pool):
        raise NotEnoughDataError(
            f"The strategy {strategy} needs a pool.",
            where="[repair]",
            fix="Give samples with the split `pool`; labels can follow.",
        )
    if material.budget < 1:
        raise NotEnoughDataError(
            f"The strategy {strategy} needs a budget: how many pool samples may be added.",
            where="[repair]",
            given=material.budget,
            fix="Set [repair] budget to a positive number.",
        )
    rows = _new_images(material.pool, material.labelled)
    dataset = material.pool.dataset
    hidden = (
        np.full(len(material.pool), NO_LABEL)
        if dataset.task is Task.SINGLE_LABEL
        else [None] * len(material.pool)
    )
    samples = replace(material.pool, dataset=dataset.with_labels(material.pool.rows, hidden))
    return OpenPool(samples=samples, rows=rows, material=material, strategy=strategy)


def by_id(samples: SampleSet, rows: IntArray) -> IntArray:
    """Return rows ordered by sample id, so that nothing depends on the order of the table, not even the last digit of a sum."""
    return rows[
        np.argsort(np.array(samples.dataset.sample_ids(rows), dtype=np.str_), kind="stable")
    ]


def nothing_inside(strategy: str, n_pool: int) -> NotEnoughDataError:
    """Return the error for a pool without any sample of the slices."""
    return NotEnoughDataError(
        f"None of the {n_pool} pool samples is inside a slice.",
        where=strategy,
        fix="Give a larger pool, or choose a strategy over the whole pool.",
    )


def _new_images(pool: SampleSet, training: IntArray) -> IntArray:
    """Return pool rows by id without images that are trained on already, and the first of those that hold the same image."""
    rows = by_id(pool, pool.rows)
    dataset = pool.dataset
    seen = set(dataset.content_hashes(training))
    is_new: BoolArray = np.zeros(len(rows), dtype=np.bool_)
    for place, content in enumerate(dataset.content_hashes(rows)):
        is_new[place] = content not in seen
        seen.add(content)
    return rows[is_new]


Weighting = Literal["uniform", "balanced"]


def with_added(
    material: RepairMaterial,
    chosen: IntArray,
    how: str,
    *,
    slices: Sequence[FailureSlice] = (),
    weighting: Weighting = "uniform",
) -> TrainingSelection:
    """Return all labelled training rows and the chosen pool rows, ascending.

    Args:
        material: what was chosen from.
        chosen: pool rows, with or without a label.
        how: the words that follow "chosen" in the note.
        slices: for balanced weights.
        weighting: `uniform`, or `balanced`: the members of a slice, old and new, weigh as much as the rest of their class.
    """
    rows = np.union1d(material.labelled, chosen).astype(np.int64)
    n_open = int((~material.training.dataset.is_labelled[chosen]).sum())
    note = [
        f"Pool samples added to the {len(material.labelled)} training samples: {len(chosen)}, chosen {how}."
    ]
    if weighting == "balanced":
        note.append("Slice members, old and new, weigh as much as the rest of their class.")
    if n_open:
        note.append(f"Of these wait for a label: {n_open}.")
    weights = np.ones(len(rows))
    if weighting == "balanced":
        # Rows without a label are in no class and count once.
        cut = class_parts(slices, material.training.only(rows))
        weights = balanced_weights(
            weights, [[np.searchsorted(rows, group) for group in part.groups] for part in cut]
        )
    return TrainingSelection(rows=rows, weights=weights, note=" ".join(note))


PROBABILITY_CHUNK_ROWS = 8_192
SMALLEST = 1e-300

Doubt = Callable[[DoubleArray, FloatArray | None], DoubleArray]
"""Probabilities [n, c] and, for multi-label tasks, thresholds [c] to one number a row; larger is less sure."""


def least_sure(dataset: Dataset, rows: IntArray, doubt: Doubt, strategy: str) -> IntArray:
    """Return rows with known probabilities, least sure first; ties keep the order given.

    Raises:
        NotEnoughDataError: if there are no probabilities.
    """
    if dataset.probabilities is None:
        raise NotEnoughDataError(
            f"The strategy {strategy} needs the classifier's probabilities.",
            where="[repair]",
            fix="Give a classifier, or probability columns in the manifest.",
        )
    thresholds = None
    if dataset.task is Task.MULTI_LABEL:
        thresholds = (
            dataset.thresholds
            if dataset.thresholds is not None
            else np.full(dataset.n_classes, 0.5, dtype=np.float32)
        )
    doubts = np.empty(len(rows))
    for start in range(0, len(rows), PROBABILITY_CHUNK_ROWS):
        part = slice(start, start + PROBABILITY_CHUNK_ROWS)
        doubts[part] = doubt(
            np.asarray(dataset.probabilities[rows[part]], dtype=np.float64), thresholds
        )
    order = np.argsort(-doubts, kind="stable")
    return rows[order[np.isfinite(doubts[order])]]


def low_confidence(probabilities: DoubleArray, thresholds: FloatArray | None) -> DoubleArray:
    """Return minus the probability of the likeliest answer: one class, or the likeliest set of labels (its logarithm)."""
    if thresholds is None:
        return np.asarray(-probabilities.max(axis=1))
    return np.asarray(
        -np.log(np.maximum(np.maximum(probabilities, 1.0 - probabilities), SMALLEST)).sum(axis=1)
    )


def small_margin(probabilities: DoubleArray, thresholds: FloatArray | None) -> DoubleArray:
    """Return minus the lead of the likeliest class over the second, or the least distance of a label from its threshold."""
    if thresholds is not None:
        return np.asarray(-np.abs(probabilities - thresholds).min(axis=1))
    if probabilities.shape[1] == 1:
        return np.asarray(-probabilities[:, 0])
    leaders = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.asarray(leaders[:, 0] - leaders[:, 1])


def high_entropy(probabilities: DoubleArray, thresholds: FloatArray | None) -> DoubleArray:
    """Return the entropy of the answer: over classes, or summed over labels."""
    answers = [probabilities] if thresholds is None else [probabilities, 1.0 - probabilities]
    surprise = [-one * np.log(np.maximum(one, SMALLEST)) for one in answers]
    return np.asarray(np.sum(surprise, axis=(0, 2)))


DOUBTS: Mapping[str, Doubt] = {
    "pool-margin": small_margin,
    "pool-entropy": high_entropy,
    "pool-confidence": low_confidence,
}


@dataclass(frozen=True, kw_only=True)
class PoolStrategy(Strategy):
    """Adds the first candidates of an order, as many as the budget allows.

    Args:
        within: the whole `pool`, or only what is inside the `slices`.
    """

    within: Within = "pool"

    strategy: ClassVar[str]
    how: ClassVar[str]
    """The words that follow "chosen" in the note."""

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and the first pool rows of the order."""
        pool = open_pool(material, self.strategy)
        chosen = self.in_order(pool, pool.candidates(slices, self.within))[: pool.budget]
        place = "inside the slices" if self.within == "slices" else "in the whole pool"
        return with_added(material, chosen, f"{self.how} {place}")

    def in_order(self, pool: OpenPool, candidates: IntArray) -> IntArray:
        """Return candidates, those to add first at the front: those of which the classifier is least sure."""
        return least_sure(pool.samples.dataset, candidates, DOUBTS[self.strategy], self.strategy)


@dataclass(frozen=True, kw_only=True)
class RandomRepairer(PoolStrategy):
    """Adds samples at random; with the same seed a larger budget keeps what a smaller one chose.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> RandomRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen at random in the whole pool.'
    """

    is_baseline = True
    strategy, how = "pool-random", "at random"

    def in_order(self, pool: OpenPool, candidates: IntArray) -> IntArray:
        return generator(pool.material.seed, "pool-random").permutation(candidates)


POOL_LABELLED = "pool-labelled"


@dataclass(frozen=True, kw_only=True)
class LabelledRepairer(Strategy):
    """Adds every pool sample that has a label, whoever chose it; of more than the budget, some at random.

    This is what `next/to_label.csv` asks for: people label some of the list, and the last layer is retrained with all of them, every
    sample counting once.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> LabelledRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen because they have a label.'
    """

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and labelled pool rows; slices have no influence.

        Raises:
            NotEnoughDataError: if no pool sample has a label.
        """
        del slices
        pool = open_pool(material, POOL_LABELLED)
        labelled = pool.rows[material.training.dataset.is_labelled[pool.rows]]
        if not len(labelled):
            raise NotEnoughDataError(
                "No pool sample has a label yet.",
                where=POOL_LABELLED,
                fix="Fill in labels in next/to_label.csv, and give it with --labels.",
            )
        chosen = generator(material.seed, POOL_LABELLED).permutation(labelled)[: pool.budget]
        return with_added(material, chosen, "because they have a label")


@dataclass(frozen=True, kw_only=True)
class MarginRepairer(PoolStrategy):
    """Adds the samples on which the two likeliest classes are closest (multi-label: a label is closest to its threshold).

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> MarginRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen by the smallest margin in the whole pool.'
    """

    strategy, how = "pool-margin", "by the smallest margin"


@dataclass(frozen=True, kw_only=True)
class EntropyRepairer(PoolStrategy):
    """Adds the samples whose probabilities have the largest entropy (multi-label: summed over labels).

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> EntropyRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen by the largest entropy in the whole pool.'
    """

    strategy, how = "pool-entropy", "by the largest entropy"


@dataclass(frozen=True, kw_only=True)
class ConfidenceRepairer(PoolStrategy):
    """Adds the samples whose likeliest answer has the lowest probability; what the true answer gets is never looked at.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> ConfidenceRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen by the lowest confidence in the whole pool.'
    """

    strategy, how = "pool-confidence", "by the lowest confidence"


POOL_BUDGETED = "pool-budgeted"


@dataclass(frozen=True, kw_only=True)
class BudgetedRepairer(Strategy):
    """Takes slices by failure rate until they hold most failures, and shares the budget in proportion to their failures.

    After Chen, Li and Xu, *HiBug: On Human-Interpretable Model Debug* (2023). Labels of pool samples are never
    looked at: a sample counts for the first slice, by failure rate, whose rule holds and whose class it may be of.

    Args:
        beta: share of all failures at which no further slice is taken.
        weighting: `uniform`, or `balanced`: the members of a slice, old and new, weigh as much as the rest of their class.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> BudgetedRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen in 2 of 2 slices by their share of the failures, least sure first.'
    """

    beta: PositiveFraction = 0.9
    weighting: Weighting = "uniform"

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and pool rows of the worst slices; the seed has no influence."""
        pool = open_pool(material, POOL_BUDGETED)
        if not slices:
            return with_added(material, pool.rows[:0], "for no slice")
        worst = _worst(slices, material, self.beta)
        ordered = _claimed([found for found, _ in worst], pool)
        failures = np.array([evidence.failures_inside for _, evidence in worst], dtype=np.float64)
        counts = apportioned(pool.budget, failures, np.array([len(rows) for rows in ordered]))
        chosen = np.concatenate([rows[:count] for rows, count in zip(ordered, counts, strict=True)])
        if not len(chosen):
            raise nothing_inside(POOL_BUDGETED, len(pool.rows))
        n_unknown = sum(found.slice_id not in material.evidence for found in slices)
        unknown = f"; left out for want of evidence: {n_unknown}" if n_unknown else ""
        how = f"in {len(worst)} of {len(slices)} slices by their share of the failures, least sure first{unknown}"
        return with_added(material, chosen, how, slices=slices, weighting=self.weighting)


def _worst(
    slices: Sequence[FailureSlice], material: RepairMaterial, beta: float
) -> list[tuple[FailureSlice, Evidence]]:
    known = [
        (found, material.evidence[found.slice_id])
        for found in slices
        if found.slice_id in material.evidence
    ]
    known = [(found, evidence) for found, evidence in known if evidence.failures_inside]
    if not known:
        raise NotEnoughDataError(
            "It is not known how often the slices fail.",
            where=POOL_BUDGETED,
            fix="Verify them first, or choose another strategy.",
        )
    known.sort(key=lambda pair: (-pair[1].rate_inside, -pair[1].failures_inside, pair[0].slice_id))
    counts = np.cumsum([evidence.failures_inside for _, evidence in known])
    wanted = beta * (material.n_failures or counts[-1])
    return known[: int(np.searchsorted(counts, wanted)) + 1]


def _claimed(slices: Sequence[FailureSlice], pool: OpenPool) -> list[IntArray]:
    """Return for every slice the rows that no earlier one has, least sure first."""
    rest = least_sure(pool.samples.dataset, pool.rows, low_confidence, POOL_BUDGETED)
    found_rows: list[IntArray] = []
    for found in slices:
        is_inside = np.isin(rest, pool.members(found))
        found_rows.append(rest[is_inside])
        rest = rest[~is_inside]
    return found_rows


def apportioned(budget: int, shares: DoubleArray, most: IntArray) -> IntArray:
    """Return a budget divided in proportion to shares, by largest remainder; what one cannot use is divided among the others.

    >>> apportioned(10, np.array([6.0, 3.0, 1.0]), np.array([99, 99, 99])).tolist()
    [6, 3, 1]
    >>> apportioned(10, np.array([6.0, 3.0, 1.0]), np.array([2, 99, 99])).tolist()
    [2, 6, 2]
    """
    given = np.zeros(len(shares), dtype=np.int64)
    while (left := budget - int(given.sum())) > 0 and (
        is_open := (given < most) & (shares > 0)
    ).any():
        exact = left * np.where(is_open, shares, 0.0) / shares[is_open].sum()
        whole = np.floor(exact).astype(np.int64)
        remainders = np.where(is_open, exact - whole, -1.0)
        whole[np.argsort(-remainders, kind="stable")[: left - int(whole.sum())]] += 1
        given = np.minimum(given + whole, most)
    return given


SPACES = ("features", "clip")
DISTANCE_CHUNK_ROWS = 2_048
BLOCK_ROWS = 256


@dataclass(frozen=True, kw_only=True)
class CoresetRepairer(PoolStrategy):
    """Adds, one by one, the sample farthest from all training samples and all samples added before.

    After Sener and Savarese, *Active Learning for Convolutional Neural Networks: A Core-Set Approach* (2018), without their
    robust refinement. Distances are measured in the classifier's own features, else in the joint space.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> CoresetRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen as the farthest from what is trained on in the whole pool.'
    """

    strategy, how = "pool-coreset", "as the farthest from what is trained on"

    def in_order(self, pool: OpenPool, candidates: IntArray) -> IntArray:
        training = pool.material.training
        space = next((name for name in SPACES if name in pool.samples.spaces), None)
        if space is None:
            raise NotEnoughDataError(
                "The strategy pool-coreset needs embeddings.",
                where="[repair]",
                fix="Run weakspot embed.",
            )
        rows, embeddings = _known(pool.samples, candidates, space)
        _, centres = _known(training, by_id(training, pool.material.labelled), space)
        return rows[farthest_first(embeddings, centres, pool.budget)]


def _known(samples: SampleSet, rows: IntArray, space: str) -> tuple[IntArray, FloatArray]:
    embeddings = samples.embeddings(space, rows)
    is_known = np.isfinite(embeddings).all(axis=1)
    return rows[is_known], embeddings[is_known]


def farthest_first(embeddings: FloatArray, centres: FloatArray, count: int) -> IntArray:
    """Return positions in embeddings [n, d], each the farthest from the centres [m, d] and from those before it.

    Distances only shrink while centres are added, so an old distance is an upper bound. Blocks of samples are brought up to date
    only while their bound is the largest; the answer is that of the plain algorithm. Without centres the mean is the first.
    """
    middle = (
        (centres if len(centres) else embeddings).mean(axis=0, dtype=np.float64).astype(np.float32)
        if len(embeddings)
        else 0.0
    )
    search = _Search(
        embeddings - middle,
        centres - middle if len(centres) else np.zeros((1, embeddings.shape[1]), dtype=np.float32),
    )
    return np.array([search.next() for _ in range(min(count, len(embeddings)))], dtype=np.int64)


class _Search:
    """Samples in blocks of falling distance, with the number of added centres that each block has heard of."""

    def __init__(self, embeddings: FloatArray, centres: FloatArray) -> None:
        first = np.full(len(embeddings), np.inf, dtype=np.float32)
        squares = np.einsum("nd,nd->n", embeddings, embeddings)
        for start in range(0, len(centres), DISTANCE_CHUNK_ROWS):
            part = centres[start : start + DISTANCE_CHUNK_ROWS]
            for begin in range(0, len(embeddings), DISTANCE_CHUNK_ROWS):
                piece = slice(begin, begin + DISTANCE_CHUNK_ROWS)
                _approach(first[piece], embeddings[piece], squares[piece], part)
        self._order = np.argsort(-first, kind="stable")
        self._embeddings, self._squares, self._distances = (
            embeddings[self._order],
            squares[self._order],
            first[self._order],
        )
        self._starts = np.arange(0, len(embeddings), BLOCK_ROWS)
        self._bounds = (
            np.maximum.reduceat(self._distances, self._starts) if len(embeddings) else first
        )
        self._heard = np.zeros(len(self._starts), dtype=np.int64)
        self._added: list[int] = []

    def next(self) -> int:
        """Return the farthest sample and make it a centre."""
        while self._heard[block := int(np.argmax(self._bounds))] < len(self._added):
            self._refresh(block)
        begin = int(self._starts[block])
        place = begin + int(np.argmax(self._distances[begin : begin + BLOCK_ROWS]))
        self._added.append(place)
        self._distances[place] = -1.0
        self._bounds[block] = self._distances[begin : begin + BLOCK_ROWS].max()
        return int(self._order[place])

    def _refresh(self, block: int) -> None:
        piece = slice(int(self._starts[block]), int(self._starts[block]) + BLOCK_ROWS)
        fresh = self._embeddings[self._added[int(self._heard[block]) :]]
        _approach(self._distances[piece], self._embeddings[piece], self._squares[piece], fresh)
        self._heard[block] = len(self._added)
        self._bounds[block] = self._distances[piece].max()


def _approach(
    distances: FloatArray, embeddings: FloatArray, squares: FloatArray, centres: FloatArray
) -> None:
    """Lower squared distances [n] in place to those from further centres [m, d]; minus one, for what was chosen, stays."""
    lengths = np.einsum("md,md->m", centres, centres)
    nearest = (lengths - 2.0 * (embeddings @ centres.T)).min(axis=1) + squares
    np.minimum(distances, np.maximum(nearest, 0.0), out=distances)


@dataclass(frozen=True, kw_only=True)
class DeepestRepairer(Strategy):
    """Adds the samples deepest inside each slice by the score of its rule, the budget shared equally among slices.

    After Jain, Lawrence, Moitra and Madry, *Distilling Model Failures as Directions in Latent Space* (2023): the K images of a
    class with the most negative decision values, which are the largest scores here. Who is of the class is known if the whole pool
    is labelled, and judged without labels otherwise.

    Args:
        only_members: whether a slice with too few members leaves the rest of its share to others; otherwise its nearest
            non-members follow, as in the paper.
        weighting: `uniform`, or `balanced`: the members of a slice, old and new, weigh as much as the rest of their class.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> DeepestRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen as the deepest inside the slices.'
    """

    only_members: bool = True
    weighting: Weighting = "uniform"

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and the deepest pool rows; the seed has no influence."""
        pool = open_pool(material, "pool-deepest")
        orders = [self._deepest_first(found, pool) for found in slices]
        chosen = np.array(list(islice(_in_turn(orders), pool.budget)), dtype=np.int64)
        if slices and not len(chosen):
            raise nothing_inside(pool.strategy, len(pool.rows))
        return with_added(
            material,
            chosen,
            "as the deepest inside the slices",
            slices=slices,
            weighting=self.weighting,
        )

    def _deepest_first(self, found: FailureSlice, pool: OpenPool) -> list[int]:
        scores = found.rule.scores(pool.samples, pool.rows)
        is_open = (
            found.rule.members(pool.samples, pool.rows)
            if self.only_members
            else np.isfinite(scores)
        )
        rows, depths = pool.rows[is_open], scores[is_open]
        is_of_class = _is_of_class(found, rows, pool)
        order = np.argsort(-depths[is_of_class], kind="stable")
        return [int(row) for row in rows[is_of_class][order]]


def _is_of_class(found: FailureSlice, rows: IntArray, pool: OpenPool) -> BoolArray:
    given: SampleSet | None = pool.material.pool
    if given is not None and given.dataset.is_labelled[given.rows].all():
        return np.isin(rows, found.class_rows(given))
    return pool.possible(found, rows, pool.budget)


def _in_turn(orders: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the best row of every order in turn, then the next best; a row in several orders comes once, for the first of them.

    >>> list(_in_turn([[4, 2, 9], [2, 7], []]))
    [4, 2, 9, 7]
    """
    taken: set[int] = set()
    waiting = [iter(order) for order in orders]
    while waiting:
        going_on = []
        for order in waiting:
            row = next((row for row in order if row not in taken), None)
            if row is None:
                continue
            taken.add(row)
            going_on.append(order)
            yield row
        waiting = going_on
