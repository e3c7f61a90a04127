"""Words that a network of places can tell: in a kitchen, on a beach, outdoors, with trees."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from tomllib import loads

from weakspot.backends.embedded.scenes_network import ScenesNetwork, scene_names
from weakspot.lexicon.captions import counted
from weakspot.lexicon.wordnet import lemma
from weakspot.pipeline.models.witnesses.witness import SEEN, Judge, Looker, above, surely

LEAST_PROBABILITY = 0.25
LEAST_NAMED, LEAST_SIDE = 0.8, 0.8
RESPONSE, RESPONSE_WIDTH = -0.4, 0.2
OUTDOORS, INDOORS = "outdoors", "indoors"
_SIDES = {"outdoors": True, "outside": True, "indoors": False, "inside": False}
_PLACE = re.compile(r"(in|on|at|inside|by|near|with|among) (?:an? |the |some )?(.+)")
_WORDS_FILE = "scene_words.toml"
_MISTAKEN = frozenset({"ball pit"})  # what a heap of round things is taken for
_ASIDE = re.compile(r" (indoor|outdoor|exterior|interior|natural|urban|shop|platform)$")


@dataclass(frozen=True, kw_only=True)
class ScenesWitness:
    """Sees the 365 kinds of places of Places365 and some of SUN's attributes of scenes.

    Args:
        network: the network.
    """

    network: ScenesNetwork
    kind: str = "scenes"
    is_by_class: bool = False

    def looker(self, class_name: str) -> Looker:
        del class_name
        return self.network

    def judge(self, words: str) -> Judge | None:
        plain = " ".join(words.lower().replace("-", " ").split())
        if plain in _SIDES:
            return partial(_on_side, is_outdoors=_SIDES[plain])
        match = _PLACE.fullmatch(plain)
        if match is None:
            return None
        scenes, attributes = meant_by(lemma(match[2]), is_place=match[1] != "with")
        if not scenes and not attributes:
            return None
        return partial(_judged, scenes=scenes, attributes=attributes)

    def tags(self, said: str) -> Mapping[str, str]:
        outdoors = _on_side(said, is_outdoors=True)
        is_sure = max(outdoors, 1.0 - outdoors) >= LEAST_SIDE
        side = (OUTDOORS if outdoors >= SEEN else INDOORS) if is_sure else ""
        return {"kind of place": self._named(said), "indoors or outdoors": side}

    def phrase(self, said: str) -> str:
        name = self._named(said)
        return f"in {counted(name, name)}" if name else self.tags(said)["indoors or outdoors"]

    def _named(self, said: str) -> str:
        scenes = _scenes(said)
        place = max(scenes, key=lambda one: scenes[one], default=None)
        name = "" if place is None else _ASIDE.sub("", scene_names().scenes[place])
        return (
            name
            if place is not None and scenes[place] >= LEAST_NAMED and name not in _MISTAKEN
            else ""
        )


@cache
def meant_by(noun: str, *, is_place: bool) -> tuple[frozenset[int], frozenset[int]]:
    """Return the places of the scenes and of the attributes that a noun stands for.

    A scene is meant by its own last word, `garden` by `japanese garden`, and by the words of the list that ships.

    Raises:
        UnavailableError: if the names were never fetched and there is no package index.
    """
    names, listed = scene_names(), _listed()
    entry = listed.get(noun, {})
    scenes = {names.scenes.index(one) for one in entry.get("scenes", ())} if is_place else set()
    if is_place and not entry.get("only", False):
        scenes |= {place for place, name in enumerate(names.scenes) if _is_called(name, noun)}
    attributes = {names.attributes.index(one) for one in entry.get("attributes", ())}
    return frozenset(scenes), frozenset(attributes)


def _is_called(scene: str, noun: str) -> bool:
    return _ASIDE.sub("", scene) == noun or _ASIDE.sub("", scene).endswith(f" {noun}")


@cache
def _listed() -> Mapping[str, Mapping[str, list[str]]]:
    content = files("weakspot.pipeline.models.witnesses").joinpath(_WORDS_FILE)
    return loads(content.read_text(encoding="utf-8"))


def _on_side(said: str, *, is_outdoors: bool) -> float:
    names = scene_names()
    scenes = _scenes(said)
    total = sum(scenes.values())
    own = sum(p for place, p in scenes.items() if names.is_outdoors[place])
    outdoors = own / total if total else SEEN
    return outdoors if is_outdoors else 1.0 - outdoors


def _judged(said: str, *, scenes: frozenset[int], attributes: frozenset[int]) -> float:
    found = _scenes(said)
    places = surely(min(sum(found.get(place, 0.0) for place in scenes), 1.0), LEAST_PROBABILITY)
    responses = json.loads(said)["attributes"]
    attributed = [above(responses[one], RESPONSE, width=RESPONSE_WIDTH) for one in attributes]
    return max([places, *attributed])


def _scenes(said: str) -> dict[int, float]:
    return {int(place): float(value) for place, value in json.loads(said)["scenes"].items()}
