from weakspot.backends.words_asked_for import (
    after_opening,
    answer_instruction,
    caption_instruction,
    caption_opening,
    json_instruction,
    plain_words,
)


def test_caption_instruction__own_wording():
    assert caption_instruction("Golden-Retriever", wording="Is {about} here?") == "Is a golden retriever here?"
    assert caption_instruction(None, wording="Is {about} here?") == "Is anything here?"


def test_caption_opening__only_for_a_class():
    assert caption_opening(None) is None
    assert caption_opening("apple") == "a photo of an apple"


def test_answer_instruction__braces_in_a_question_stay():
    assert answer_instruction(" what is {this}? ") == "what is {this}? Answer with one word or a short phrase."


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
