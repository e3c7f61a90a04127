import pytest

from weakspot.backends.caption_sentences import completion_instruction, led_sentence, short_sentences


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("It is red. It is small.", "it is red. it is small."),
        ("a photo of a fly (insect). It is red.", "it is red."),
        ("A PHOTO OF A FLY, insect: it is red.", "it is red."),
        ("It is red. A photo of a fly (insect). It is red!", "it is red."),
        ("- It is red\n- It is **small**\n", "it is red. it is small."),
        ("1. It is red.\n2) It is small.\n", "it is red. it is small."),
        ("Here are the sentences:\n\nIt is red.\nIt is small.", "it is red. it is small."),
        ('"It is red." "It is small."', "it is red. it is small."),
        ("It is red.\x00\tIt is\u2028 small.<end_of_utterance>", "it is red. it is small."),
        ("<think>It is red.</think>", "it is red."),
        ("It is red; it is small.", "it is red. it is small."),
        ("It is 3.5 cm long. It is red.", "it is 3.5 cm long. it is red."),
        ("TV screens are behind it. It is red.", "TV screens are behind it. it is red."),
        ("It is red. It is small. The backgr", "it is red. it is small."),
        ("it is red", "it is red."),
        (f"It is red. {'very ' * 30}small.", "it is red."),
        ("... !!! \n\n ?", ""),
        ("", ""),
    ],
)
def test_short_sentences__plain_each_once_without_the_beginning(said, kept):
    assert short_sentences(said, beginning="a photo of a fly (insect).") == kept


def test_short_sentences__at_most_seven_or_so_many_as_wanted():
    said = " ".join(f"It is number {number}." for number in range(20))
    assert short_sentences(said).count(".") == 7
    assert short_sentences(said, most=2) == "it is number 0. it is number 1."


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("green", "the background is green."),
        ("the background is green and wet. a dog. a", "the background is green and wet."),
        ("Green!\nand more", "the background is Green."),
        (" . ", ""),
        ("the background is", ""),
        ("", ""),
    ],
)
def test_led_sentence__first_sentence_after_its_opening(text, kept):
    assert led_sentence("the background is", text) == kept


def test_completion_instruction__beginning_is_in_it_on_one_line():
    assert '"a photo of a {x}."' in completion_instruction("a photo\n of a {x}.")
