"""Shorter wordings of a sentence: adjectives left out."""

import re
from collections.abc import Sequence
from itertools import combinations

from weakspot.lexicon.captions import content_words, with_article
from weakspot.lexicon.sentence_words import PREPOSITIONS
from weakspot.lexicon.wordnet import is_known

_MOST_ADJECTIVES = 4
_NO_ADJECTIVES_TEXT = "a an the its his her their some another one two three four five six seven eight nine ten there"
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
    places = [place for place in range(len(words) - 1) if _stands_before(words[place], words[place + 1])][:_MOST_ADJECTIVES]
    shorter = [
        _with_right_articles([word for place, word in enumerate(words) if place not in dropped])
        for size in range(len(places), 0, -1)
        for dropped in combinations(reversed(places), size)
    ]
    return tuple(dict.fromkeys(shorter))


def _stands_before(word: str, following: str) -> bool:
    """Return whether a word is an adjective and the next one something that it can describe."""
    if word in _NO_ADJECTIVES | PREPOSITIONS or not content_words(word) or not is_known(word, "adj"):
        return False
    can_be_described = is_known(following, "noun") or is_known(following, "adj")
    return can_be_described and following not in PREPOSITIONS and bool(content_words(following, with_carriers=True))


def _with_right_articles(words: Sequence[str]) -> str:
    return _ARTICLE.sub(lambda found: with_article(found.group(2)), " ".join(words))


def n_content_words(sentences: Sequence[str]) -> int:
    """Return how many words of sentences carry meaning.

    >>> n_content_words(["it is on a yellow flower", "the background is green"])
    3
    """
    return sum(len([word for word in said_words(sentence) if content_words(word)]) for sentence in sentences)


def said_words(sentence: str) -> tuple[str, ...]:
    """Return the words of a sentence that say something of a picture."""
    return tuple(word for word in content_words(sentence, with_carriers=True) if word not in _EMPTY)
