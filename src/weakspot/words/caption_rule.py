"""What captions say, as membership rules: their words, rows that say one and how often, and a person's words as a rule."""

import difflib
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import DataError
from weakspot.core.rules import AllOfRule, ColumnRule, Rule, built_in
from weakspot.core.samples import CAPTION_COLUMN, SampleSet
from weakspot.store.csv_tables import csv_text
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


COLUMNS = ("class", "words", "failed_with", "n_failed", "right_with", "n_right", "difference")


@dataclass(frozen=True, kw_only=True)
class WordFrequency:
    """How often captions of a class say a word.

    Args:
        class_name: the class, as people read it.
        words: lemmas.
        failed_with: failures that say it.
        n_failed: failures with a caption.
        right_with: other samples that say it.
        n_right: other samples with a caption.
    """

    class_name: str
    words: str
    failed_with: int
    n_failed: int
    right_with: int
    n_right: int

    @property
    def difference(self) -> float:
        """Return the share of failures that say it minus the share of other samples."""
        return self.failed_with / max(self.n_failed, 1) - self.right_with / max(self.n_right, 1)


def frequency_table(frequencies: Sequence[WordFrequency]) -> str:
    """Return counts as CSV."""
    rows = [
        [
            one.class_name,
            one.words,
            one.failed_with,
            one.n_failed,
            one.right_with,
            one.n_right,
            round(one.difference, 6),
        ]
        for one in frequencies
    ]
    return csv_text(COLUMNS, rows)


MAX_REMEMBERED = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionIndex:
    """The captions of a column.

    Args:
        texts: the different captions.
        codes: of every row the number of its caption [n]; -1 without one.
        by_word: numbers of the captions that say a word, by lemma.
    """

    texts: tuple[str, ...]
    codes: IntArray
    by_word: dict[str, IntArray]

    def has_caption(self, rows: IntArray) -> BoolArray:
        return np.asarray(self.codes[rows] >= 0, dtype=np.bool_)

    def texts_of(self, rows: IntArray) -> list[str]:
        """Return the captions of rows, empty where there is none."""
        return [self.texts[code] if code >= 0 else "" for code in self.codes[rows].tolist()]

    def say(self, keyword: str, rows: IntArray) -> BoolArray:
        """Return which rows say a lemma, or neighbouring lemmas with spaces between them."""
        said = np.zeros(len(self.texts) + 1, dtype=np.bool_)
        said[self._captions_with(keyword)] = True
        return np.asarray(said[self.codes[rows]], dtype=np.bool_)

    def _captions_with(self, keyword: str) -> IntArray:
        nothing = np.zeros(0, dtype=np.int64)
        words = keyword.split(" ")
        found = self.by_word.get(words[0], nothing)
        for word in words[1:]:
            found = np.intersect1d(found, self.by_word.get(word, nothing), assume_unique=True)
        if len(words) == 1:
            return found
        # The lemma of one word may have a space in it: "well-lit" is said as "well lit".
        neighbours = re.compile("\n" + "[ \n]".join(map(re.escape, words)) + "\n")
        together = [code for code in found.tolist() if neighbours.search(self._spoken[code])]
        return np.array(together, dtype=np.int64)

    @cached_property
    def _spoken(self) -> tuple[str, ...]:
        """Of every caption its lemmas, a line each and an empty line after each run, so that it is taken apart once."""
        return tuple(
            "".join("\n" + "\n".join(run) + "\n" for run in runs_of_words(text))
            for text in self.texts
        )


_indices: OrderedDict[tuple[int, ...], tuple[pa.ChunkedArray, CaptionIndex]] = OrderedDict()


def caption_index(column: pa.ChunkedArray) -> CaptionIndex | None:
    """Return the index of a column of texts; None if it holds something else. Those asked for last are remembered."""
    if not _is_text(column.type):
        return None
    key = _identity(column)
    known = _indices.get(key)
    if known is None:
        # The column is kept beside its index, so that nothing else can come to lie at its address.
        known = _indices[key] = (column, _index(column))
    _indices.move_to_end(key)
    while len(_indices) > MAX_REMEMBERED:
        _indices.popitem(last=False)
    return known[1]


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))


def _identity(column: pa.ChunkedArray) -> tuple[int, ...]:
    """Return where a column lies in memory: the same for all tables that share it."""
    parts: list[int] = []
    for chunk in column.chunks:
        parts += [chunk.offset, len(chunk)]
        parts += [0 if buffer is None else buffer.address for buffer in chunk.buffers()]
    return tuple(parts)


