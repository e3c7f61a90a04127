"""WordNet's nouns and adjectives: lemmas, synonyms, kinds of things and what things are kinds of.

The data (WordNet 3.0 without explanations, licence beside it) is read on first use. Named things, such as persons and towns, come
after kinds of things among a word's senses, so that the first sense of `crane` is no poet.
"""

import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

from weakspot.core.errors import DataError

Part = Literal["noun", "adj"]
PARTS: tuple[Part, ...] = ("noun", "adj")
N_SENSES = 3
_HEADER = "weakspot wordnet 1"
_NOUN_ENDINGS = (
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ies", "y"),
    ("men", "man"),
    ("s", ""),
)
_ADJECTIVE_ENDINGS = (("er", ""), ("est", ""), ("er", "e"), ("est", "e"))
_SHORTEST_PLURAL = 4
_COMMON = 10
_VISIBLE = "physical entity"
_BRITISH = (
    ("our", "or"),
    ("ise", "ize"),
    ("grey", "gray"),
    ("centre", "center"),
    ("fibre", "fiber"),
    ("woollen", "woolen"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Words:
    """Words of one part of speech.

    Args:
        synsets: `words|...`, positions of pointed synsets (negative for a thing with a name of its own) and count, tabs between.
        senses: positions of a word's synsets, commonest first, as read.
        exceptions: lemma by irregular form.
    """

    synsets: Sequence[str]
    senses: Mapping[str, str]
    exceptions: Mapping[str, str]

    def senses_of(self, word: str) -> list[int]:
        """Return the synsets of a word, commonest first."""
        return [int(position) for position in self.senses.get(word, "").split()]

    def words(self, synset: int) -> list[str]:
        """Return the words of a synset, commonest first."""
        return self.synsets[synset].split("\t", 1)[0].split("|")

    def pointed(self, synset: int) -> list[int]:
        """Return the synsets above a noun's, or similar to an adjective's."""
        fields = self.synsets[synset].split("\t")
        return [abs(int(position)) for position in fields[1].split()] if len(fields) > 1 else []

    def count(self, synset: int) -> int:
        fields = self.synsets[synset].split("\t")
        return int(fields[2]) if len(fields) > 2 else 0  # noqa: PLR2004


def are_synonyms(first: str, second: str) -> bool:
    """Return whether two words mean the same: one's first sense is among the first senses of the other; number and spelling aside.

    >>> are_synonyms("couch", "sofas"), are_synonyms("grey", "gray"), are_synonyms("dog", "cat")
    (True, True, False)
    """
    one, two = lemma(first), lemma(second)
    if one == two or _american(one) == _american(two):
        return True
    for part in PARTS:
        senses, others = _senses(one, part), _senses(two, part)
        if senses and others and (senses[0] in others[:N_SENSES] or others[0] in senses[:N_SENSES]):
            return True
    return False


def synonyms(word: str) -> frozenset[str]:
    """Return the other words of a word's first sense, as noun and as adjective, in lower case.

    >>> sorted(synonyms("sofa"))
    ['couch', 'lounge']
    """
    single = lemma(word)
    found = {
        other.lower()
        for part in PARTS
        for synset in _senses(single, part)[:1]
        for other in _wordnet()[part].words(synset)
    }
    return frozenset(found - {single, word.lower()})


@lru_cache(maxsize=65_536)
def lemma(word: str) -> str:
    """Return a word's dictionary form in lower case: the singular of a noun, the plain form of an adjective.

    >>> [lemma(word) for word in ("Dogs", "leaves", "children", "cherry tomatoes", "greener", "bus")]
    ['dog', 'leaf', 'child', 'cherry tomato', 'green', 'bus']
    """
    single = _lemma(_plain(word))
    return (
        single
        if "-" not in single or any(single in _wordnet()[part].senses for part in PARTS)
        else _lemma(_unhyphened(single))
    )


def everyday_lemma(word: str) -> str:
    """Return the lemma of a word as captions use it: plurals with a meaning of their own that nobody uses are plurals.

    >>> [everyday_lemma(word) for word in ("roads", "umbrellas", "glasses", "shorts")]
    ['road', 'umbrella', 'glasses', 'shorts']
    """
    single, nouns = lemma(word), _wordnet()["noun"]
    shorter = _first_known(single, _NOUN_ENDINGS, nouns)
    if shorter is None or _usage(nouns, single) > 0:
        return single
    return shorter if _usage(nouns, shorter) >= _COMMON else single


def _usage(words: _Words, word: str) -> int:
    return sum(words.count(sense) for sense in words.senses_of(word))


def hyponyms(
    noun: str, *, most: int, first_sense_only: bool = True, commonest_first: bool = False
) -> tuple[str, ...]:
    """Return kinds of a thing, all levels, nearest level first and commonest first within a level; one word a kind.

    The first sense is the commonest that can be seen: the building, not the institution.

    Args:
        noun: a class name will do; if its words together are unknown, the last of them counts.
        most: how many at most.
        first_sense_only: whether only the commonest meaning is looked at.
        commonest_first: order by how often the word is used with this meaning, whatever the level: `bird` before `larva`.
    """
    senses = _noun_senses(noun)
    own = {word.lower() for synset in senses[:1] for word in _wordnet()["noun"].words(synset)}
    kinds: dict[str, None] = {}
    below: Iterable[int] = _breadth_first(senses[:1] if first_sense_only else senses, _below)
    if commonest_first:
        below = sorted(below, key=lambda synset: -_wordnet()["noun"].count(synset))
    for synset in below:
        word = _wordnet()["noun"].words(synset)[0]
        if word.lower() not in own:
            kinds[word] = None
        if len(kinds) >= most:
            break
    return tuple(kinds)[:most]


def ancestors(noun: str, *, n_senses: int = 1) -> tuple[str, ...]:
    """Return what a thing is a kind of, nearest first; () if the noun is unknown.

    Args:
        noun: a class name will do; if its words together are unknown, the last of them counts.
        n_senses: how many of its meanings are looked at, commonest first, those that can be seen before others.

    >>> ancestors("apple")[:3], "animal" in ancestors("golden retriever")
    (('edible fruit', 'pome', 'produce'), True)
    """
    words = _wordnet()["noun"]
    found = _breadth_first(_noun_senses(noun)[:n_senses], _above)
    return tuple(dict.fromkeys(words.words(synset)[0] for synset in found))


def is_kind_of(thing: str | tuple[str, ...], noun: str) -> bool:
    """Return whether a thing, by its commonest meaning or by all the words of one meaning, is a kind of another, or that itself.

    >>> is_kind_of(("Cardigan", "Cardigan Welsh corgi"), "dogs"), is_kind_of("cardigan", "dog"), is_kind_of("dog", "person")
    (True, False, False)
    """
    return bool(set(_noun_senses(noun)[:1]) & _kinds(thing))


@cache
def _kinds(thing: str | tuple[str, ...]) -> frozenset[int]:
    """Return the synset of a thing and all that are above it."""
    if isinstance(thing, str):
        own = _noun_senses(thing)[:1]
    else:
        nouns, listed = _wordnet()["noun"], [word.lower() for word in thing]
        senses = nouns.senses_of(listed[0])
        same = [sense for sense in senses if [one.lower() for one in nouns.words(sense)] == listed]
        own = sorted(same or senses, key=_oddness)[:1]
    return frozenset((*own, *_breadth_first(own, _above)))


@lru_cache(maxsize=65_536)
def is_known(word: str, part: Part | None = None) -> bool:
    """Return whether WordNet lists a word, or its lemma, as a noun or adjective."""
    single = lemma(word)
    return any(single in _wordnet()[one].senses for one in ((part,) if part else PARTS))


def _above(synset: int) -> Sequence[int]:
    """Return the synsets above a noun's."""
    return _wordnet()["noun"].pointed(synset)


def _below(synset: int) -> Sequence[int]:
    """Return the synsets below a noun's, commonest first."""
    words = _wordnet()["noun"]
    return sorted(_all_below().get(synset, ()), key=lambda one: -words.count(one))


@cache
def _all_below() -> Mapping[int, Sequence[int]]:
    below: dict[int, list[int]] = {}
    for position, line in enumerate(_wordnet()["noun"].synsets):
        fields = line.split("\t", 2)
        for above in fields[1].split() if len(fields) > 1 else ():
            if not above.startswith("-"):
                below.setdefault(int(above), []).append(position)
    return below


def _breadth_first(starts: Sequence[int], nexts: Callable[[int], Sequence[int]]) -> Iterator[int]:
    """Yield the synsets reached from some, without those, nearest first and each once."""
    seen, level = set(starts), list(starts)
    while level:
        reached = [synset for start in level for synset in nexts(start)]
        level = [synset for synset in dict.fromkeys(reached) if synset not in seen]
        seen.update(level)
        yield from level


def _noun_senses(noun: str) -> list[int]:
    words = _unhyphened(_plain(noun)).split(" ") if not is_known(noun, "noun") else [_plain(noun)]
    for start in range(len(words)):
        senses = _senses(lemma(" ".join(words[start:])), "noun")
        if senses:
            return sorted(senses, key=lambda sense: _oddness(sense)[0])
    return []


def _oddness(synset: int) -> tuple[bool, bool]:
    """Return what puts a meaning behind others of the same words: it cannot be seen, or is a region, as Chihuahua is in Mexico."""
    above = {_wordnet()["noun"].words(one)[0] for one in _breadth_first([synset], _above)}
    return _VISIBLE not in above, "location" in above


def _senses(single: str, part: Part) -> list[int]:
    words = _wordnet()[part]
    return words.senses_of(single) or words.senses_of(_american(single))


@cache
def _lemma(word: str) -> str:
    nouns, adjectives = _wordnet()["noun"], _wordnet()["adj"]
    if word in nouns.exceptions and nouns.exceptions[word] in nouns.senses:
        return nouns.exceptions[word]
    if word in nouns.senses or word in adjectives.senses:
        return word
    if word in adjectives.exceptions:
        return adjectives.exceptions[word]
    found = _first_known(word, _NOUN_ENDINGS, nouns) or _first_known(
        word, _ADJECTIVE_ENDINGS, adjectives
    )
    if found:
        return found
    if " " in word:
        before, last = word.rsplit(" ", 1)
        return f"{before} {_lemma(last)}"
    looks_plural = (
        len(word) >= _SHORTEST_PLURAL
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is"))
    )
    return word[:-1] if looks_plural else word


def _first_known(word: str, endings: Iterable[tuple[str, str]], words: _Words) -> str | None:
    forms = (word[: -len(ending)] + other for ending, other in endings if word.endswith(ending))
    return next((form for form in forms if form in words.senses), None)


def _american(word: str) -> str:
    for british, american in _BRITISH:
        word = word.replace(british, american)
    return word


def _unhyphened(word: str) -> str:
    return word.replace("-", " ")


def _plain(word: str) -> str:
    return " ".join(word.replace("_", " ").lower().split())


@cache
def _wordnet() -> Mapping[Part, _Words]:
    raw = files(__package__).joinpath("data").joinpath("wordnet.txt.gz").read_bytes()
    header, *sections = gzip.decompress(raw).decode().split("\n[")
    if header != _HEADER:
        raise DataError(
            "The WordNet of the package cannot be read.",
            given=header[:40],
            fix="Install weakspot again.",
        )
    contents = {
        title: content.split("\n")
        for title, content in (section.split("]\n", 1) for section in sections)
    }
    return {
        part: _Words(
            synsets=contents[f"{part} synsets"],
            senses=_pairs(contents[f"{part} senses"]),
            exceptions=_pairs(contents[f"{part} exceptions"]),
        )
        for part in PARTS
    }


def _pairs(lines: Sequence[str]) -> dict[str, str]:
    return {word: rest for word, _, rest in (line.partition("\t") for line in lines)}
