"""Values of attributes told from embeddings: the value whose phrases are nearest, calibrated on reference samples, or none.

Two witnesses decide what is sure without any label: the phrases of every value come in two halves of different wording, and each
half is asked on its own. Where they disagree the sample is unsure; and so is one whose lead of the best value over the second is so
small that, on reference samples with at least such a lead, the halves disagree too often. A sample may also have none of the
values: one that is hardly more similar to its best value than samples of other values are is unsure, too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.bounds import Bounds, PositiveFraction, check_bounds
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import Attribute
from weakspot.words.attribute_columns import AssignedColumn, LeftOut, words_column
from weakspot.words.planning import no_phrases

UNSURE, MISSING = -1, -2
LOW_QUANTILE = 0.01
MIN_OTHERS = 10
MIN_FOR_FLOORS = 3
CHUNK_ROWS = 32_768
SIGMA_OF_MEDIAN = 1.4826
HALF = 0.5

EmbedPhrases = Callable[[Sequence[str]], FloatArray]


@dataclass(frozen=True, kw_only=True)
class Caution:
    """When a value is believed.

    Args:
        most_disagreement: share of samples, among those with at least the least lead, on which the two halves may disagree.
        most_chance: how many of the values a sample that has none of them may reach, on average, by the scatter of similarities.
        least_kappa: agreement of the halves beyond chance that an attribute needs at all.
        least_sure: share of reference samples with a sure value that an attribute needs.
    """

    most_disagreement: Annotated[float, Bounds(ge=0, lt=1)] = 0.05
    most_chance: PositiveFraction = 0.5
    least_kappa: Annotated[float, Bounds(ge=0, lt=1)] = 0.3
    least_sure: Annotated[float, Bounds(ge=0, lt=1)] = 0.1

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class Contrast:
    """The phrases of one attribute as embeddings, set against each other.

    Args:
        prototypes: mean phrase embeddings of each half [2, k, d].
        offsets: for each half and value [2, k] the usual similarity of samples that have another value; subtracted, so that no
            value attracts everything.
        floors: for each value [k] the least similarity above the sample's middle value that is believed.
        least_margin: smallest lead that is believed; infinite if none is.
        agreement: share of reference samples on which the halves agree.
        kappa: the same beyond chance, 1 for perfect, 0 for chance.
        sure_share: share of reference samples with a sure value.
    """

    prototypes: FloatArray
    offsets: FloatArray
    floors: DoubleArray
    least_margin: float = 0.0
    agreement: float = 1.0
    kappa: float = 1.0
    sure_share: float = 1.0

    @property
    def n_values(self) -> int:
        return int(self.prototypes.shape[1])

    def obstacle(self, caution: Caution) -> str:
        """Return why nothing can be said by these phrases, or an empty text."""
        if self.kappa < caution.least_kappa:
            return (
                f"other wordings of the same values give other answers (they agree on {self.agreement:.0%} of samples,"
                f" {max(self.kappa, 0.0):.0%} beyond chance)"
            )
        if self.sure_share < caution.least_sure:
            return f"only {self.sure_share:.0%} of samples have a value that is sure"
        return ""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Told:
    best: IntArray
    score: FloatArray
    margin: DoubleArray
    agree: BoolArray

    def is_sure(self, least_margin: float, floors: DoubleArray) -> BoolArray:
        """Return which samples have a value that is believed."""
        return np.asarray(
            self.agree & (self.margin >= least_margin) & (self.score >= floors[self.best])
        )


def half_prototypes(phrases: Sequence[Sequence[str]], embed_texts: EmbedPhrases) -> FloatArray:
    """Return the mean phrase embeddings [2, k, d] of both halves of every value's phrases."""
    flat = [phrase for each in phrases for phrase in each]
    embeddings = np.asarray(embed_texts(flat), dtype=np.float32)
    ends = np.cumsum([len(each) for each in phrases])
    parts = np.split(embeddings, ends[:-1])
    return np.stack([[part[half::2].mean(axis=0) for part in parts] for half in (0, 1)]).astype(
        np.float32
    )


def known_units(embeddings: FloatArray) -> FloatArray:
    """Return those of embeddings [n, d] that are finite, made unit vectors."""
    return unit_rows(embeddings[np.isfinite(embeddings).all(axis=1)])