def _index(column: pa.ChunkedArray) -> CaptionIndex:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    coded = column.combine_chunks().dictionary_encode()
    texts = [(text or "").strip() for text in coded.dictionary.to_pylist()]
    kept = [place for place, text in enumerate(texts) if text]
    new_codes = np.full(len(texts) + 1, -1, dtype=np.int64)
    new_codes[kept] = np.arange(len(kept))
    by_word: dict[str, list[int]] = defaultdict(list)
    for code, place in enumerate(kept):
        for word in {word for run in runs_of_words(texts[place]) for word in run}:
            by_word[word].append(code)
    return CaptionIndex(
        texts=tuple(texts[place] for place in kept),
        codes=new_codes[np.asarray(coded.indices.fill_null(len(texts)), dtype=np.int64)],
        by_word={word: np.array(codes, dtype=np.int64) for word, codes in by_word.items()},
    )


@built_in
class CaptionRule(Rule):
    """Members are the samples whose caption says a word, or neighbouring words, in any form; unknown without a caption.

    Args:
        column: metadata column that holds captions.
        words: lemmas with a space between them: `umbrella` is also said by “two umbrellas”, `wet road` by “on wet roads”, and not by
            “wet, dark road”.
    """

    complexity: ClassVar[int] = 0

    kind: Literal["caption"] = "caption"
    column: str = "caption"
    words: str

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return 1 for members, 0 for the others, NaN without a caption."""
        index = self._index(samples)
        said = index.say(self.words, rows).astype(np.float64)
        return np.where(index.has_caption(rows), said, np.nan)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self._index(samples).say(self.words, rows)

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self._index(samples).has_caption(rows)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column})

    @property
    def sentence(self) -> str:
        """Who belongs to the slice.

        >>> CaptionRule(words="wet road").sentence
        'Samples whose “caption” says “wet road”, in any form of these words.'
        """
        which = "these words" if " " in self.words else "this word"
        return f"Samples whose “{self.column}” says “{self.words}”, in any form of {which}."

    def _index(self, samples: SampleSet) -> CaptionIndex:
        index = caption_index(samples.dataset.metadata(self.column))
        if index is None:
            raise DataError(
                f"The column {self.column!r} holds no captions.",
                given=str(samples.dataset.metadata(self.column).type),
                fix="Give captions as text.",
            )
        return index


MAX_NAMED = 12
MAX_VALUES = 1000
SAYS = frozenset({"says", "contains"})
SAME = (frozenset({"yes", "true", "1"}), frozenset({"no", "false", "0"}))
_AND = re.compile(r"\s+(?:and|&)\s+", re.IGNORECASE)
_PART = re.compile(r"(.+?)\s*(<=|>=|==|=|<|>|\s(?:is|says|contains)\s)\s*(.+)", re.IGNORECASE)
_SIGNS = frozenset({"=", "==", "<", "<=", ">", ">="})


def spoken_rule(
    phrase: str, dataset: Dataset, *, has_text_side: bool, advice: str = ""
) -> Rule | None:
    """Return the rule that a phrase means, or None if it is to be compared with embeddings.

    `colour = red`, `colour is red`, `age >= 60` and `caption says wet road` speak of columns, and `and` joins several. Other words are
    compared with embeddings if these have a text side; else they are looked for in captions, and then among the values of columns.

    Args:
        phrase: a person's words.
        dataset: its columns are meant.
        has_text_side: whether phrases can be compared with embeddings.
        advice: what else could be done about words that mean nothing here.

    Raises:
        DataError: if the column or the value is not there, or nothing can be made of the words.
    """
    columns = {_plain(name): name for name in dataset.metadata_names}
    parts = list(_parts(phrase, columns))
    if parts and not (has_text_side and _names_no_column(parts, columns)):
        return _join([_rule(dataset, columns, *part) for part in parts])
    if has_text_side:
        return None
    if CAPTION_COLUMN in dataset.metadata_names:
        runs = [" ".join(run) for run in runs_of_words(phrase)]
        if runs:
            return _join([CaptionRule(column=CAPTION_COLUMN, words=run) for run in runs])
    return _bare_value(phrase, dataset, advice)


def _parts(phrase: str, columns: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (column, sign, value) of every part; nothing if the phrase is no statement about columns.

    A part without a sign goes on with the value before it: `place = sand and sea`.
    """
    found: list[tuple[str, str, str]] = []
    for part in _AND.split(phrase.strip()):
        match = _PART.fullmatch(part.strip())
        sign = "" if match is None else match[2].strip().lower()
        is_meant = match is not None and (sign in _SIGNS or _plain(match[1]) in columns)
        if match is not None and is_meant:
            found.append((match[1].strip(), sign, match[3].strip().strip("\"'“”")))
        elif found:
            column, sign, value = found[-1]
            found[-1] = (column, sign, f"{value} and {part.strip()}")
        else:
            return
    yield from found


