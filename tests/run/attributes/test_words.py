import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split
from weakspot.core.errors import ModelError
from weakspot.run.attributes import ASK_AGAIN, planned_attributes
from weakspot.run.settings import AttributeSettings, Settings
from weakspot.testing.fakes import PlantedAnswerer, PlantedTextGenerator
from weakspot.testing.planted import nothing, phrase_embeddings, plant, rare
from weakspot.testing.scenes import FACTORS

SETTINGS = Settings(attributes=AttributeSettings(task="Tell shapes apart"))


@pytest.fixture(scope="module")
def scenes():
    return plant(nothing(), 300, seed=1)


@pytest.fixture(scope="module")
def answers(scenes):
    image = cache(scenes.image)
    return lambda rows, question: PlantedAnswerer().answer(
        [image(int(row)) for row in rows], question
    )


def _propose(prompt, schema):
    return json.loads(PlantedTextGenerator().generate(prompt, schema=schema))


def _planned(scenes, **assistants):
    samples = scenes.samples(*Split)
    return planned_attributes(
        samples,
        Assistants(embed_texts=phrase_embeddings, **assistants),
        SETTINGS,
        samples.reference_rows,
    )


def test_planned_attributes__built_in_without_anybody_to_ask(scenes):
    attributes, notes = _planned(scenes)
    assert len(attributes) >= 10
    assert {attribute.source for attribute in attributes} == {"built-in"}
    assert notes == []


def test_planned_attributes__names_of_a_language_model_and_values_of_an_answerer(scenes, answers):
    attributes, _notes = _planned(scenes, propose=_propose, answers=answers)
    values = {
        attribute.name: {value.value for value in attribute.values} for attribute in attributes
    }
    assert set(values) == {"colour", "background", "lighting"}
    assert all(values[name] == set(FACTORS[name]) for name in values)
    assert {attribute.source for attribute in attributes} == {"proposed"}
    assert {attribute.question for attribute in attributes} >= {"What colour is it?"}


def test_planned_attributes__values_of_a_language_model_without_an_answerer(scenes):
    attributes, _notes = _planned(
        scenes, propose=lambda prompt, schema: {"attributes": ["mood"], "values": ["calm", "wild"]}
    )
    assert [(each.name, [value.value for value in each.values]) for each in attributes] == [
        ("mood", ["calm", "wild"])
    ]


def test_planned_attributes__at_most_a_hundred_training_and_a_hundred_evaluation_images_are_asked_about(
    scenes,
):
    asked = []
    _planned(scenes, answers=lambda rows, question: asked.append(rows) or [""] * len(rows))
    training = set(scenes.dataset.rows_of(Split.TRAIN).tolist())
    evaluation = set(scenes.dataset.rows_of(Split.VALIDATION, Split.TEST).tolist())
    assert all(rows.tolist() == asked[0].tolist() for rows in asked)
    assert len(set(asked[0].tolist())) == len(asked[0])
    assert 50 < len(training & set(asked[0].tolist())) <= 100
    assert 50 < len(evaluation & set(asked[0].tolist())) <= 100
    assert set(asked[0].tolist()) <= training | evaluation


def test_planned_attributes__a_value_that_one_evaluation_image_has__is_kept():
    """What one looks for is rare: green discs are not in training, and one of many is asked about."""
    world = plant(rare(0.0), 400, seed=2)
    colours = world.dataset.metadata("colour").to_numpy(zero_copy_only=False)
    training = world.dataset.rows_of(Split.TRAIN)
    said = {"green": 1}

    def answers(rows, _question):
        """Say green once in all, and only of an evaluation image; else as if it were not there."""
        left, found = dict(said), []
        for row in rows:
            is_new = colours[row] == "green" and row not in training and left["green"] > 0
            left["green"] -= is_new
            found.append(
                "green" if is_new else "yellow" if colours[row] == "green" else colours[row]
            )
        return found

    values = {
        value.value
        for attribute in _planned(world, answers=answers)[0]
        if attribute.name == "colour"
        for value in attribute.values
    }
    assert "green" in values


def test_planned_attributes__predictions_and_labels_play_no_part(scenes, answers):
    def asked_of(world):
        asked = []
        _planned(
            world,
            answers=lambda rows, question: asked.append(rows.tolist()) or answers(rows, question),
        )
        return asked

    dataset = scenes.dataset.with_predictions(predictions=np.zeros(len(scenes), dtype=np.int64))
    assert asked_of(scenes) == asked_of(replace(scenes, dataset=dataset))


@pytest.mark.parametrize("answer", ["garbage", {"attributes": 3}, {"attributes": ["disc", ""]}])
def test_planned_attributes__garbage_of_a_language_model_gives_the_built_in_ones_and_a_note(
    scenes, answer
):
    attributes, notes = _planned(scenes, propose=lambda _prompt, _schema: answer)
    assert {attribute.source for attribute in attributes} == {"built-in"}
    assert notes[0].startswith(
        "The language model proposed no attributes, so the built-in ones are used: The language model"
    )


def test_planned_attributes__an_answerer_that_fails_is_asked_once(scenes):
    asked = []

    def broken(_rows, question):
        asked.append(question)
        raise ModelError("Out of memory.")

    attributes, notes = _planned(scenes, answers=broken)
    assert len(asked) == 1
    assert len(attributes) >= 10
    assert notes == [
        "The question answerer failed and is not asked again: Out of memory. " + ASK_AGAIN,
    ]


def test_planned_attributes__answers_that_say_nothing(scenes):
    attributes, notes = _planned(scenes, answers=lambda rows, _question: ["unknown"] * len(rows))
    assert len(attributes) == len(notes) >= 10
    assert "has its built-in values: none of" in notes[0]


def test_planned_attributes__proposed_attribute_whose_values_are_classes(scenes, answers):
    attributes, notes = _planned(
        scenes, propose=lambda _prompt, _schema: {"attributes": ["kind", "colour"]}, answers=answers
    )
    assert [attribute.name for attribute in attributes] == ["colour"]
    assert notes == ["The attribute 'kind' is left out: its values are the classes themselves."]
