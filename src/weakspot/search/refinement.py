"""Shortens a proven caption: single sentences, then fewer adjectives, down to the shortest that fails as often."""

from collections.abc import Sequence
from dataclasses import dataclass

from weakspot.search.contest import Contest
from weakspot.search.prompts import caption_of, whole_prompt
from weakspot.search.records import CaptionTrial, TrialStep
from weakspot.search.shorter_sentences import n_content_words, said_words, without_adjectives

Sentences = tuple[str, ...]
SAME_SHARE = 0.4
LEAST_MARGIN = 0.1
ERROR_RATE = 0.05
FEWEST = 48


@dataclass(frozen=True, kw_only=True)
class Refined:
    """What became of a proven caption.

    Args:
        sentences: the shortest caption that fails as often.
        trial: what was measured of it.
    """

    sentences: Sentences
    trial: CaptionTrial


@dataclass(frozen=True, kw_only=True, eq=False)
class Refinement:
    """Looks for a shorter caption that fails as often as a proven one.

    Every sentence is tried alone, the most telling one first; once one fails as often, only sentences that are shorter still can
    win and only those are tried. If no single sentence does, sentences are left out one by one. Then adjectives are left out.
    Whatever is tried enters the contest and with it the correction. A shorter caption fails as often unless it loses two fifths
    of what the whole one gains over the baseline; either answer is wrong once in twenty times. Both get some pictures more first,
    because a caption that is proven as soon as possible was lucky more often than not.

    Args:
        contest: where captions are tried.
        baseline: the prompt without a caption.
        class_words: words of the class; a sentence that says no more than these says nothing.
    """

    contest: Contest
    baseline: str
    class_words: frozenset[str] = frozenset()

    def shortest(self, sentences: Sentences, whole: CaptionTrial) -> Refined:
        """Return the shortest caption with an equal rate, at worst the whole one."""
        best = Refined(sentences=sentences, trial=whole)
        if len(sentences) > 1:
            best = self._single(sentences, whole) or self._fewer(sentences, whole)
        return self._plainer(best, whole)

    def tried(self, sentences: Sequence[str], *, step: TrialStep) -> CaptionTrial:
        """Return what is measured of a caption."""
        return self.contest.try_captions([(caption_of(sentences), whole_prompt(self.baseline, sentences))], step=step)[0]

    def fails_as_often(self, shorter: CaptionTrial, whole: CaptionTrial) -> bool:
        """Return whether a shorter caption keeps what a longer one gains over the baseline."""
        gain = whole.rate.value - self.contest.baseline_trial.rate.value
        margin = max(LEAST_MARGIN, SAME_SHARE * gain)
        return self.contest.same_rate(shorter, whole, margin=margin, error_rate=ERROR_RATE, fewest=FEWEST)

    def _equal(self, sentences: Sentences, whole: CaptionTrial, *, step: TrialStep) -> Refined | None:
        trial = self.tried(sentences, step=step)
        is_equal = trial.is_proven and self.fails_as_often(trial, whole)
        return Refined(sentences=sentences, trial=trial) if is_equal else None

    def _single(self, sentences: Sentences, whole: CaptionTrial) -> Refined | None:
        best: Refined | None = None
        for sentence in sentences:
            if best is None or n_content_words([sentence]) < n_content_words(best.sentences):
                best = self._equal((sentence,), whole, step="sentence") or best
        return best

    def _fewer(self, sentences: Sentences, whole: CaptionTrial) -> Refined:
        """Leave out sentences, the least telling first, as long as the rest fails as often."""
        best = Refined(sentences=sentences, trial=whole)
        for sentence in reversed(sentences):
            rest = tuple(one for one in best.sentences if one != sentence)
            if len(rest) > 1:
                best = self._equal(rest, whole, step="sentence") or best
        return best

    def _plainer(self, best: Refined, whole: CaptionTrial) -> Refined:
        """Leave out adjectives of every sentence, as many as possible first."""
        for place in range(len(best.sentences)):
            for plainer in without_adjectives(best.sentences[place]):
                if set(said_words(plainer)) <= self.class_words:
                    continue
                others = (*best.sentences[:place], plainer, *best.sentences[place + 1 :])
                found = self._equal(others, whole, step="adjective")
                if found is not None:
                    best = found
                    break
        return best
