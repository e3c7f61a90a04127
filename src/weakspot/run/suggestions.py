"""Words to start from: what may set the failures of a class apart, best first, from the discovery half alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, generator
from weakspot.core.assistants import MIN_TRUST, TrustPhrases
from weakspot.core.discoverers import ClassSamples
from weakspot.core.errors import DataError
from weakspot.core.failures import Side
from weakspot.core.group_tests import deal_folds
from weakspot.core.samples import CAPTION_COLUMN, told_by_words
from weakspot.discover.error_score import error_scores
from weakspot.discover.hypothesis import HypothesisDiscoverer, class_noun
from weakspot.words.caption_rule import spoken_rule
from weakspot.words.captions import built_in_vocabulary, content_words, words_of_ancestors
from weakspot.words.meanings import noun_forms
from weakspot.words.word_choice import is_witnessed
from weakspot.words.wordnet import are_synonyms, hyponyms, lemma

TOP = 10
N_KINDS, N_MEASURED_KINDS = 20, 100
N_FOLDS, N_DEALS = 5, 4
MAX_COMPARED = 4000
WORDS_AT_ONCE = 8
MAX_VALUES, MIN_MEANT = 20, 5
SAME_MEMBERS, SAME_DIRECTION = 0.7, 0.8
BACKGROUND = " background"
MEANT = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """Words that may be suggested.

    Args:
        words: as a person would type them.
        fits: how well they fit each sample [n]; for a rule 1 where it means the sample, else 0.
        weight: how well they are known, from 0 to 1.
        direction: their embedding [d]; None for a rule.
    """

    words: str
    fits: FloatArray
    weight: float = 1.0
    direction: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """Suggested words.

    Args:
        words: as a person would type them.
        score: Error Score on the discovery half, with the threshold that is best there.
        held_out: how well they separate samples of this half that took no part in choosing a threshold, times how well they are known.
    """

    words: str
    score: float
    held_out: float


@dataclass(frozen=True, kw_only=True, eq=False)
class SuggestionSource(ClassSamples):
    """The samples of a class on the discovery half that words are tried on; embeddings [n, 0] if only columns can be asked.

    Args:
        method: how phrases are put to the encoder.
    """

    method: HypothesisDiscoverer

    def suggest(self, spoken: Sequence[str] = ()) -> tuple[Suggestion, ...]:
        """Return at most ten suggestions, best first.

        Args:
            spoken: words of captions, tried beside the built-in ones.
        """
        words = [*self._vocabulary(), *sayable_words(spoken, self.assistants.trust)]
        found = [*self._worded(dict.fromkeys(words)), *self._columns()]
        return self._chosen(found)

    def _vocabulary(self) -> list[str]:
        built_in, noun = built_in_vocabulary(), class_noun(self.problem)
        general = [*built_in.adjectives, *built_in.looks, *built_in.places]
        if self.problem.side is Side.ABSENT:
            return sayable_words(general, self.assistants.says)
        own = words_of_ancestors(noun, built_in.by_ancestor)
        most = N_KINDS if self.assistants.measured is None else N_MEASURED_KINDS
        kinds = hyponyms(noun, most=most, commonest_first=True)
        repeated = {*noun_forms(noun), lemma(noun)}
        listed = dict.fromkeys([*general, *own.adjectives, *own.places, *kinds])
        new = [word for word in listed if word.lower() not in repeated]
        return sayable_words(new, self.assistants.says)

    def _worded(self, words: Sequence[str] | dict[str, None]) -> Iterator[Candidate]:
        embed, listed = self.assistants.embed_texts, list(words)
        if embed is None or not self.embeddings.shape[1] or not listed:
            return
        weights = self._weights(listed)
        for start in range(0, len(listed), WORDS_AT_ONCE):
            # Few at a time: somebody who types a phrase meanwhile waits for one such piece at most.
            part = listed[start : start + WORDS_AT_ONCE]
            found = self.method.phrase_directions(part, embed, self.problem)
            for word in part:
                fits = np.asarray(self.embeddings @ found[word], dtype=np.float32)
                yield Candidate(words=word, fits=fits, weight=weights[word], direction=found[word])

    def _weights(self, words: Sequence[str]) -> dict[str, float]:
        measured, trust = self.assistants.measured, self.assistants.trust
        areas = None if measured is None else measured(words)
        known = None if trust is None else trust(words)
        found = np.ones(len(words)) if known is None else np.asarray(known, dtype=np.float64)
        if areas is not None:
            found = np.where(np.isfinite(areas), areas, found)
        return dict(zip(words, (float(one) for one in found), strict=True))

    def _columns(self) -> Iterator[Candidate]:
        """Yield values of columns that some samples of the class have and others have not."""
        dataset, rows = self.samples.dataset, self.problem.rows
        left_out = {*told_by_words(dataset.table), CAPTION_COLUMN}
        for name in dataset.metadata_names:
            values = _values(dataset.metadata(name), rows) if name not in left_out else []
            for value in values:
                words = f"{name} = {value}"
                try:
                    rule = spoken_rule(words, dataset, has_text_side=True)
                except DataError:
                    continue
                inside = None if rule is None else rule.members(self.samples, rows)
                if inside is not None and MIN_MEANT <= inside.sum() < len(rows):
                    yield Candidate(words=words, fits=inside.astype(np.float32))

    def _chosen(self, found: Sequence[Candidate]) -> tuple[Suggestion, ...]:
        if not found:
            return ()
        fits, failed = np.stack([one.fits for one in found]), self.problem.failed
        best = error_scores(fits, failed)
        held_out = self._separation(fits) * np.array([one.weight for one in found])
        order = sorted(
            range(len(found)),
            key=lambda place: (-round(float(held_out[place]), 6), found[place].words),
        )
        inside = fits >= best.threshold[:, None]
        chosen: list[int] = []
        for place in order:
            if len(chosen) == TOP or held_out[place] <= 0:
                break
            if best.score[place] <= 0 or not self._is_backed(found[place].words, inside[place]):
                continue
            if not any(
                _are_alike(found[place], found[other], inside[place], inside[other])
                for other in chosen
            ):
                chosen.append(place)
        return tuple(
            Suggestion(
                words=found[place].words,
                score=float(best.score[place]),
                held_out=float(held_out[place]),
            )
            for place in chosen
        )

    def _separation(self, fits: FloatArray) -> DoubleArray:
        """Return how well words [m] separate failures: the mean of a held-out Error Score and of 2 x area under the curve - 1."""
        draws = generator(self.seed, "suggestions", self.problem.title)
        failed, groups = self.problem.failed, self.problem.groups
        if len(failed) > MAX_COMPARED:
            kept = np.sort(draws.permutation(len(failed))[:MAX_COMPARED])
            fits, failed = fits[:, kept], failed[kept]
            groups = None if groups is None else groups[kept]
        if failed.all() or not failed.any():
            return np.zeros(len(fits))
        own = np.arange(len(failed)) if groups is None else groups
        scores = [
            _held_out_scores(fits, failed, deal_folds(own, N_FOLDS, draws)) for _ in range(N_DEALS)
        ]
        return np.asarray((np.mean(scores, axis=0) + _rank_difference(fits, failed)) / 2)

    def _is_backed(self, words: str, inside: BoolArray) -> bool:
        """Return whether a word for a background is seen by a witness too: the encoder takes a thing's colour for it."""
        if not words.endswith(BACKGROUND):
            return True
        return is_witnessed(words, self.problem.rows, inside, self.assistants.seen)


