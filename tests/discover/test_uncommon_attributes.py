import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests import build

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.discover.uncommon_attributes import (
    SCHEMA,
    UncommonAttributesDiscoverer,
    seed_failures,
    usable_values,
)
from weakspot.testing.fakes import PlantedTextGenerator
from weakspot.testing.planted import phrase_embeddings, plant, rare, spurious
from weakspot.words.captions import uncommon_axes

TOP_1 = FailureCriterion()
WORDS = {"desert": 1, "beach": 2, "cave": 3}


def _words(texts):
    """A space with one axis for the seal and one for each place."""
    embeddings = np.zeros((len(texts), 4), dtype=np.float32)
    for row, text in enumerate(texts):
        embeddings[row, 0] = 1.0
        for word, axis in WORDS.items():
            embeddings[row, axis] = word in text
    return embeddings


def _seals(places, failed):
    images = _words([f"a seal {place}" for place in places])
    return build.samples(
        [0] * len(places), class_names=["seal", "dog"], predictions=failed, embeddings=3.0 * images
    )


def _proposing(*values):
    return Assistants(embed_texts=_words, propose=lambda _prompt, _schema: {"values": list(values)})


def _found(samples, assistants, **settings):
    method = UncommonAttributesDiscoverer(**settings)
    return method.discover(samples, TOP_1, seed=0, assistants=assistants)


def test_discover__counts_by_hand():
    places = ["desert"] * 12 + ["beach"] * 4 + ["sea"] * 4 + ["desert"] * 2 + ["sea"] * 18
    samples = _seals(places, [True] * 20 + [False] * 20)
    found = _found(samples, _proposing("desert", "on a beach", "in a cave"))
    by_value = {item.parameters["value"]: item for item in found.slices}
    desert = by_value["in a desert"]
    assert desert.names[0].phrase == "a photo of a seal in a desert"
    assert found.slices[0] is desert
    assert (desert.parameters["n_seed"], desert.parameters["n_heldout"]) == (10, 10)
    assert desert.parameters["n_seed_shown"] + desert.parameters["n_heldout_shown"] == 12
    assert desert.strength == desert.parameters["n_seed_shown"] / 10
    assert desert.strength_p < 0.05
    assert desert.n_found == 14
    assert desert.rule.members(samples, samples.rows).tolist() == [
        place == "desert" for place in places
    ]
    assert "in a cave" not in by_value
    shown = sum(item.parameters["n_heldout_shown"] for item in found.slices)
    assert desert.parameters["heldout_share_of_top"] == pytest.approx(shown / 10)
    assert found.n_considered == 3


def test_discover__plain_class_stands_for_none_of_these():
    samples = _seals(["sea"] * 20, [True] * 10 + [False] * 10)
    found = _found(samples, _proposing("desert", "beach"))
    assert found.slices == ()
    assert "5 of the 5 failures looked at show none of 2 values" in found.notes[0].note


def test_discover__top_k_and_fewest_seeds():
    places = ["desert"] * 8 + ["beach"] * 6 + ["cave"] * 2 + ["sea"] * 10
    samples = _seals(places, [True] * 16 + [False] * 10)
    assistants = _proposing("desert", "beach", "cave")
    values = lambda **settings: [  # noqa: E731
        item.parameters["value"] for item in _found(samples, assistants, **settings).slices
    ]
    assert values(held_out_share=0.0, top_k=1) == ["in a desert"]
    assert values(held_out_share=0.0) == ["in a desert", "in a beach", "in a cave"]
    assert values(held_out_share=0.0, min_seeds=3) == ["in a desert", "in a beach"]


def test_discover__asks_the_papers_question_once_per_class_and_axis():
    asked = []

    def propose(prompt, schema):
        asked.append((prompt, schema))
        return {"values": ["desert", "beach"]}

    samples = _seals(["desert"] * 8 + ["sea"] * 8, [True] * 8 + [False] * 8)
    method = UncommonAttributesDiscoverer(axes=("background", "colour"), n_values=7)
    method.discover(
        samples, TOP_1, seed=0, assistants=Assistants(embed_texts=_words, propose=propose)
    )
    assert [schema for _, schema in asked] == [SCHEMA, SCHEMA]
    assert asked[0][0].startswith(
        "What are uncommon backgrounds that a seal can appear in? List 7 values of background"
    )
    assert asked[1][0].startswith("What are uncommon colours that a seal may have?")


@pytest.mark.parametrize(
    "answer",
    [
        "Sure! Here is",
        {"values": "desert"},
        {"value": ["desert"]},
        [],
        {"values": [1, None, "", "x" * 99]},
    ],
)
def test_discover__garbage_from_a_language_model_is_a_note(answer):
    samples = _seals(["desert"] * 8 + ["sea"] * 8, [True] * 8 + [False] * 8)
    assistants = Assistants(embed_texts=_words, propose=lambda _prompt, _schema: answer)
    found = _found(samples, assistants)
    assert "built-in values of 'background' were tried" in found.notes[0].note
    assert [item.parameters["value"] for item in found.slices] == ["in a desert"]