def _names_no_column(parts: Sequence[tuple[str, str, str]], columns: Mapping[str, str]) -> bool:
    """Return whether signs stand in words that speak of no column, and of none by mistake."""
    return not any(difflib.get_close_matches(_plain(asked), columns, n=1) for asked, _, _ in parts)


def _rule(dataset: Dataset, columns: Mapping[str, str], asked: str, sign: str, value: str) -> Rule:
    column = columns.get(_plain(asked))
    if column is None:
        near = difflib.get_close_matches(_plain(asked), columns, n=1)
        hint = f" (did you mean {columns[near[0]]!r}?)" if near else ""
        raise DataError(
            f"There is no column {asked!r}{hint}.", given=asked, fix=_known_columns(dataset)
        )
    if sign in SAYS:
        words = [" ".join(run) for run in runs_of_words(value)]
        if not words:
            raise DataError("These words say nothing by themselves.", given=value)
        return _join([CaptionRule(column=column, words=one) for one in words])
    if sign in ("=", "==", "is"):
        return ColumnRule(column=column, values=(_value(dataset, column, value),))
    return _range(dataset, column, sign, value)


def _range(dataset: Dataset, column: str, sign: str, value: str) -> ColumnRule:
    kind = dataset.metadata(column).type
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not is_number or not np.isfinite(number):
        raise DataError(
            f"The column {column!r} cannot be compared with {value!r}: both must be numbers.",
            given=f"{column} {sign} {value}",
            fix=f'Ask for a value instead: "{column} = ...".',
        )
    # A rule takes low <= value < high.
    beyond = float(np.nextafter(number, np.inf))
    if sign in (">", ">="):
        return ColumnRule(column=column, low=beyond if sign == ">" else number)
    return ColumnRule(column=column, high=number if sign == "<" else beyond)


def _value(dataset: Dataset, column: str, asked: str) -> str:
    """Return the value of a column that is meant: as it is, in other letters, or yes for true."""
    values = _values(dataset, column)
    plain = asked.lower()
    alike = next((words for words in SAME if plain in words), frozenset({plain}))
    exact = [value for value in values if value == asked]
    same = [value for value in values if value.lower() == plain]
    meant = [*exact, *same, *(value for value in values if value.lower() in alike)]
    if meant:
        return meant[0]
    if _is_same_number(values, asked):
        return next(value for value in values if _number(value) == _number(asked))
    raise DataError(
        f"No sample has {asked!r} in the column {column!r}.",
        given=f"{column} = {asked}",
        fix=f"Its values are {_listed(values)}." if values else "The column is empty.",
    )


def _is_same_number(values: Sequence[str], asked: str) -> bool:
    number = _number(asked)
    return number is not None and any(_number(value) == number for value in values)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _values(dataset: Dataset, column: str) -> list[str]:
    found = dataset.metadata(column)
    if pa.types.is_nested(found.type):
        return []
    return sorted(str(value) for value in found.unique().to_pylist() if value is not None)


def _bare_value(phrase: str, dataset: Dataset, advice: str) -> Rule:
    """Return the rule of words that are one column's value, or the name of a yes/no column (`night`, `no night`)."""
    plain = phrase.strip().lower()
    found: list[ColumnRule] = []
    for column in dataset.metadata_names:
        values = _values(dataset, column)
        if len(values) > MAX_VALUES:
            continue
        found += [
            ColumnRule(column=column, values=(value,)) for value in values if value.lower() == plain
        ]
        for words, said in zip(SAME, (_plain(column), f"no {_plain(column)}"), strict=True):
            is_binary = {value.lower() for value in values} <= SAME[0] | SAME[1]
            if is_binary and _plain(plain) == said:
                meant = tuple(value for value in values if value.lower() in words)
                found += [ColumnRule(column=column, values=meant)] if meant else []
    if len(found) == 1:
        return found[0]
    if found:
        asks = " or ".join(f'"{rule.column} = {rule.values[0]}"' for rule in found[:MAX_NAMED])
        raise DataError(
            f"Several columns hold {phrase!r}.", given=phrase, fix=f"Say which: {asks}."
        )
    raise DataError(
        "These words cannot be compared with the samples: there are no embeddings with a text side and no captions, "
        "and no column holds them.",
        given=phrase,
        fix=f'Ask for a value of a column, as in "colour = red and size = small". {_known_columns(dataset)}{advice}',
    )


def _join(rules: Sequence[Rule]) -> Rule:
    flat = reduce(lambda every, rule: [*every, *rule.parts], rules, list[Rule]())
    return flat[0] if len(flat) == 1 else AllOfRule(rules=tuple(flat))


def _known_columns(dataset: Dataset) -> str:
    names = dataset.metadata_names
    return f"The columns are {_listed(names)}." if names else "The samples have no columns."


def _listed(names: Sequence[str]) -> str:
    further = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {further} more" if further > 0 else "")


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").lower().split())
