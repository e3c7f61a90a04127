import pytest

from weakspot.models.prompts import (
    after_opening,
    answer_instruction,
    caption_instruction,
    caption_opening,
    completion_instruction,
    json_instruction,
    led_sentence,
    plain_words,
    short_sentences,
)


def test_caption_instruction__own_wording():
    assert (
        caption_instruction("Golden-Retriever", wording="Is {about} here?")
        == "Is a golden retriever here?"
    )
    assert caption_instruction(None, wording="Is {about} here?") == "Is anything here?"


def test_caption_opening__only_for_a_class():
    assert caption_opening(None) is None
    assert caption_opening("apple") == "a photo of an apple"


def test_answer_instruction__braces_in_a_question_stay():
    assert (
        answer_instruction(" what is {this}? ")
        == "what is {this}? Answer with one word or a short phrase."
    )


def test_json_instruction__holds_prompt_and_schema():
    found = json_instruction("Name {schema} colours.", {"type": "array", "description": "größe"})
    assert found.startswith("Name {schema} colours.\n")
    assert found.endswith('{"type": "array", "description": "größe"}')


def test_plain_words__one_line_without_control_characters():
    assert plain_words("\x08a  dog\x00\n on\tgrass ") == "a dog on grass"
    assert plain_words('"a dog"') == "a dog"
    assert plain_words('"a dog" and "a cat"') == '"a dog" and "a cat"'
    assert plain_words('"') == '"'
    assert plain_words("\n\x01") == ""


def test_after_opening__spaces_and_case_do_not_count():
    assert after_opening("a photo of jack ' s hat on grass", "A photo of Jack's hat") == "on grass"
    assert after_opening("a photo", "a photo of") is None
    assert after_opening("a dog", "a cat") is None
    assert after_opening("abc", "abc") == ""


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
