"""The words that are tried for a class, from every source there is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from weakspot.core.assistants import LEAST_TRUST, Propose, TrustPhrases
from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.lexicon.captions import content_words, noun_of
from weakspot.lexicon.vocabulary import ClassWords, built_in_vocabulary, words_of_ancestors
from weakspot.lexicon.wordnet import hyponyms, lemma

Words = ClassWords | Mapping[str, Sequence[str]]
LONGEST = {"adjectives": 3, "places": 7}
_KINDS_OF_WORDS = ("adjectives", "nouns", "places")


@dataclass(frozen=True, kw_only=True)
class WordSources:
    """Where the words for a class come from.

    Args:
        adjectives: instead of the built-in ones, those for kinds of classes included.
        places: instead of the built-in ones, those for kinds of classes included.
        class_words: words by class, or by what classes are kinds of.
        n_kinds: kinds of the class, out of WordNet, that are tried as nouns.
        n_proposed: adjectives and places that a language model is asked for.
    """

    adjectives: tuple[str, ...] | None = None
    places: tuple[str, ...] | None = None
    class_words: Mapping[str, Words] = field(default_factory=dict)
    n_kinds: int = 0
    n_proposed: int = 0

    def words_for(
        self,
        class_name: str,
        propose: Propose | None,
        *,
        is_absent: bool,
        trust: TrustPhrases | None = None,
    ) -> ClassWords:
        """Return the words for a class; of samples that lack it nothing is known but what is said of all images.

        Built-in words that the text side does not know are left out; what people give and a language model proposes stays.
        """
        built_in = built_in_vocabulary()
        noun = noun_of(class_name)
        general = ClassWords(adjectives=built_in.adjectives, places=built_in.places)
        if is_absent:
            return self._replace(known_words(general, trust)).joined(self._given(class_name))
        found = ClassWords(nouns=hyponyms(noun, most=self.n_kinds, commonest_first=True))
        kinds = known_words(found, trust)
        of_kind = general.joined(words_of_ancestors(noun, built_in.by_ancestor))
        built = self._replace(known_words(of_kind, trust))
        proposed = (
            proposed_words(noun, propose, self.n_proposed)
            if propose is not None and self.n_proposed
            else ClassWords()
        )
        return without_own_words(built.joined(self._given(class_name), kinds, proposed), noun)

    def _replace(self, words: ClassWords) -> ClassWords:
        return ClassWords(
            adjectives=words.adjectives if self.adjectives is None else self.adjectives,
            nouns=words.nouns,
            places=words.places if self.places is None else self.places,
        )

    def _given(self, class_name: str) -> ClassWords:
        given = {name: _as_class_words(words, name) for name, words in self.class_words.items()}
        noun = noun_of(class_name)
        above = {lemma(name): words for name, words in given.items() if name != class_name}
        return given.get(class_name, ClassWords()).joined(words_of_ancestors(noun, above))


def known_words(words: ClassWords, trust: TrustPhrases | None) -> ClassWords:
    """Return the words that the text side knows; all of them if it cannot say."""
    every = [*words.adjectives, *words.nouns, *words.places]
    found = None if trust is None or not every else trust(every)
    if found is None:
        return words
    known = {word for word, one in zip(every, found, strict=True) if one >= LEAST_TRUST}
    return ClassWords(
        adjectives=tuple(word for word in words.adjectives if word in known),
        nouns=tuple(word for word in words.nouns if word in known),
        places=tuple(word for word in words.places if word in known),
    )


def sayable_words(words: ClassWords, says: TrustPhrases | None) -> frozenset[str] | None:
    """Return the words that were seen to be told well on other images; None if nobody can say."""
    every = [*words.adjectives, *words.nouns, *words.places, *built_in_vocabulary().looks]
    found = None if says is None else says(every)
    if found is None:
        return None
    return frozenset(word for word, one in zip(every, found, strict=True) if one >= LEAST_TRUST)


def without_own_words(words: ClassWords, noun: str) -> ClassWords:
    """Return words without those that only repeat the noun: no orange orange."""
    own = {lemma(word) for word in content_words(noun)}
    return ClassWords(
        adjectives=tuple(word for word in words.adjectives if lemma(word) not in own),
        nouns=tuple(word for word in words.nouns if noun_of(word) != noun),
        places=words.places,
    )


def proposed_words(noun: str, propose: Propose, most: int) -> ClassWords:
    """Return what a language model proposes for a noun; nothing if it cannot be asked or answers something else."""
    listed: JsonValue = {"type": "array", "items": {"type": "string"}, "maxItems": most}
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"adjectives": listed, "places": listed},
        "required": ["adjectives", "places"],
    }
    prompt = (
        f"Photos of the class {noun!r} differ. Give up to {most} adjectives that can stand before the noun, such as 'green', "
        f"and up to {most} places or circumstances that can follow it, with their preposition, such as 'on a table'. "
        "Prefer what an image can show: colours, materials, states, poses, backgrounds, light, company."
    )
    try:
        answer = propose(prompt, schema)
    except (ModelError, UnavailableError):
        return ClassWords()
    if not isinstance(answer, dict):
        return ClassWords()
    return ClassWords(
        **{kind: _usable(answer.get(kind), longest, most) for kind, longest in LONGEST.items()}
    )


def _usable(answer: JsonValue, longest: int, most: int) -> tuple[str, ...]:
    if not isinstance(answer, list):
        return ()
    phrases = (
        " ".join(item.lower().strip(" .,;").split()) for item in answer if isinstance(item, str)
    )
    return tuple(dict.fromkeys(phrase for phrase in phrases if _is_phrase(phrase, longest)))[:most]


def _is_phrase(phrase: str, longest: int) -> bool:
    letters = phrase.replace(" ", "").replace("-", "").replace("'", "")
    return letters.isalpha() and len(phrase.split()) <= longest and bool(content_words(phrase))


def _as_class_words(given: Words, class_name: str) -> ClassWords:
    if isinstance(given, ClassWords):
        return given
    unknown = sorted(set(given) - set(_KINDS_OF_WORDS))
    if unknown:
        raise ConfigError(
            f"Unknown kinds of words: {unknown}.",
            where=f"class_words of {class_name!r}",
            fix="Use adjectives, nouns or places.",
        )
    return ClassWords(**{kind: tuple(words) for kind, words in given.items()})
