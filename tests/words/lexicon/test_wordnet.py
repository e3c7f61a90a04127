import pytest
from tests import build

from weakspot.words.wordnet import ancestors, are_synonyms, hyponyms, is_known, lemma, synonyms


@pytest.mark.parametrize(
    ("first", "second"),
    build.pairs(
        "couch: sofa, sofas: Couches, grey: gray, colour: color, colourful: colorful, "
        "woollen: woolen, car: automobile, cab: taxi, big: large, small: little, round: "
        "circular, striped: stripy, blorb: blorb, pickup_truck: pickup"
    ),
)
def test_are_synonyms__same_meaning(first, second):
    assert are_synonyms(first, second)
    assert are_synonyms(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    build.pairs(
        "dog: cat, old: new, green: grassy, plain: patterned, dark: black, man: woman, blorb: "
        "glorp, : green, one: many, disc: star"
    ),
)
def test_are_synonyms__other_meaning(first, second):
    assert not are_synonyms(first, second)
    assert not are_synonyms(second, first)


def test_synonyms__of_the_first_sense_only():
    assert synonyms("sofa") == {"couch", "lounge"}
    assert synonyms("Small") == {"little"}
    assert "automobile" in synonyms("cars")
    assert "cable car" not in synonyms("car")
    assert synonyms("blorb") == frozenset()
    assert synonyms("") == frozenset()


@pytest.mark.parametrize(
    ("word", "expected"),
    build.pairs(
        "Dogs: dog, leaves: leaf, children: child, mice: mouse, women: woman, buses: bus, "
        "bus: bus, grass: grass, lens: lens, potatoes: potato, cities: city, boxes: box, "
        "cherry tomatoes: cherry tomato, polar_bears: polar bear, Golden-Delicious apples: "
        "golden delicious apple, T-shirts: t-shirt, greener: green, largest: large, "
        "smartphones: smartphone, blorb: blorb, virus: virus, : , s: s"
    ),
)
def test_lemma__dictionary_form(word, expected):
    assert lemma(word) == expected


def test_hyponyms__nearest_level_first_and_commonest_first():
    dogs = hyponyms("dog", most=200)
    # WordNet counted puppies in its texts, and pugs never; golden retrievers stand four levels below dogs.
    assert dogs[0] == "puppy"
    assert dogs.index("puppy") < dogs.index("pug") < dogs.index("golden retriever")
    assert len(dogs) == len(set(dogs)) > 100
    assert "dog" not in dogs
    assert hyponyms("dog", most=3) == dogs[:3]
    assert hyponyms("dogs", most=3) == dogs[:3]


def test_hyponyms__other_senses_on_request():
    # The first sense of a crane that can be seen is the machine, another is the bird.
    assert hyponyms("crane", most=10) == ("davit", "derrick", "transporter")
    assert "whooping crane" in hyponyms("crane", most=10, first_sense_only=False)


def test_hyponyms__unknown_or_without_kinds():
    assert hyponyms("blorb", most=5) == ()
    assert hyponyms("", most=5) == ()
    assert hyponyms("dog", most=0) == ()
    assert hyponyms("golden retriever", most=5) == ()


@pytest.mark.parametrize(
    ("noun", "ancestor"),
    build.pairs(
        "dog: animal, golden retrievers: dog, school bus: conveyance, pickup truck: vehicle, "
        "apple: food, Golden-Delicious: apple, oat milk: food, T-shirt: clothing, church: "
        "building, woman: person, rose: plant"
    ),
)
def test_ancestors__what_a_class_is(noun, ancestor):
    assert ancestor in ancestors(noun)


def test_ancestors__nearest_first_and_each_once():
    found = ancestors("dog")
    assert found.index("canine") < found.index("animal") < found.index("entity")
    assert len(found) == len(set(found))
    assert "dog" not in found
    assert ancestors("blorb") == ()
    assert ancestors("") == ()


def test_ancestors__of_several_senses():
    # A satsuma is a tree first and its fruit second.
    assert "food" not in ancestors("satsuma")
    assert {"tree", "food"} <= set(ancestors("satsuma", n_senses=2))


def test_is_known__by_part_of_speech():
    assert is_known("dogs")
    assert is_known("grassy", "adj")
    assert not is_known("grassy", "noun")
    assert not is_known("blorb")


def test_hyponyms__named_things_are_no_kinds():
    churches = hyponyms("church", most=20)
    assert churches[:2] == ("cathedral", "abbey")
    assert not {"Westminster Abbey", "Chartres Cathedral"} & set(churches)


def test_hyponyms__commonest_first_whatever_the_level():
    nearest = hyponyms("animal", most=30)
    commonest = hyponyms("animal", most=30, commonest_first=True)
    assert commonest[:5] == ("horse", "homo", "dog", "cattle", "bird")
    assert "bird" not in nearest
    assert hyponyms("pear", most=9, commonest_first=True) == ("bartlett", "bosc", "anjou", "seckel")
