"""Shortens a proven caption: down to the shortest that fails as often, and shorter wordings by a language model."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from pydantic import JsonValue

from weakspot.core.errors import ModelError
from weakspot.core.roles import TextGenerator
from weakspot.generate.search.prompts import caption_of, sentences_of, whole_prompt
from weakspot.generate.search.series import CaptionTrial, TrialStep
from weakspot.generate.search.trials import CaptionTrials
from weakspot.words.caption_words import PREPOSITIONS
from weakspot.words.captions import content_words, noun_of, with_article
from weakspot.words.wordnet import is_known

N_WORDINGS = 4
ASKED = (
    'A photograph of {class} is described so: "{caption}" Say the same in fewer words, in {n} different ways, each as one short plain '
    "sentence that begins with “it is”, “there is” or “the background is”. Add nothing, and do not name {class}."
)
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"captions": {"type": "array", "items": {"type": "string"}}},
    "required": ["captions"],
}


def shorter_wordings(
    caption: str, *, language: TextGenerator, class_name: str, seed: int = 0
) -> tuple[str, ...]:
    """Return shorter wordings of a caption, best first; each is measured like any other before it counts.

    An answer that is of no use gives none.
    """
    asked = ASKED.replace("{class}", noun_of(class_name)).replace("{n}", str(N_WORDINGS))
    try:
        said = language.generate(asked.replace("{caption}", caption), schema=SCHEMA, seed=seed)
        texts = json.loads(said)["captions"]
    except (ModelError, ValueError, KeyError, TypeError):
        return ()
    texts = texts if isinstance(texts, list) else []
    return tuple(text for text in texts if isinstance(text, str) and text.strip())[:N_WORDINGS]


_MAX_ADJECTIVES = 4
_NO_ADJECTIVES_TEXT = (
    "a an the its his her their some another one two three four five six seven eight nine ten there"
)
_EMPTY_TEXT = "it there are they this that"
_NO_ADJECTIVES = frozenset(_NO_ADJECTIVES_TEXT.split())
_EMPTY = frozenset(_EMPTY_TEXT.split())
_ARTICLE = re.compile(r"\b(a|an) (\w[\w'-]*)")


def without_adjectives(sentence: str) -> tuple[str, ...]:
    """Return a sentence with one or more of the adjectives left out that stand before something, shortest first.

    An adjective that is all that is said ("the background is green") stays.

    >>> without_adjectives("it is on a small yellow flower")
    ('it is on a flower', 'it is on a small flower', 'it is on a yellow flower')
    >>> without_adjectives("the background is green")
    ()
    """
    words = sentence.split()
    places = [
        place for place in range(len(words) - 1) if _stands_before(words[place], words[place + 1])
    ][:_MAX_ADJECTIVES]
    shorter = [
        _with_right_articles([word for place, word in enumerate(words) if place not in dropped])
        for size in range(len(places), 0, -1)
        for dropped in combinations(reversed(places), size)
    ]
    return tuple(dict.fromkeys(shorter))


def _stands_before(word: str, following: str) -> bool:
    if (
        word in _NO_ADJECTIVES | PREPOSITIONS
        or not content_words(word)
        or not is_known(word, "adj")
    ):
        return False
    can_be_described = is_known(following, "noun") or is_known(following, "adj")
    return (
        can_be_described
        and following not in PREPOSITIONS
        and bool(content_words(following, with_carriers=True))
    )


def _with_right_articles(words: Sequence[str]) -> str:
    return _ARTICLE.sub(lambda found: with_article(found.group(2)), " ".join(words))


def n_content_words(sentences: Sequence[str]) -> int:
    """Return how many words of sentences carry meaning.

    >>> n_content_words(["it is on a yellow flower", "the background is green"])
    3
    """
    return sum(
        len([word for word in said_words(sentence) if content_words(word)])
        for sentence in sentences
    )


def said_words(sentence: str) -> tuple[str, ...]:
    return tuple(word for word in content_words(sentence, with_carriers=True) if word not in _EMPTY)


Sentences = tuple[str, ...]
SAME_SHARE = 0.4
MIN_MARGIN = 0.1
ERROR_RATE = 0.05
FEWEST = 48


Refined = tuple[Sentences, CaptionTrial]
"""The shortest caption that fails as often as a proven one, and what was measured of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Refinement:
    """Looks for a shorter caption that fails as often as a proven one.

    Every sentence is tried alone, the most telling one first; once one fails as often, only sentences that are shorter still can
    win and only those are tried. If no single sentence does, sentences are left out one by one. Then adjectives are left out.
    Whatever is tried counts as a trial, and is corrected for. A shorter caption fails as often unless it loses two fifths
    of what the whole one gains over the baseline; either answer is wrong once in twenty times. Both get some images more first,
    because a caption that is proven as soon as possible was lucky more often than not.

    Args:
        trials: where captions are tried.
        baseline: the prompt without a caption.
        class_words: words of the class; a sentence that says no more than these says nothing.
        reword: shorter wordings of a caption, tried last; None if there is nobody to ask.
    """

    trials: CaptionTrials
    baseline: str
    class_words: frozenset[str] = frozenset()
    reword: Callable[[str], Sequence[str]] | None = None

    def shortest(self, sentences: Sentences, whole: CaptionTrial) -> Refined:
        best = sentences, whole
        if len(sentences) > 1:
            best = self._single(sentences, whole) or self._fewer(sentences, whole)
        return self._reworded(self._plainer(best, whole), whole)

    def tried(self, sentences: Sequence[str], *, step: TrialStep) -> CaptionTrial:
        return self.trials.try_captions(
            [(caption_of(sentences), whole_prompt(self.baseline, sentences))], step=step
        )[0]

    def fails_as_often(self, shorter: CaptionTrial, whole: CaptionTrial) -> bool:
        """Return whether a shorter caption keeps what a longer one gains over the baseline."""
        gain = whole.rate.value - self.trials.baseline_trial.rate.value
        margin = max(MIN_MARGIN, SAME_SHARE * gain)
        return self.trials.same_rate(
            shorter, whole, margin=margin, error_rate=ERROR_RATE, fewest=FEWEST
        )

    def _equal(
        self, sentences: Sentences, whole: CaptionTrial, *, step: TrialStep
    ) -> Refined | None:
        trial = self.tried(sentences, step=step)
        is_equal = trial.is_proven and self.fails_as_often(trial, whole)
        return (sentences, trial) if is_equal else None

    def _single(self, sentences: Sentences, whole: CaptionTrial) -> Refined | None:
        best: Refined | None = None
        for sentence in sentences:
            if best is None or n_content_words([sentence]) < n_content_words(best[0]):
                best = self._equal((sentence,), whole, step="sentence") or best
        return best

    def _fewer(self, sentences: Sentences, whole: CaptionTrial) -> Refined:
        """Leave out sentences, the least telling first, as long as the rest fails as often."""
        best = sentences, whole
        for sentence in reversed(sentences):
            rest = tuple(one for one in best[0] if one != sentence)
            if len(rest) > 1:
                best = self._equal(rest, whole, step="sentence") or best
        return best

    def _plainer(self, best: Refined, whole: CaptionTrial) -> Refined:
        """Leave out adjectives of every sentence, as many as possible first."""
        for place in range(len(best[0])):
            for plainer in without_adjectives(best[0][place]):
                if set(said_words(plainer)) <= self.class_words:
                    continue
                others = (*best[0][:place], plainer, *best[0][place + 1 :])
                shorter = self._equal(others, whole, step="adjective")
                if shorter is not None:
                    best = shorter
                    break
        return best

    def _reworded(self, best: Refined, whole: CaptionTrial) -> Refined:
        """Try what a language model says in fewer words, the shortest first."""
        if self.reword is None:
            return best
        proposed = {sentences_of(text) for text in self.reword(caption_of(best[0]))}
        for sentences in sorted(proposed, key=lambda one: (n_content_words(one), one)):
            is_shorter = 0 < n_content_words(sentences) < n_content_words(best[0])
            words = {word for sentence in sentences for word in said_words(sentence)}
            if not is_shorter or words <= self.class_words:
                continue
            reworded = self._equal(sentences, whole, step="reworded")
            if reworded is not None:
                return reworded
        return best
