from dataclasses import replace

import pytest
from tests import build

from weakspot.words.captions import (
    Caption,
    ClassWords,
    Vocabulary,
    all_combinations,
    ancestry,
    built_in_attributes,
    built_in_vocabulary,
    content_words,
    pairs_of,
    plain_caption,
    single_additions,
    uncommon_axes,
    with_article,
    words_of_ancestors,
)
from weakspot.words.planning import worded_phrases
from weakspot.words.wordnet import is_known


@pytest.mark.parametrize(
    ("words", "expected"),
    build.pairs(
        "apple: an apple, green apple: a green apple, orange: an orange, unicycle: a "
        "unicycle, unripe melon: an unripe melon, unimportant box: an unimportant box, hour "
        "glass: an hour glass, one-way sign: a one-way sign, European bee: a European bee, "
        "umbrella: an umbrella, used car: a used car"
    ),
)
def test_with_article__goes_by_sound(words, expected):
    assert with_article(words) == expected


@pytest.mark.parametrize(
    ("noun", "expected"),
    build.pairs(
        "apple: a photo of an apple, Satsumas: a photo of satsumas, Oat-Milk: a photo of oat "
        "milk, bus: a photo of a bus, school_bus: a photo of a school bus, scissors: a photo "
        "of scissors, children: a photo of children, ABC: a photo of an ABC, glass: a photo "
        "of glass"
    ),
)
def test_plain_caption__counts_nouns_sensibly(noun, expected):
    assert plain_caption(noun).phrase == expected


def test_caption__all_slots():
    caption = Caption(noun="satsumas", look="blurry photo", adjective="green", place="in a box")
    assert caption.phrase == "a blurry photo of green satsumas in a box"
    assert Caption(noun="apple", adjective="old").phrase == "a photo of an old apple"
    assert Caption(noun="orange juice", adjective="cold").phrase == "a photo of cold orange juice"


def test_pairs_of__never_two_of_the_same_slot():
    words = ClassWords(adjectives=("green", "red"), places=("indoors",))
    singles = [
        one
        for one in single_additions(plain_caption("apple"), words, built_in_vocabulary())
        if one.look is None
    ]
    assert [pair.contrast for pair in pairs_of(singles)] == ["green, indoors", "red, indoors"]
    assert next(pair.phrase for pair in pairs_of(singles)) == "a photo of a green apple indoors"
    assert singles[0].n_content_words == 1
    assert replace(singles[0], added=(("place", "on a green background"),)).n_content_words == 2
    assert replace(singles[0], added=(("place", "on a grassy background"),)).n_content_words == 1
    assert (
        replace(
            singles[0], added=(("adjective", "dark green"), ("place", "in a box"))
        ).n_content_words
        == 3
    )


def test_content_words__articles_prepositions_and_carriers_say_nothing():
    assert content_words("on a grassy background, in the Dark") == ("grassy", "dark")
    assert content_words("on a grassy background", with_carriers=True) == ("grassy", "background")
    assert content_words("long-haired") == ("long-haired",)
    assert content_words("") == ()


def test_all_combinations__every_pair_and_triple_of_different_slots():
    words = ClassWords(
        adjectives=("green", "red"),
        nouns=("crab apple",),
        places=("indoors", "in a box", "at night"),
    )
    plain = plain_caption("apple")
    bare = Vocabulary(adjectives=())
    found = list(all_combinations(plain, words, bare))
    # 2 x 1 + 2 x 3 + 1 x 3 pairs and 2 x 1 x 3 triples.
    assert len(found) == 17
    assert len({caption.phrase for caption in found}) == 17
    assert "a photo of a green crab apple at night" in {caption.phrase for caption in found}
    assert min(len(caption.added) for caption in found) == 2
    assert list(all_combinations(plain, ClassWords(adjectives=("green",)), bare)) == []


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


def test_uncommon_axes__hold_the_axes_of_the_paper_and_more():
    assert {"background", "colour", "size", "pose"} <= set(uncommon_axes())
    for name, axis in uncommon_axes().items():
        assert axis.name == name
        assert "{class}" in axis.question
        lists = [axis.values, *axis.by_ancestor.values()]
        assert all(len(values) == len(set(values)) >= 5 for values in lists)
        assert axis.slot in ("adjective", "place", "look")


def test_values_for__own_kind_first_and_each_once():
    background = uncommon_axes()["background"]
    husky = background.values_for("Siberian husky", most=100)
    assert husky[: len(background.by_ancestor["animal"])] == background.by_ancestor["animal"]
    assert set(background.values) <= set(husky)
    assert len(husky) == len(set(husky))
    assert background.values_for("school bus", most=3) == background.by_ancestor["conveyance"][:3]
    assert background.values_for("qzxv", most=4) == tuple(background.values)[:4]
    assert background.values_for(None, most=4) == tuple(background.values)[:4]


def test_question_for__is_the_papers_with_the_right_article():
    assert (
        uncommon_axes()["background"].question_for("Apple")
        == "What are uncommon backgrounds that an apple can appear in?"
    )
    assert (
        uncommon_axes()["background"].question_for("oat_milk")
        == "What are uncommon backgrounds that oat milk can appear in?"
    )


@pytest.mark.parametrize(
    ("axis", "value", "phrase"),
    [
        ("background", "in a desert", "a photo of a sea lion in a desert"),
        ("colour", "orange", "a photo of an orange sea lion"),
        ("look", "oil painting", "an oil painting of a sea lion"),
    ],
)
def test_caption__puts_the_value_where_it_belongs(axis, value, phrase):
    caption = uncommon_axes()[axis].caption("sea lion", value)
    assert (caption.phrase, caption.contrast) == (phrase, value)
