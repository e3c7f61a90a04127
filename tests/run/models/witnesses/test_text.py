import pytest

from weakspot.models.embedded.witnesses import TextLine, TextReader, written_lines
from weakspot.run.witnesses import TextWitness

WITNESS = TextWitness(reader=TextReader())


def _said(*lines, confidence=0.98, share=0.05):
    return written_lines(
        [
            TextLine(text=text, confidence=confidence, share=share, centre=(0.5, 0.5))
            for text in lines
        ]
    )


@pytest.mark.parametrize(
    "words", ["with text", "with writing", "text", "With some text on it", "with lettering"]
)
def test_judge__any_text(words):
    judge = WITNESS.judge(words)

    assert judge(_said("94031")) > 0.9
    assert judge(_said()) == 0.0


def test_judge__no_text_is_the_opposite():
    assert WITNESS.judge("without text")(_said("SALE")) < 0.1
    assert WITNESS.judge("with no writing")(_said()) == 1.0


def test_judge__patterns_are_no_text():
    judge = WITNESS.judge("with text")

    assert judge(_said("RF", share=0.98)) == 0.0
    assert judge(_said("0")) == 0.0
    assert judge(_said("CASi", confidence=0.4)) < 0.5


def test_judge__a_certain_word():
    judge = WITNESS.judge('with the word "Bakery"')

    assert judge(_said("the old BAKERY shop")) > 0.9
    assert judge(_said("Bakcry")) > 0.5
    assert judge(_said("Library", "9.95")) < 0.5
    assert judge(_said()) == 0.0


def test_judge__word_without_quotes():
    assert WITNESS.judge("with the word sale")(_said("SALE")) > 0.9
    assert WITNESS.judge('with the word "!"') is None


@pytest.mark.parametrize("text", ["2020-04-04 07:24", "'16 12 6", "25.11.2015", "2024/11/20"])
def test_judge__date_stamp(text):
    assert WITNESS.judge("with a date stamp")(_said(text)) > 0.5


@pytest.mark.parametrize("text", ["94031", "2.99", "SALE", "12 kg 5"])
def test_judge__no_date(text):
    assert WITNESS.judge("with a date stamp")(_said(text)) == 0.0


@pytest.mark.parametrize(
    ("text", "is_price"),
    [("2,99", True), ("€35", True), ("24:-", True), ("94031", False), ("25.11.2015", False)],
)
def test_judge__price_tag(text, is_price):
    assert (WITNESS.judge("with a price tag")(_said(text)) > 0.5) == is_price


@pytest.mark.parametrize("words", ["with a watermark", "with a label"])
def test_judge__what_bears_text_is_told_by_text(words):
    assert WITNESS.judge(words)(_said("SALE")) > 0.5
    assert WITNESS.judge(words)(_said()) == 0.0


@pytest.mark.parametrize("words", ["green", "in a kitchen", "with a lid", "with a dog", "wordy"])
def test_judge__other_words_are_for_others(words):
    assert WITNESS.judge(words) is None


def test_tags__and_phrase():
    assert WITNESS.tags(_said("SALE")) == {"text in the image": "with text"}
    assert WITNESS.tags(_said()) == {"text in the image": "without text"}
    assert WITNESS.phrase(_said("SALE")) == "with text"
    assert WITNESS.phrase(_said()) == ""
