from dataclasses import replace

import pytest

from weakspot.words.captions import (
    Caption,
    ClassWords,
    Vocabulary,
    all_combinations,
    built_in_vocabulary,
    content_words,
    counting_of,
    noun_of,
    pairs_of,
    plain_caption,
    single_additions,
    with_article,
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("apple", "an apple"),
        ("green apple", "a green apple"),
        ("orange", "an orange"),
        ("unicycle", "a unicycle"),
        ("unripe melon", "an unripe melon"),
        ("unimportant box", "an unimportant box"),
        ("hour glass", "an hour glass"),
        ("one-way sign", "a one-way sign"),
        ("European bee", "a European bee"),
        ("umbrella", "an umbrella"),
        ("used car", "a used car"),
    ],
)
def test_with_article__goes_by_sound(words, expected):
    assert with_article(words) == expected


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("apple", "a photo of an apple"),
        ("Satsumas", "a photo of satsumas"),
        ("Oat-Milk", "a photo of oat milk"),
        ("bus", "a photo of a bus"),
        ("school_bus", "a photo of a school bus"),
        ("scissors", "a photo of scissors"),
        ("children", "a photo of children"),
        ("ABC", "a photo of an ABC"),
        ("glass", "a photo of glass"),
    ],
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


def test_noun_of__and_counting_of():
    assert noun_of("Golden-Delicious_apple") == "golden delicious apple"
    assert counting_of("grapes") == "many"
    assert counting_of("cactus") == "one"


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