def sayable_words(words: Sequence[str], judge: TrustPhrases | None) -> list[str]:
    """Return the words that a judge lets pass; all of them if it cannot say.

    Args:
        words: what may be said.
        judge: `Assistants.says` for built-in words, `Assistants.trust` for what captions say.
    """
    told = None if judge is None or not words else judge(words)
    if told is None:
        return list(words)
    return [word for word, one in zip(words, told, strict=True) if one >= MIN_TRUST]


def _values(column: pa.ChunkedArray, rows: IntArray) -> list[str]:
    """Return the words of a column that samples have, if there are few."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)
    ):
        return []
    own = pc.unique(column.take(pa.array(rows))).drop_null().to_pylist()
    return sorted(str(one) for one in own) if 1 < len(own) <= MAX_VALUES else []


def _held_out_scores(fits: FloatArray, failed: BoolArray, folds: IntArray) -> DoubleArray:
    """Return Error Scores [m] of samples whose threshold was chosen on the other folds."""
    inside = np.zeros(fits.shape, dtype=np.bool_)
    for fold in range(N_FOLDS):
        own = folds == fold
        if own.any() and not own.all():
            cut = error_scores(np.ascontiguousarray(fits[:, ~own]), failed[~own]).threshold
            inside[:, own] = fits[:, own] >= cut[:, None]
    return np.asarray(inside[:, failed].mean(axis=1) - inside[:, ~failed].mean(axis=1))


def _rank_difference(fits: FloatArray, failed: BoolArray) -> DoubleArray:
    """Return 2 x the area under the curve - 1 of each row [m]; ties count half."""
    found = np.empty(len(fits))
    n_failed, n_right = int(failed.sum()), int((~failed).sum())
    for place, row in enumerate(fits):
        _, codes, counts = np.unique(row, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[codes]
        wins = ranks[failed].sum() - n_failed * (n_failed + 1) / 2
        found[place] = 2 * wins / (n_failed * n_right) - 1
    return found


def _are_alike(first: Candidate, second: Candidate, inside: BoolArray, other: BoolArray) -> bool:
    """Return whether two candidates mean the same: the same samples, the same direction, or the same words."""
    union = int((inside | other).sum())
    if union and int((inside & other).sum()) / union > SAME_MEMBERS:
        return True
    if first.direction is None or second.direction is None:
        return False
    if float(first.direction @ second.direction) > SAME_DIRECTION:
        return True
    words, others = (content_words(one.words) for one in (first, second))
    return (
        bool(words)
        and len(words) == len(others)
        and all(
            lemma(one) == lemma(two) or are_synonyms(one, two)
            for one, two in zip(words, others, strict=True)
        )
    )
