"""Prompts of a search: the baseline prompt of a class, with what it is a kind of in brackets, and captions added to it."""

import re
from collections.abc import Mapping, Sequence

from weakspot.core.errors import ConfigError
from weakspot.core.failures import LabelHierarchy
from weakspot.words.captions import content_words, counted, noun_of
from weakspot.words.wordnet import ancestors, lemma

DEFAULT_PROMPT = "a realistic photograph of {a class} ({parent})."
_N_SENSES = 3
_MAX_OTHERS = 200
_PLACEHOLDERS = frozenset({"a class", "class", "parent"})
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_EMPTY_BRACKET = re.compile(r"\s*\(\{parent\}\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[\n;]+|\.(?=[A-Za-z]{2})")
_SPOKEN_TEXT = """insect beetle spider crustacean mollusk worm bird fish shark reptile snake lizard turtle amphibian dinosaur dog
cat feline horse bear monkey ape rodent whale mammal animal fruit vegetable nut mushroom fungus flower tree
shrub herb grass plant beverage bread cheese cake dessert meat sauce soup dish food seafood vehicle aircraft
ship boat vessel bicycle motorcycle train truck bus weapon gun tool knife instrument machine computer telephone
camera clock lamp toy ball furniture chair table bed container bottle bag box basket cup bowl garment clothing
shoe hat jewelry fabric building house bridge fence tower structure room road mountain shore fuel device
equipment appliance disease tumor organ bone person athlete musician sport game sign book symbol mineral rock
metal"""
_SPOKEN_PHRASES = (
    "domestic animal",
    "musical instrument",
    "public transport",
    "celestial body",
    "body part",
)
_RATHER = (("plant", "food"), ("food", "animal"))
SPOKEN_KINDS = frozenset((*_SPOKEN_TEXT.split(), *_SPOKEN_PHRASES))
"""Kinds of things that people name in brackets; WordNet's own parents are often words that nobody says."""


def parent_of(
    class_name: str, *, other_classes: Sequence[str] = (), parents: Mapping[str, str] | None = None
) -> str | None:
    """Return what a class is a kind of, in a word that people use; None if that is not known.

    WordNet's nearest ancestor that people say is taken: a fly is an insect before it is a dipterous insect. Of a word with several
    meanings the one is chosen whose ancestors the other classes share most, and the commonest one without other classes (but the
    fruit before the tree, and the animal before its meat).

    Args:
        class_name: the class.
        other_classes: the other classes of the project.
        parents: parents that a person gave; they win.

    >>> parent_of("fly"), parent_of("crane"), parent_of("crane", other_classes=["robin", "heron"]), parent_of("qwertz")
    ('insect', 'device', 'bird', None)
    """
    if parents and class_name in parents:
        return noun_of(parents[class_name])
    own = {lemma(word) for word in content_words(noun_of(class_name))}
    for above in _meant_ancestors(class_name, other_classes):
        for spoken in (above, above.rsplit(" ", 1)[-1]):
            if spoken.lower() in SPOKEN_KINDS and lemma(spoken) not in own:
                return spoken.lower()
    return None


def _meant_ancestors(class_name: str, other_classes: Sequence[str]) -> tuple[str, ...]:
    """Return the ancestors of the meaning that fits the other classes best, nearest first."""
    noun = noun_of(class_name)
    others = [
        set(ancestors(noun_of(name))) for name in other_classes[:_MAX_OTHERS] if name != class_name
    ]
    meanings = _ancestors_by_sense(noun)
    if not meanings:
        return ()
    if not others:
        return next(
            (
                other
                for one, rather in _RATHER
                if one in meanings[0]
                for other in meanings[1:]
                if rather in other
            ),
            meanings[0],
        )
    fits = [
        sum(len(above & set(meaning)) for above in others) / len(meaning) for meaning in meanings
    ]
    return meanings[fits.index(max(fits))]


def _ancestors_by_sense(noun: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    known: set[str] = set()
    for n_senses in range(1, _N_SENSES + 1):
        fresh = tuple(above for above in ancestors(noun, n_senses=n_senses) if above not in known)
        known.update(fresh)
        if fresh:
            found.append(fresh)
    return found


def wordnet_hierarchy(
    class_names: Sequence[str], *, parents: Mapping[str, str] | None = None
) -> LabelHierarchy:
    """Return the label hierarchy that the brackets of the prompts tell: every class under what it is a kind of.

    >>> wordnet_hierarchy(["fly", "bee", "sparrow"]).parents
    {'fly': 'insect', 'bee': 'insect', 'sparrow': 'bird'}
    """
    known = {
        name: parent_of(name, other_classes=class_names, parents=parents) for name in class_names
    }
    return LabelHierarchy(
        parents={
            name: parent for name, parent in known.items() if parent is not None and parent != name
        }
    )


def baseline_prompt(
    class_name: str, *, template: str = DEFAULT_PROMPT, parent: str | None = None
) -> str:
    """Return the prompt of a class without any caption.

    Args:
        class_name: the class.
        template: `{a class}` is the class with its article, `{class}` without, `{parent}` what it is a kind of.
        parent: what it is a kind of; without one, a bracket around it goes too.

    Raises:
        ConfigError: if the template does not name the class, or names something else.

    >>> baseline_prompt("fly", parent="insect"), baseline_prompt("oat milk")
    ('a realistic photograph of a fly (insect).', 'a realistic photograph of oat milk.')
    """
    named = set(_PLACEHOLDER.findall(template))
    if named - _PLACEHOLDERS or not named & {"a class", "class"}:
        raise ConfigError(
            "The prompt must name the class, and nothing else in braces.",
            where="the setting search.prompt",
            given=template,
            fix="Write {a class} or {class}, and {parent} if you like.",
        )
    noun = noun_of(class_name)
    words = {"a class": counted(noun, noun), "class": noun, "parent": parent or ""}
    known = template if parent else _EMPTY_BRACKET.sub("", template)
    return " ".join(_PLACEHOLDER.sub(lambda found: words[found.group(1)], known).split())


def whole_prompt(baseline: str, sentences: Sequence[str]) -> str:
    """Return the baseline prompt followed by sentences.

    >>> whole_prompt("a realistic photograph of a fly (insect).", ["it is on a flower", "the background is green."])
    'a realistic photograph of a fly (insect). it is on a flower. the background is green.'
    """
    return " ".join(
        [baseline if baseline.endswith((".", "!", "?")) else f"{baseline}.", caption_of(sentences)]
    ).strip()


def caption_of(sentences: Sequence[str]) -> str:
    """Return sentences as one text.

    >>> caption_of(["it is on a flower", "it is dark"])
    'it is on a flower. it is dark.'
    """
    return " ".join(f"{sentence.rstrip('.!? ')}." for sentence in sentences)


def sentences_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a text in lower case, without their full stops, each once.

    >>> sentences_of("It is on a flower.  The background is  blurred. it is on a flower.")
    ('it is on a flower', 'the background is blurred')
    """
    pieces = (
        " ".join(piece.lower().split()).strip(" .!?,:-\"'") for piece in _SENTENCE_END.split(text)
    )
    return tuple(dict.fromkeys(piece for piece in pieces if content_words(piece)))