def calibrated(
    prototypes: FloatArray,
    reference: FloatArray,
    caution: Caution,
    *,
    without_floor: Sequence[int] = (),
) -> Contrast:
    """Return the contrast of prototypes [2, k, d], with offsets and thresholds found on reference embeddings [n, d].

    No label is read.

    Args:
        prototypes: see `half_prototypes`.
        reference: unit vectors, see `known_units`.
        caution: when a value is believed.
        without_floor: values that mean that the others are absent.
    """
    n_values = prototypes.shape[1]
    if not len(reference):
        nothing = np.zeros((2, n_values), dtype=np.float32)
        return Contrast(
            prototypes=prototypes,
            offsets=nothing,
            floors=np.zeros(n_values),
            kappa=0.0,
            sure_share=0.0,
        )
    similarities = _similarities(reference, prototypes)
    offsets = np.stack([_usual(_centre(similarities[half])) for half in (0, 1)])
    scores = similarities - offsets[:, None, :]
    told, halves = _told(scores), scores.argmax(axis=2)
    floors = (
        _floors(scores.mean(axis=0), caution.most_chance)
        if n_values >= MIN_FOR_FLOORS
        else np.full(n_values, -np.inf)
    )
    floors[list(without_floor)] = -np.inf
    least = _least_margin(told.margin, told.agree, caution.most_disagreement)
    return Contrast(
        prototypes=prototypes,
        offsets=offsets,
        floors=floors,
        least_margin=least,
        agreement=float(told.agree.mean()),
        kappa=_kappa(halves[0], halves[1], n_values),
        sure_share=float(told.is_sure(least, floors).mean()),
    )


def assigned(
    contrasts: Sequence[Contrast], embeddings: FloatArray, *, progress: Progress = no_progress
) -> list[IntArray]:
    """Return for every attribute the code of every sample's value [n], `UNSURE` or `MISSING` (no embedding), chunk by chunk."""
    n_rows = len(embeddings)
    found = [np.full(n_rows, MISSING, dtype=np.int64) for _ in contrasts]
    if not contrasts:
        return found
    stacked = np.concatenate([contrast.prototypes for contrast in contrasts], axis=1)
    offsets = np.concatenate([contrast.offsets for contrast in contrasts], axis=1)
    ends = np.cumsum([contrast.n_values for contrast in contrasts])
    for start in range(0, n_rows, CHUNK_ROWS):
        rows = np.arange(start, min(start + CHUNK_ROWS, n_rows))
        chunk = np.asarray(embeddings[rows[0] : rows[-1] + 1], dtype=np.float32)
        has_embedding = np.isfinite(chunk).all(axis=1)
        similarities = _similarities(unit_rows(chunk[has_embedding]), stacked) - offsets[:, None, :]
        for codes, contrast, end in zip(found, contrasts, ends, strict=True):
            told = _told(similarities[:, :, end - contrast.n_values : end])
            codes[rows[has_embedding]] = np.where(
                told.is_sure(contrast.least_margin, contrast.floors), told.best, UNSURE
            )
        progress(int(rows[-1]) + 1, n_rows)
    return found


def _similarities(units: FloatArray, prototypes: FloatArray) -> FloatArray:
    """Return similarities [2, n, k] of unit vectors to the prototypes of both halves."""
    return np.stack([units @ prototypes[half].T for half in (0, 1)])


def _told(scores: FloatArray) -> _Told:
    """Return what both halves together say of scores [2, n, k]."""
    both = (scores[0] + scores[1]) / 2.0
    ordered = np.sort(both, axis=1)
    agree = scores[0].argmax(axis=1) == scores[1].argmax(axis=1)
    score = ordered[:, -1] - _middle(ordered)
    margin = ordered[:, -1] - ordered[:, -2]
    return _Told(
        best=both.argmax(axis=1),
        score=score,
        margin=np.asarray(margin, dtype=np.float64),
        agree=agree,
    )


