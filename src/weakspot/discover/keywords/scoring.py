"""What is measured of a keyword: in captions, and by the embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.error_score import error_score_null, error_scores
from weakspot.core.group_tests import group_p
from weakspot.discover.keywords.candidates import Candidate

HALF = 0.5
PER_CENT = 100.0
MOST_SHUFFLED = 1_000
"""Chance is measured on a random part of more samples than this; a keyword that is worth a test stands out there, too."""


@dataclass(frozen=True, kw_only=True)
class CaptionContrast:
    """How much more often captions of failures contain a keyword than captions of other samples.

    Args:
        n_failed: failures whose caption contains it.
        n_right: other samples whose caption contains it.
        accuracy: share of the samples with such a caption that did not fail.
        log_odds: logarithm of the odds ratio, half a caption added to each count, over its standard error.
        p_value: Fisher's one-sided exact test, or that of groups.
        association: phi coefficient of containing and failing, -1 to 1.
    """

    n_failed: int
    n_right: int
    accuracy: float
    log_odds: float
    p_value: float
    association: float


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A keyword with everything that was measured of it on the samples of a class.

    Args:
        keyword: as shown to people.
        prompt: what was put to the encoder.
        error_score: how well similarity to the prompt tells failures from other samples, 0 to 1.
        threshold: similarity from which on a sample is meant: what best tells captions that contain the keyword from those that do
            not, without a look at predictions; if captions do not tell, what best tells failures from other samples.
        p_value: chance of such an Error Score when predictions are shuffled, or None.
        family_p: the same for the best of all keywords of the class, or None.
        clip_score: mean similarity of failures minus that of other samples, in hundredths.
        captions: what captions say of it, or None without captions.
    """

    keyword: str
    prompt: str
    error_score: float
    threshold: float
    p_value: float | None
    family_p: float | None
    clip_score: float
    captions: CaptionContrast | None


def caption_contrast(
    containing: BoolArray,
    has_caption: BoolArray,
    failed: BoolArray,
    groups: IntArray | None = None,
) -> CaptionContrast:
    """Compare captions of failures with captions of other samples; samples without a caption are left out, groups [n] count once."""
    said, wrong = containing[has_caption], failed[has_caption]
    n_wrong, n_others = int(wrong.sum()), int((~wrong).sum())
    in_wrong, in_others = int((said & wrong).sum()), int((said & ~wrong).sum())
    cells = np.array([in_wrong, n_wrong - in_wrong, in_others, n_others - in_others]) + HALF
    return CaptionContrast(
        n_failed=in_wrong,
        n_right=in_others,
        accuracy=in_others / (in_wrong + in_others) if in_wrong + in_others else float("nan"),
        log_odds=float(
            np.log(cells[0] * cells[3] / (cells[1] * cells[2])) / np.sqrt(np.sum(1.0 / cells))
        ),
        p_value=group_p(said, wrong, None if groups is None else groups[has_caption]),
        association=association(said, wrong),
    )


def association(first: BoolArray, second: BoolArray) -> float:
    """Return the phi coefficient of two properties of the same samples; 0 if one of them never varies.

    >>> association(np.array([True, True, False, False]), np.array([True, True, False, False]))
    1.0
    """
    if not len(first):
        return 0.0
    spread = first.mean() * (1 - first.mean()) * second.mean() * (1 - second.mean())
    if spread <= 0:
        return 0.0
    return float(
        np.round(((first & second).mean() - first.mean() * second.mean()) / np.sqrt(spread), 12)
    )


def meaning_cut(
    similarities: FloatArray, containing: BoolArray | None, has_caption: BoolArray
) -> float:
    """Return which of the similarities [n] best tells captions that contain a keyword from others; infinite if none does."""
    if containing is None:
        return float("inf")
    return float(
        error_scores(similarities[None, has_caption], containing[has_caption]).threshold[0]
    )


def _random_part(n_samples: int, draws: np.random.Generator) -> IntArray | slice:
    if n_samples <= MOST_SHUFFLED:
        return slice(None)
    return np.sort(draws.permutation(n_samples)[:MOST_SHUFFLED])


def scored(  # noqa: PLR0913 - what is measured of a keyword
    candidates: Sequence[Candidate],
    similarities: FloatArray,
    failed: BoolArray,
    has_caption: BoolArray,
    *,
    n_permutations: int,
    draws: np.random.Generator,
    groups: IntArray | None = None,
) -> tuple[Suggestion, ...]:
    """Measure candidates, in their order.

    Args:
        candidates: keywords of one class.
        similarities: of prompts and samples [m, n].
        failed: which samples failed [n].
        has_caption: which samples have a caption [n].
        n_permutations: how often predictions are shuffled; 0 for never.
        draws: what shuffles.
        groups: number of the group of every sample [n]; None: each is its own.
    """
    scores = error_scores(similarities, failed)
    cuts = [
        meaning_cut(row, one.containing, has_caption)
        for one, row in zip(candidates, similarities, strict=True)
    ]
    thresholds = np.where(np.isfinite(cuts), cuts, scores.threshold)
    gaps = PER_CENT * (similarities[:, failed].mean(axis=1) - similarities[:, ~failed].mean(axis=1))
    single: list[float | None] = [None] * len(candidates)
    family: list[float | None] = [None] * len(candidates)
    if n_permutations:
        part = _random_part(len(failed), draws)
        null = error_score_null(
            similarities[:, part],
            failed[part],
            n_permutations=n_permutations,
            generator=draws,
            groups=None if groups is None else groups[part],
        )
        single, family = (
            [float(value) for value in null.p_value],
            [float(value) for value in null.family_p],
        )
    return tuple(
        Suggestion(
            keyword=candidate.keyword,
            prompt=candidate.prompt,
            error_score=float(scores.score[place]),
            threshold=float(thresholds[place]),
            p_value=single[place],
            family_p=family[place],
            clip_score=float(gaps[place]),
            captions=None
            if candidate.containing is None
            else caption_contrast(candidate.containing, has_caption, failed, groups),
        )
        for place, candidate in enumerate(candidates)
    )
