"""What encoder and witnesses say of words for a slice: how far they set members apart, and how surely they are seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import AnswerRows, Assistants, EmbedTexts
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.slices import HeldName
from weakspot.core.word_directions import word_directions
from weakspot.lexicon.captions import Caption, reference_phrase, with_article
from weakspot.lexicon.wordnet import is_known
from weakspot.pipeline.name_checks import FEWEST, Members, held_of
from weakspot.verify.classes.ranks import RankSum

SEEN = 0.5
MOST_ASKED = 10
# Light and sharpness last: they often only go with what else is odd.
MEASURED = (
    "pixelated",
    "noisy",
    "sketch",
    "black and white",
    "overexposed",
    "dark",
    "bright",
    "blurry",
)
"""Looks that pixels tell."""
N_DRAWS = 200
SEED = 0
SMALLEST = 1e-9


@dataclass(frozen=True, kw_only=True)
class Sight:
    """How surely witnesses see words in members and in others.

    Args:
        auc: how well that tells members from others.
        p_value: chance of telling them so well if nothing differs.
        members: mean sureness in members.
        others: mean sureness in others.
        n_members: members that were looked at.
        n_others: others that were looked at.
        n_seen: members in which it is seen.
        n_others_seen: others in which it is seen.
    """

    auc: float
    p_value: float
    members: float
    others: float
    n_members: int
    n_others: int
    n_seen: int
    n_others_seen: int

    @classmethod
    def of(cls, scores: DoubleArray, inside: BoolArray) -> "Sight":
        ranks = RankSum.of(scores, inside)
        return cls(
            auc=ranks.auc,
            p_value=ranks.p_value,
            members=float(scores[inside].mean()),
            others=float(scores[~inside].mean()),
            n_members=int(inside.sum()),
            n_others=int((~inside).sum()),
            n_seen=int((scores[inside] >= SEEN).sum()),
            n_others_seen=int((scores[~inside] >= SEEN).sum()),
        )

    @property
    def held(self) -> HeldName:
        return HeldName(
            auc=round(self.auc, 4),
            p_value=self.p_value,
            n_members=self.n_members,
            n_fitting=self.n_seen,
            n_others=self.n_others,
            n_others_fitting=self.n_others_seen,
        )


def look(words: str, members: Members, assistants: Assistants, *, most: int) -> Sight | None:
    """Return what is seen of words in at most so many members and others; None if nobody can tell.

    A question answerer is asked first, about fewer, but for what pixels measure.
    """
    if not len(members.rows):
        return None
    asked = assistants.answers
    if asked is not None and (words not in MEASURED or assistants.seen is None):
        answered = _sight(
            lambda rows: _answered(rows, words, asked), members, min(most, MOST_ASKED)
        )
        if answered is not None:
            return answered
    seen = assistants.seen
    return None if seen is None else _sight(lambda rows: seen(rows, words), members, most)


def question_for(words: str) -> str:
    """Return what a question answerer is asked of an image.

    >>> [question_for(words) for words in ("green", "horse", "with a label", "in a kitchen")]
    ['Is it green?', 'Is it a horse?', 'Is it shown with a label?', 'Is it in a kitchen?']
    """
    if words.startswith("with "):
        return f"Is it shown {words}?"
    is_thing = is_known(words, "noun") and not is_known(words, "adj")
    return f"Is it {with_article(words) if is_thing else words}?"


def _answered(rows: IntArray, words: str, answers: AnswerRows) -> FloatArray:
    told = answers(rows, question_for(words))
    first = [text.lower().replace(",", " ").replace(".", " ").split()[:1] for text in told]
    values = [1.0 if one == ["yes"] else 0.0 if one == ["no"] else np.nan for one in first]
    return np.array(values, dtype=np.float32)


def _sight(
    ask: Callable[[IntArray], FloatArray | None], members: Members, most: int
) -> Sight | None:
    rows, inside = members.few(most)
    try:
        sure = ask(rows)
    except (ModelError, UnavailableError):
        return None
    known = np.zeros(len(rows), dtype=np.bool_) if sure is None else np.isfinite(sure)
    if sure is None or min((known & inside).sum(), (known & ~inside).sum()) < FEWEST:
        return None
    return Sight.of(sure[known].astype(np.float64), inside[known])


@dataclass(frozen=True, kw_only=True, eq=False)
class Fits:
    """How captions fit the samples of a class, by the encoder.

    Args:
        captions: what is asked about [m].
        first: similarities [n, m] of the samples that words are chosen on.
        second: the same of those that only judge them.
        halves: which are members, of both.
    """

    captions: tuple[Caption, ...]
    first: FloatArray
    second: FloatArray
    halves: tuple[BoolArray, BoolArray]

    @classmethod
    def of(
        cls,
        captions: Sequence[Caption],
        plain: Caption,
        pair: tuple[Members, Members],
        embed: EmbedTexts,
    ) -> "Fits":
        """Return how captions fit the members and the others of both halves."""
        phrases, references, words = (
            unit_rows(np.asarray(embed(said), dtype=np.float32))
            for said in (
                [one.phrase for one in captions],
                [reference_phrase(plain, one) for one in captions],
                [one.contrast.replace(",", "") for one in captions],
            )
        )
        directions = word_directions(phrases, references, words, pair[0].centre)
        first, second = (np.asarray(one.embeddings @ directions.T) for one in pair)
        return cls(
            captions=tuple(captions),
            first=first,
            second=second,
            halves=(pair[0].inside, pair[1].inside),
        )

    @cached_property
    def chosen(self) -> DoubleArray:
        """Return how far members lie above the others where words are chosen [m], in deviations."""
        weights = np.ones((1, len(self.first)))
        return np.asarray(_distances(self.first, self.halves[0], weights)[0])

    @cached_property
    def drawn(self) -> DoubleArray:
        """Return the same of all samples [1 + draws, m], and of samples drawn with replacement from them."""
        values, inside = np.concatenate([self.first, self.second]), np.concatenate(self.halves)
        random = np.random.default_rng(SEED)
        weights = np.zeros((1 + N_DRAWS, len(inside)))
        weights[0] = 1.0
        for side in (np.flatnonzero(inside), np.flatnonzero(~inside)):
            if len(side):
                weights[1:, side] = random.multinomial(
                    len(side), np.full(len(side), 1 / len(side)), size=N_DRAWS
                )
        return _distances(values, inside, weights)

    def beats(self, one: int, other: int) -> float:
        """Return how often a caption sets members further apart than another, over the draws."""
        return float((self.drawn[1:, one] > self.drawn[1:, other]).mean())

    def held(self, place: int) -> HeldName | None:
        """Return what the samples say that took no part in choosing; None if they are too few."""
        return held_of(self.first[:, place], self.second[:, place], self.halves[0], self.halves[1])

    def fits_found(self, place: int) -> float:
        """Return how well a caption tells members where words are chosen."""
        return RankSum.of(self.first[:, place].astype(np.float64), self.halves[0]).auc


def _distances(values: FloatArray, inside: BoolArray, weights: DoubleArray) -> DoubleArray:
    """Return, for each row of weights [k, n], members' mean less the others' in deviations [k, m]."""
    means, variances = [], []
    for side in (inside, ~inside):
        own = values[side].astype(np.float64)
        shares = weights[:, side] / np.maximum(
            weights[:, side].sum(axis=1, keepdims=True), SMALLEST
        )
        means.append(shares @ own)
        variances.append(np.maximum(shares @ own**2 - means[-1] ** 2, 0.0))
    spread = np.sqrt((variances[0] + variances[1]) / 2 + SMALLEST)
    return np.asarray((means[0] - means[1]) / spread)
