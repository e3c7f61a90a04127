import json

import pytest

from weakspot.models.embedded.witnesses import ObjectsNetwork, object_words
from weakspot.run.witnesses import ObjectsWitness, classes_of, object_noun

WITNESS = ObjectsWitness(network=ObjectsNetwork())
pytestmark = pytest.mark.network


def _said(**probabilities):
    places = {words[0].replace(" ", "_"): place for place, words in enumerate(object_words())}
    return json.dumps({str(places[name]): value for name, value in probabilities.items()})


def test_judge__kinds_of_a_thing_count_together():
    judge = WITNESS.judge("with a dog")

    assert judge(_said(Chihuahua=0.3, beagle=0.3)) > 0.7
    assert judge(_said(tabby=0.9)) == 0.0
    assert judge(_said(Chihuahua=0.05)) < 0.5


def test_judge__few_classes_need_less():
    assert WITNESS.judge("lemon")(_said(lemon=0.15)) > 0.5
    assert WITNESS.judge("with a dog")(_said(beagle=0.15)) < 0.5


@pytest.mark.parametrize(
    "words",
    [
        "green",
        "with a child",
        "with a person",
        "in a kitchen",
        "on the left",
        "with other fruit",
        "wooden",
        "toy",
        "with an object",
    ],
)
def test_judge__what_it_cannot_tell(words):
    assert WITNESS.judge(words) is None


def test_object_noun__containers_are_things():
    assert object_noun("in a shopping trolley") == "shopping cart"
    assert object_noun("in a plastic bag") == "plastic bag"
    assert object_noun("with dogs") == "dog"


def test_classes_of__meaning_not_letters():
    words = {object_words()[place][0] for place in classes_of("dog")}

    assert {"Chihuahua", "Cardigan", "malinois"} <= words
    assert "hotdog" not in words
    assert classes_of("artifact") == frozenset()


def test_tags__only_where_it_is_sure():
    assert WITNESS.tags(_said(Granny_Smith=0.7)) == {"object": "granny smith"}
    assert WITNESS.tags(_said(Granny_Smith=0.3)) == {"object": ""}
    assert WITNESS.phrase(json.dumps({})) == ""
