from weakspot.words.captions import (
    ClassWords,
    ancestry,
    built_in_attributes,
    built_in_vocabulary,
    words_of_ancestors,
)
from weakspot.words.planning import worded_phrases
from weakspot.words.wordnet import is_known


def test_vocabulary__is_usable():
    vocabulary = built_in_vocabulary()
    assert {"green", "yellow", "red", "unripe"} <= set(vocabulary.adjectives)
    assert {"in a box", "on a shop shelf", "in a hand", "in a basket"} <= set(vocabulary.places)
    assert vocabulary.looks["blurry"] == "blurry photo"
    assert len(set(vocabulary.adjectives)) == len(vocabulary.adjectives)
    assert len(set(vocabulary.places)) == len(vocabulary.places)


def test_vocabulary__backgrounds_and_places_of_images():
    places = set(built_in_vocabulary().places)
    assert {
        "on a grassy background",
        "on a plain background",
        "on a striped background",
        "on the left",
    } <= places


def test_vocabulary__every_ancestor_is_known_to_wordnet():
    assert [word for word in built_in_vocabulary().by_ancestor if not is_known(word, "noun")] == []


def test_words_of_ancestors__built_in_words_for_kinds_of_classes():
    by_ancestor = built_in_vocabulary().by_ancestor
    assert "behind a fence" in words_of_ancestors("golden retriever", by_ancestor).places
    assert "flying" in words_of_ancestors("sparrow", by_ancestor).places
    assert "in a garage" in words_of_ancestors("school bus", by_ancestor).places
    assert "cooked" in words_of_ancestors("satsumas", by_ancestor).adjectives
    assert "with glasses" in words_of_ancestors("person", by_ancestor).places
    assert "in a city" in words_of_ancestors("church", by_ancestor).places
    assert "folded" in words_of_ancestors("T-shirt", by_ancestor).adjectives
    assert words_of_ancestors("blorb", by_ancestor) == ClassWords()
    assert "with glasses" not in words_of_ancestors("cat", by_ancestor).places


def test_words_of_ancestors__nearest_first():
    given = {"animal": ClassWords(places=("in a zoo",)), "dog": ClassWords(places=("on a leash",))}
    assert words_of_ancestors("poodle", given).places == ("on a leash", "in a zoo")
    assert words_of_ancestors("dogs", given).places == ("on a leash", "in a zoo")
    assert words_of_ancestors("cat", given).places == ("in a zoo",)


def test_ancestry__fruit_behind_its_tree():
    assert ancestry("Satsumas")[0] == "satsuma"
    assert "food" in ancestry("satsuma")
    assert "person" not in ancestry("frog")


def test_joined__each_word_once_in_order():
    first = ClassWords(adjectives=("red", "green"), places=("indoors",))
    second = ClassWords(adjectives=("green", "blue"), nouns=("pear",))
    assert first.joined(second) == ClassWords(
        adjectives=("red", "green", "blue"), nouns=("pear",), places=("indoors",)
    )


def test_built_in_attributes__cover_what_images_of_one_class_differ_in():
    names = {attribute.name for attribute in built_in_attributes()}
    assert {
        "background",
        "place",
        "colour",
        "lighting",
        "weather",
        "viewpoint",
        "image style",
        "occlusion",
        "pose",
    } <= names
    assert {"size in the image", "number of objects"} <= names


def test_built_in_attributes__every_value_has_two_wordings_and_is_told_once():
    for attribute in built_in_attributes():
        values = list(attribute.values)
        assert 3 <= len(values) == len(set(values))
        assert attribute.question.endswith("?")
        wordings = [wording for each in attribute.values.values() for wording in each]
        assert len(wordings) == len(set(wordings))
        assert all(len(each) >= 2 for each in attribute.values.values())


def test_built_in_attributes__make_captions_with_the_right_articles():
    by_name = {attribute.name: attribute for attribute in built_in_attributes()}
    orange = by_name["colour"].values["orange"]
    assert worded_phrases(by_name["colour"].slot, orange) == (
        "a photo of an orange thing",
        "a picture of an orange-coloured object",
    )
    drawing = by_name["image style"].values["drawing"]
    assert worded_phrases(by_name["image style"].slot, drawing) == (
        "a drawing",
        "a pencil sketch of an object",
    )
