"""What captions say, as lemmas: words that carry content, and runs of them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from weakspot.lexicon.wordnet import everyday_lemma

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
