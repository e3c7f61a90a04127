from weakspot.words.planning import (
    class_nouns,
    free_phrases,
    no_phrases,
    worded_phrases,
    yes_phrases,
)


def test_worded_phrases__halves_in_turn_each_with_its_own_wordings():
    found = worded_phrases("place", ("on a beach", "on the sand", "by the sea"), (None, "apple"))
    assert found[::2] == (
        "a photo on a beach",
        "a photo of an apple on a beach",
        "a photo by the sea",
        "a photo of an apple by the sea",
    )
    assert (
        found[1::2]
        == ("a picture of an object on the sand", "a picture of an apple on the sand") * 2
    )


def test_worded_phrases__one_wording_differs_by_the_words_around_it():
    assert worded_phrases("adjective", ("icy",)) == (
        "a photo of an icy thing",
        "a picture of an icy object",
    )
    assert worded_phrases("sentence", ("a photo of one thing",)) == ("a photo of one thing",) * 2


def test_class_nouns__spread_over_the_classes_without_codes():
    assert class_nouns(["ant", "bee", "n0144", "cat", "dog", "3"], most=2) == ("ant", "cat")
    assert class_nouns(["n01", "n02"], most=4) == ()
    assert class_nouns(["ant"], most=0) == ()


def test_free_phrases__both_halves_name_attribute_and_value():
    assert free_phrases("hair colour", "auburn") == (
        "a photo with an auburn hair colour",
        "a picture in which the hair colour is auburn",
    )
    assert all("glasses" in phrase for phrase in yes_phrases("glasses"))
    assert not any("without" in phrase or "no " in phrase for phrase in no_phrases())
