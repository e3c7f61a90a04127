import json

import pytest

from weakspot.models.embedded.witnesses import ScenesNetwork, scene_names
from weakspot.run.witnesses import ScenesWitness, _listed, meant_by

WITNESS = ScenesWitness(network=ScenesNetwork())
pytestmark = pytest.mark.network


def _said(responses=None, **scenes):
    names = scene_names()
    attributes = [-1.0] * len(names.attributes)
    for name, value in (responses or {}).items():
        attributes[names.attributes.index(name)] = value
    places = {str(names.scenes.index(name.replace("_", " "))): p for name, p in scenes.items()}
    return json.dumps({"scenes": places, "attributes": attributes})


def test_judge__place_by_its_own_name():
    judge = WITNESS.judge("in a kitchen")

    assert judge(_said(kitchen=0.6, bar=0.4)) > 0.7
    assert judge(_said(beach=0.9)) < 0.1


def test_judge__several_scenes_are_one_place():
    assert WITNESS.judge("in a garden")(_said(japanese_garden=0.3, botanical_garden=0.3)) > 0.7
    assert WITNESS.judge("in the mountains")(_said(glacier=0.4, mountain_path=0.4)) > 0.7
    assert WITNESS.judge("on a beach")(_said(coast=0.6)) > 0.7


def test_judge__attributes_of_scenes():
    judge = WITNESS.judge("with leaves")

    assert judge(_said({"leaves": 0.2})) > 0.8
    assert judge(_said({"trees": 0.5})) < 0.3
    assert WITNESS.judge("in the snow")(_said({"snow": 0.2}, house=0.9)) > 0.8


def test_judge__indoors_and_outdoors():
    said = _said(kitchen=0.6, beach=0.2)

    assert WITNESS.judge("indoors")(said) == pytest.approx(0.75)
    assert WITNESS.judge("outside")(said) == pytest.approx(0.25)
    assert WITNESS.judge("indoors")(_said()) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "words", ["green", "by a window", "on a table", "with text", "on the left", "in a pile"]
)
def test_judge__what_it_cannot_tell(words):
    assert WITNESS.judge(words) is None


def test_meant_by__every_listed_name_exists():
    names = scene_names()
    for noun in _listed():
        scenes, attributes = meant_by(noun, is_place=True)
        assert max(scenes, default=0) < len(names.scenes)
        assert scenes or attributes or _listed()[noun].get("only")
    assert meant_by("office", is_place=False)[0] == frozenset()


def test_tags__only_where_it_is_sure():
    assert WITNESS.tags(_said(supermarket=0.9)) == {
        "kind of place": "supermarket",
        "indoors or outdoors": "indoors",
    }
    assert WITNESS.tags(_said(ball_pit=0.95))["kind of place"] == ""
    assert WITNESS.tags(_said(kitchen=0.5, beach=0.5)) == {
        "kind of place": "",
        "indoors or outdoors": "",
    }


def test_phrase__with_its_article():
    assert WITNESS.phrase(_said(art_gallery=0.9)) == "in an art gallery"
    assert WITNESS.phrase(_said(kitchen=0.5, bar=0.5)) == "indoors"
