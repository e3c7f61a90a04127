from weakspot.words.caption_words import count_keywords, keywords_in, runs_of_words


def test_runs_of_words__stop_words_and_marks_end_a_run():
    assert list(runs_of_words("Two big dogs running, on the Beach; it's sunny")) == [
        ("two", "big", "dog", "running"),
        ("beach",),
        ("sunny",),
    ]
    assert list(runs_of_words("")) == []


def test_keywords_in__neighbours_only_and_singular():
    found = keywords_in("a photo of small green apples in a basket", max_words=3)
    assert found == {
        "small",
        "green",
        "apple",
        "small green",
        "green apple",
        "small green apple",
        "basket",
    }


def test_count_keywords__a_caption_counts_once_however_often_it_says_a_word():
    counts = count_keywords(["Wet roads, wet road", "dry road", ""], max_words=2)
    assert counts == {"wet": 1, "road": 2, "wet road": 1, "dry": 1, "dry road": 1}