def _middle(ordered: FloatArray) -> FloatArray:
    """Return the median of every row [n, k] that is in ascending order."""
    n_values = ordered.shape[1]
    return np.asarray((ordered[:, (n_values - 1) // 2] + ordered[:, n_values // 2]) / 2.0)


def _centre(similarities: FloatArray) -> FloatArray:
    """Return similarities [n, k] without what raises or lowers all values of a sample alike."""
    typical = _middle(np.sort(similarities - np.median(similarities, axis=0), axis=1))
    return np.asarray(similarities - typical[:, None], dtype=np.float32)


def _usual(similarities: FloatArray) -> FloatArray:
    """Return for every value [k] the median similarity of the samples [n, k] that have another value.

    A mean over all samples would be larger the commoner the value is, and would split a common value in two. Which samples have
    another value is first guessed from the low end of the similarities, which few of the samples with the value reach.
    """
    low = np.quantile(similarities, LOW_QUANTILE, axis=0)
    nearest = (similarities - low).argmax(axis=1)
    usual = low.copy()
    for value in range(similarities.shape[1]):
        others = similarities[nearest != value, value]
        if len(others) >= MIN_OTHERS:
            usual[value] = np.median(others)
    return np.asarray(usual, dtype=np.float32)


def _floors(scores: FloatArray, most_chance: float) -> DoubleArray:
    """Return for every value [k] the score that samples [n, k] without any of the values reach too rarely to matter.

    Their scores scatter around zero; how widely is seen below zero, where no sample with the value lies.
    """
    above = scores - _middle(np.sort(scores, axis=1))[:, None]
    reach = NormalDist().inv_cdf(1.0 - min(most_chance / scores.shape[1], HALF))
    below = [column[column < 0] for column in above.T]
    return np.array(
        [reach * SIGMA_OF_MEDIAN * float(np.median(-part)) if len(part) else 0.0 for part in below]
    )


def _least_margin(margins: DoubleArray, agree: BoolArray, most_disagreement: float) -> float:
    """Return the smallest lead such that, among samples with at least that lead, the halves disagree rarely enough."""
    order = np.argsort(-margins, kind="stable")
    rates = np.cumsum(~agree[order]) / np.arange(1, len(order) + 1)
    fine = np.flatnonzero(rates <= most_disagreement)
    if not len(fine):
        return float("inf")
    return 0.0 if fine[-1] == len(order) - 1 else float(margins[order[fine[-1]]])


def _kappa(first: IntArray, second: IntArray, n_values: int) -> float:
    """Return how far two assignments agree beyond chance (Cohen)."""
    shares = [np.bincount(codes, minlength=n_values) / len(codes) for codes in (first, second)]
    by_chance = float(shares[0] @ shares[1])
    return (
        0.0
        if by_chance >= 1.0
        else (float((first == second).mean()) - by_chance) / (1.0 - by_chance)
    )


def word_columns(
    attributes: Sequence[Attribute],
    *,
    embed_texts: EmbedTexts,
    embeddings: FloatArray,
    reference: FloatArray,
    caution: Caution | None = None,
    progress: Progress = no_progress,
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield the column of every attribute, or why its values cannot be told.

    Args:
        attributes: with phrases for at least two values each.
        embed_texts: phrases to embeddings of the same space.
        embeddings: of all samples [n, d], may be memory-mapped; NaN where there is none.
        reference: embeddings [m, d] on which offsets and thresholds are found.
        caution: when a value is believed.
        progress: told how many samples are done.
    """
    care, units = caution or Caution(), known_units(reference)
    usable: list[tuple[Attribute, Contrast]] = []
    for attribute in attributes:
        prototypes = half_prototypes([value.phrases for value in attribute.values], embed_texts)
        absent = [
            place for place, value in enumerate(attribute.values) if value.phrases == no_phrases()
        ]
        contrast = calibrated(prototypes, units, care, without_floor=absent)
        obstacle = contrast.obstacle(care)
        if obstacle:
            yield LeftOut(name=attribute.name, why=obstacle)
        else:
            usable.append((attribute, contrast))
    codes = assigned([contrast for _, contrast in usable], embeddings, progress=progress)
    for (attribute, contrast), told in zip(usable, codes, strict=True):
        yield _column(attribute, contrast, told)


def _column(attribute: Attribute, contrast: Contrast, codes: IntArray) -> AssignedColumn | LeftOut:
    counts = np.bincount(codes[codes >= 0], minlength=contrast.n_values)
    if (counts > 0).sum() < 2:  # noqa: PLR2004 - two bins to tell apart
        return LeftOut(
            name=attribute.name, why="all samples of which it is sure have the same value"
        )
    n_rows, n_missing = len(codes), int((codes == MISSING).sum())
    values = tuple(
        value.model_copy(update={"share": round(int(count) / n_rows, 6)})
        for value, count in zip(attribute.values, counts, strict=True)
    )
    update = {
        "values": values,
        "unsure_share": round(int((codes == UNSURE).sum()) / max(n_rows - n_missing, 1), 6),
        "missing_share": round(n_missing / n_rows, 6),
        "agreement": round(contrast.agreement, 6),
        "least_margin": round(contrast.least_margin, 6),
    }
    words = tuple(value.value for value in attribute.values)
    return AssignedColumn(
        attribute=attribute.model_copy(update=update), column=words_column(codes, words)
    )