@pytest.mark.parametrize(
    "error", [ModelError("The answer is no JSON."), UnavailableError("The endpoint timed out.")]
)
def test_discover__a_language_model_that_fails_is_asked_three_times_and_no_more(error):
    asked = []

    def propose(prompt, _schema):
        asked.append(prompt)
        raise error

    world = plant(rare(0.02), 1200, seed=1)
    assistants = Assistants(embed_texts=phrase_embeddings, propose=propose)
    method = UncommonAttributesDiscoverer(axes=("colour", "background"))
    found = method.discover(world.samples(Split.VALIDATION), TOP_1, seed=0, assistants=assistants)
    assert len(asked) == 3
    assert sum(error.what in note.note for note in found.notes) == 8
    assert found.slices


@pytest.mark.parametrize("centre", [False, True])
def test_discover__planted_background_from_a_language_model(centre):
    world = plant(spurious(0.95), 3000, seed=5)
    model = PlantedTextGenerator()

    def propose(prompt, schema):
        return json.loads(
            model.generate(
                prompt, schema={**schema, "properties": {"backgrounds": {"type": "array"}}}
            )
        )

    def values(prompt, schema):
        return {
            "values": [
                f"on a {value} background" for value in propose(prompt, schema)["backgrounds"]
            ]
        }

    method = UncommonAttributesDiscoverer(centre=centre)
    assistants = Assistants(embed_texts=phrase_embeddings, propose=values)
    found = method.discover(world.samples(Split.VALIDATION), TOP_1, seed=0, assistants=assistants)
    first = {}
    for item in found.slices:
        first.setdefault(item.class_name, item.names[0].contrast)
    assert first["disc"] == "on a grassy background"
    assert first["star"] == "on a plain background"


def test_discover__without_a_text_side_every_class_gets_a_note():
    world = plant(rare(0.02), 800, seed=1)
    found = UncommonAttributesDiscoverer().discover(world.samples(Split.VALIDATION), TOP_1, seed=0)
    assert found.slices == ()
    assert all("no text side" in note.note for note in found.notes)
    assert len(found.notes) == 4


def test_seed_failures__same_share_of_every_wrong_answer():
    labels, predictions = [0] * 30, np.array([1] * 8 + [2] * 12 + [0] * 10)
    dataset = dataset_from_columns(
        class_names=["a", "b", "c"], labels=labels, predictions=predictions
    )
    (problem,) = class_problems(dataset, np.arange(30), TOP_1)
    chosen = seed_failures(dataset, problem, 0.5, np.random.default_rng(0))
    assert (chosen[:8].sum(), chosen[8:20].sum(), chosen[20:].sum()) == (4, 6, 0)
    assert seed_failures(dataset, problem, 1.0, np.random.default_rng(0)).sum() == 20


def test_usable_values__are_put_in_the_form_of_the_axis():
    axes = uncommon_axes()
    assert usable_values({"values": ["Polar Ice Caps", "underwater", "the sky", "Cave."]}, axes["background"]) == (
        "in polar ice caps", "underwater", "in the sky", "in a cave",
    )  # fmt: skip
    assert usable_values(["a purple", "Bright  red"], axes["colour"]) == ("purple", "bright red")
    assert usable_values({"values": ["Lying on its back"]}, axes["pose"]) == ("lying on its back",)
    assert usable_values(None, axes["pose"]) == ()


def test_seed_failures__an_object_chooses_or_is_held_out():
    objects = np.repeat(np.arange(20), 3)
    dataset = dataset_from_columns(
        class_names=["a", "b"],
        labels=[0] * 60,
        predictions=(objects < 12).astype(np.int64),
        groups=[f"object {one}" for one in objects],
    )
    (problem,) = class_problems(dataset, np.arange(60), TOP_1)
    chosen = seed_failures(dataset, problem, 0.5, np.random.default_rng(0)).reshape(20, 3)
    assert (chosen == chosen[:, :1]).all()
    assert chosen[:12, 0].sum() == 6
    assert not chosen[12:].any()


def test_discover__objects_seen_several_times_count_once():
    places = ["desert"] * 12 + ["beach"] * 4 + ["sea"] * 4 + ["desert"] * 2 + ["sea"] * 18
    failed = [True] * 20 + [False] * 20
    chances = []
    for names in (None, [f"object {row}" for row in range(40) for _ in range(4)]):
        rows = np.repeat(np.arange(40), 1 if names is None else 4)
        samples = _seals([places[row] for row in rows], [failed[row] for row in rows])
        if names is not None:
            samples = replace(samples, dataset=samples.dataset.with_groups(pa.array(names)))
        found = _found(samples, _proposing("desert"), min_seeds=2)
        (desert,) = found.slices
        chances.append(desert.strength_p)
        assert desert.parameters["n_heldout"] == (10 if names is None else 40)
    assert chances[1] == pytest.approx(chances[0], rel=20)
    assert chances[1] > 1e-5
