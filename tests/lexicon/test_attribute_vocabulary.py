from weakspot.assign.phrases import worded_phrases
from weakspot.lexicon.attribute_vocabulary import built_in_attributes


def test_built_in_attributes__cover_what_pictures_of_one_class_differ_in():
    names = {attribute.name for attribute in built_in_attributes()}
    assert {"background", "place", "colour", "lighting", "weather", "viewpoint", "picture style", "occlusion", "pose"} <= names
    assert {"size in the picture", "number of objects"} <= names


def test_built_in_attributes__every_value_has_two_wordings_and_is_told_once():
    for attribute in built_in_attributes():
        values = [value.value for value in attribute.values]
        assert 3 <= len(values) == len(set(values))
        assert attribute.question.endswith("?")
        wordings = [wording for value in attribute.values for wording in value.wordings]
        assert len(wordings) == len(set(wordings))
        assert all(len(value.wordings) >= 2 for value in attribute.values)


def test_built_in_attributes__make_captions_with_the_right_articles():
    by_name = {attribute.name: attribute for attribute in built_in_attributes()}
    orange = next(value for value in by_name["colour"].values if value.value == "orange")
    assert worded_phrases(by_name["colour"].slot, orange.wordings) == (
        "a photo of an orange thing",
        "a picture of an orange-coloured object",
    )
    drawing = next(value for value in by_name["picture style"].values if value.value == "drawing")
    assert worded_phrases(by_name["picture style"].slot, drawing.wordings) == ("a drawing", "a pencil sketch of an object")
