"""Words that a network of objects can tell: a dog, with a dog, in a shopping trolley; WordNet says which classes are meant."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from weakspot.backends.embedded.objects_network import ObjectsNetwork, object_words
from weakspot.lexicon.wordnet import is_kind_of, is_known, lemma
from weakspot.pipeline.models.witnesses.witness import Judge, Looker, surely

LEAST_PROBABILITY, LEAST_PER_CLASS = 0.06, 0.002
"""Many kinds together gather more stray probability than few."""
LEAST_NAMED = 0.5
MOST_CLASSES = 420
_WITH = re.compile(r"(?:with |of |showing |next to |beside )?(?:an? |the |some |several )?(.+)")
_IN = re.compile(r"(?:in|on|inside) (?:an? |the |some )?(.+)")
_CONTAINERS = ("container", "bag", "wheeled vehicle")
_UNSEEN = ("person", "body part")
_TWO_MEANINGS = frozenset({"toy", "paper", "glass", "metal", "plastic", "stone", "leather", "tank"})
_ALSO = {"shopping trolley": "shopping cart", "trolley": "shopping cart"}


@dataclass(frozen=True, kw_only=True)
class ObjectsWitness:
    """Sees the thousand kinds of objects of ImageNet, and what WordNet puts above them; people are not among them.

    Args:
        network: the network.
    """

    network: ObjectsNetwork
    kind: str = "objects"
    is_by_class: bool = False

    def looker(self, class_name: str) -> Looker:
        del class_name
        return self.network

    def judge(self, words: str) -> Judge | None:
        noun = object_noun(words)
        classes = frozenset() if noun is None else classes_of(noun)
        if not classes:
            return None
        least = LEAST_PROBABILITY + LEAST_PER_CLASS * len(classes)
        return lambda said: surely(
            min(sum(p for place, p in _probabilities(said).items() if place in classes), 1.0),
            least,
        )

    def tags(self, said: str) -> Mapping[str, str]:
        return {"object": self._named(said)}

    def phrase(self, said: str) -> str:
        """Return the kind of object in the image where the network is sure of it."""
        return self._named(said)

    def _named(self, said: str) -> str:
        found = _probabilities(said)
        place = max(found, key=lambda one: found[one], default=None)
        if place is None or found[place] < LEAST_NAMED:
            return ""
        return object_words()[place][0].lower()


def object_noun(words: str) -> str | None:
    """Return the thing that words speak of, or None where they speak of none that can be told.

    What something is in or on is a thing only if things can be put into it: a place is for others to tell.

    >>> [object_noun(words) for words in ("with a dog", "in a basket", "in a kitchen", "green", "with a child")]
    ['dog', 'basket', None, None, None]
    """
    plain = " ".join(words.lower().replace("-", " ").split())
    inside = _IN.fullmatch(plain)
    match = inside or _WITH.fullmatch(plain)
    if match is None:
        return None
    noun = _ALSO.get(match[1], lemma(match[1]))
    if not is_known(noun, "noun") or is_known(noun, "adj") or noun in _TWO_MEANINGS:
        return None
    if any(is_kind_of(noun, unseen) for unseen in _UNSEEN):
        return None
    if inside and not any(is_kind_of(noun, kind) for kind in _CONTAINERS):
        return None
    return noun


@cache
def classes_of(noun: str) -> frozenset[int]:
    """Return the places of the classes that are a noun or a kind of it; none where that would be nearly everything.

    Raises:
        UnavailableError: if the names of the classes were never fetched and there is no package index.
    """
    found = frozenset(
        place for place, words in enumerate(object_words()) if is_kind_of(words, noun)
    )
    return found if len(found) <= MOST_CLASSES else frozenset()


def _probabilities(said: str) -> dict[int, float]:
    return {int(place): float(value) for place, value in json.loads(said).items()}
