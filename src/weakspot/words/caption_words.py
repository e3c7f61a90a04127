"""What captions and sentences say: lemmas that carry content, and adjectives, kinds and places by light patterns."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from weakspot.words.captions import ClassWords, ancestry, content_words, noun_of, with_article
from weakspot.words.wordnet import everyday_lemma, is_known, lemma

_WORD_OR_MARK = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]")
# Words that carry no content in a caption; runs end at them.
_STOP_WORDS_TEXT = """
    a an the this that these those some any another each every no of on in at by to from with without and or but as into onto
    over under above below behind beside between among around near next through inside outside front up down off out about against
    along across is are was were be been being am has have had having do does did can could will would may might must it its he she
    his her him they them their theirs we our us you your i my me who whom which what where when while there here very also
    just so too not than then such one's it's photo photograph picture image view shot photography seen shown showing
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())


def runs_of_words(caption: str, *, stops: frozenset[str] = STOP_WORDS) -> Iterator[tuple[str, ...]]:
    """Yield the runs of words between stop words and marks, as lemmas.

    >>> list(runs_of_words("a photo of two small red discs, in the dark"))
    [('two', 'small', 'red', 'disc'), ('dark',)]
    """
    run: list[str] = []
    for word in _WORD_OR_MARK.findall(caption.lower()):
        single = _lemma(word) if word[0].isalpha() else word
        if word in stops or single in stops or not word[0].isalnum():
            if run:
                yield tuple(run)
            run = []
        else:
            run.append(single)
    if run:
        yield tuple(run)


@lru_cache(maxsize=65_536)
def _lemma(word: str) -> str:
    return everyday_lemma(word)


def keywords_in(
    caption: str, *, max_words: int, stops: frozenset[str] = STOP_WORDS
) -> frozenset[str]:
    """Return every phrase of one to `max_words` neighbouring words of a caption.

    >>> sorted(keywords_in("green apples on a shelf", max_words=2))
    ['apple', 'green', 'green apple', 'shelf']
    """
    return frozenset(
        " ".join(run[start : start + length])
        for run in runs_of_words(caption, stops=stops)
        for length in range(1, max_words + 1)
        for start in range(len(run) - length + 1)
    )


def count_keywords(captions: Iterable[str], *, max_words: int) -> Counter[str]:
    """Return how many captions contain each phrase of one to `max_words` neighbouring words; a caption counts once."""
    counts: Counter[str] = Counter()
    for caption in captions:
        counts.update(keywords_in(caption, max_words=max_words))
    return counts


_PREPOSITIONS_TEXT = """in on at under behind near beside inside outside with without over by against above below between among
through into onto around along across beneath underneath"""
_STOPS_TEXT = """and or but that which who while as is are was were be being been has have had of to from it they he she this these
those there next front top"""
_DETERMINERS_TEXT = "a an the its his her their some another"
_NUMBERS_TEXT = "one two three four five six seven eight nine ten"
PREPOSITIONS = frozenset(_PREPOSITIONS_TEXT.split())
_STOPS = PREPOSITIONS | frozenset(_STOPS_TEXT.split())
_DETERMINERS = frozenset(_DETERMINERS_TEXT.split())
_NO_ADJECTIVES = _STOPS | _DETERMINERS | frozenset(_NUMBERS_TEXT.split())
_NO_NOUNS = _STOPS | {"background"}
_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*|[,.;:!?]")
_MAX_WORDS = 3
_MIN_LETTERS = 3
_FEWEST = 2


def words_in_sentences(
    sentences: Sequence[str], class_name: str, *, most: int, least_share: float = 0.02
) -> ClassWords:
    """Return what sentences about samples of a class add to its name, most frequent first.

    Args:
        sentences: one a sample; empty ones are passed over.
        class_name: the class.
        most: how many of each kind at most.
        least_share: what fewer of the sentences say is left out; so is what only one says.
    """
    counts: dict[str, Counter[str]] = {
        "adjectives": Counter(),
        "nouns": Counter(),
        "places": Counter(),
    }
    noun = noun_of(class_name)
    for sentence in sentences:
        words = _WORD.findall(sentence.lower())
        counts["adjectives"].update(set(_adjectives(words)))
        counts["nouns"].update(set(_kinds(words, noun)))
        counts["places"].update(set(_places(words)))
    least = max(_FEWEST, least_share * sum(bool(sentence.strip()) for sentence in sentences))
    own = {lemma(word) for word in content_words(noun)}
    return ClassWords(
        **{kind: _frequent(counter, least, most, own) for kind, counter in counts.items()}
    )


def _frequent(counter: Counter[str], least: float, most: int, own: set[str]) -> tuple[str, ...]:
    ranked = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    said = (
        phrase
        for phrase, count in ranked
        if count >= least and {lemma(word) for word in content_words(phrase)} - own
    )
    return tuple(phrase for phrase, _ in zip(said, range(most), strict=False))


def _adjectives(words: Sequence[str]) -> Iterator[str]:
    """Yield words that WordNet knows as adjectives and that stand before something that can be a noun."""
    for word, following in pairwise(words):
        if _can_describe(word) and following[0].isalpha() and following not in _NO_NOUNS:
            yield word


def _can_describe(word: str) -> bool:
    return len(word) >= _MIN_LETTERS and word not in _NO_ADJECTIVES and is_known(word, "adj")


def _kinds(words: Sequence[str], noun: str) -> Iterator[str]:
    own = lemma(noun)
    for phrase in (*words, *map(" ".join, pairwise(words))):
        single = lemma(phrase)
        if len(single) >= _MIN_LETTERS and is_known(single, "noun") and own in ancestry(single)[1:]:
            yield single


def _places(words: Sequence[str]) -> Iterator[str]:
    """Yield prepositions with what follows them, at most three words that can belong together, and backgrounds."""
    for start, word in enumerate(words):
        if word == "background" and start and _can_describe(words[start - 1]):
            yield f"on {with_article(words[start - 1])} background"
        if word not in PREPOSITIONS:
            continue
        following = list(_until_stop(words[start + 1 :]))
        determiner = [
            "the" if one == "the" else "a" for one in following[:1] if one in _DETERMINERS
        ]
        content = following[len(determiner) :][:_MAX_WORDS]
        while content and not is_known(content[-1], "noun"):
            content.pop()
        if content:
            spoken = " ".join(content)
            yield f"{word} {with_article(spoken) if determiner == ['a'] else ' '.join([*determiner, spoken])}"


def _until_stop(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word in _STOPS or not word[0].isalpha():
            return
        yield word
