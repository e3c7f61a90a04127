from weakspot.words.caption_rule import (
    count_keywords,
    words_in_sentences,
)
from weakspot.words.captions import ClassWords


def test_count_keywords__a_caption_counts_once_however_often_it_says_a_word():
    counts = count_keywords(["Wet roads, wet road", "dry road", ""], max_words=2)
    assert counts == {"wet": 1, "road": 2, "wet road": 1, "dry": 1, "dry road": 1}


DOGS = (
    "a small brown dog lying on a couch next to a red ball",
    "a golden retriever sitting on the couch with a ball in its mouth",
    "A brown retriever, on a couch.",
    "two small dogs running through tall grass, in the sun",
    "a golden retriever on a couch in tall grass in the sun",
)


def test_words_in_sentences__adjectives_kinds_and_places_most_frequent_first():
    found = words_in_sentences(DOGS, "dog", most=10)
    assert found.adjectives == ("brown", "golden", "small", "tall")
    assert found.nouns == ("retriever", "golden retriever")
    assert found.places == ("on a couch", "in the sun")


def test_words_in_sentences__rare_words_are_left_out():
    assert words_in_sentences(DOGS, "dog", most=10, least_share=0.6).places == ("on a couch",)
    assert words_in_sentences(DOGS[:1], "dog", most=10) == ClassWords()


def test_words_in_sentences__at_most_so_many():
    found = words_in_sentences(DOGS, "dog", most=1)
    assert found == ClassWords(adjectives=("brown",), nouns=("retriever",), places=("on a couch",))


def test_words_in_sentences__backgrounds_and_numbers():
    said = ["a photo of one red disc in the middle of a striped background, in the dark"] * 2
    found = words_in_sentences(said, "disc", most=10)
    assert "on a striped background" in found.places
    assert "in the dark" in found.places
    assert found.adjectives == ("red",)


def test_words_in_sentences__the_class_itself_is_nothing_new():
    assert (
        words_in_sentences(["an orange orange in an orange"] * 3, "orange", most=5) == ClassWords()
    )


def test_words_in_sentences__empty_or_meaningless():
    assert words_in_sentences([], "dog", most=5) == ClassWords()
    assert (
        words_in_sentences(["", " ", "...", ", ,", "12 34", "ééé"], "dog", most=5) == ClassWords()
    )
