import json

import numpy as np
import pytest
from PIL import Image

from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, ModelError
from weakspot.testing.fakes import (
    PlantedAnswerer,
    PlantedCaptioner,
    PlantedEmbedder,
    PlantedImageGenerator,
    PlantedTextGenerator,
    planted_classifier,
    propose,
)
from weakspot.testing.planted import plant, rare
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS, Scene, factors_of, read_marker, render

SCENE = Scene(
    kinds=("disc",),
    colour="green",
    size="small",
    background="grassy",
    count="two",
    position="left",
    lighting="dark",
)
TOLD = FACTOR_NAMES[1:]
FOREIGN = Image.new("RGB", (80, 60), (200, 30, 30))


def test_embedder__gives_the_embeddings_of_the_world():
    world = plant(rare(), 300, seed=2)
    embedder, rows = PlantedEmbedder(), np.arange(20)
    prepared = [embedder.prepare(world.image(row)) for row in rows]
    np.testing.assert_array_equal(embedder.embed_prepared(prepared), world.embeddings(rows))
    assert embedder.encoder_id == world.samples(Split.TEST).space("clip").encoder_id


@pytest.mark.parametrize(
    ("phrase", "factor", "value"),
    [
        ("a photo of a red thing", "colour", "red"),
        ("something on grass", "background", "grassy"),
        ("a photo taken at night", "lighting", "dark"),
        ("a huge object", "size", "large"),
    ],
)
def test_embedder__phrases_are_nearest_to_what_they_name(phrase, factor, value):
    world = plant(rare(), 2_000, seed=2)
    similarity = world.embeddings() @ PlantedEmbedder().embed_texts([phrase])[0]
    # Weights of factors differ, so the phrase is compared within scenes of equal length: the difference of means is the test.
    has_value = np.array(world.dataset.metadata(factor).to_pylist()) == value
    assert similarity[has_value].min() > similarity[~has_value].max()


def test_embedder__class_and_colour_together():
    world = plant(rare(), 2_000, seed=2)
    similarity = world.embeddings() @ PlantedEmbedder().embed_texts(["a photo of a red disc"])[0]
    red_discs = [
        row
        for row in range(2_000)
        if world.scene(row).colour == "red" and world.scene(row).kinds == ("disc",)
    ]
    assert set(np.argsort(-similarity)[: len(red_discs)]) == set(red_discs)


def test_embedder__noise_is_part_of_the_id():
    exact = PlantedEmbedder(noise_scale=0.0)
    assert exact.encoder_id != PlantedEmbedder().encoder_id
    first, second = (exact.prepare(render(Scene(instance=number))) for number in (1, 2))
    np.testing.assert_array_equal(exact.embed_prepared([first]), exact.embed_prepared([second]))


def test_fakes__foreign_images_are_refused():
    world = plant(rare(), 300)
    calls = [
        lambda: PlantedEmbedder().prepare(FOREIGN),
        lambda: planted_classifier(world).prepare(FOREIGN),
        lambda: PlantedCaptioner().caption([FOREIGN]),
        lambda: PlantedAnswerer().answer([FOREIGN], "what colour?"),
    ]
    for call in calls:
        with pytest.raises(
            ModelError, match=r"not from the planted world.*Choose a real model for your own images"
        ):
            call()


def test_classifier__says_what_the_world_says():
    for is_multi_label in (False, True):
        world = plant(rare(), 400, seed=4, is_multi_label=is_multi_label)
        classifier, rows = planted_classifier(world), np.arange(30)
        said = classifier.classify([classifier.prepare(world.image(row)) for row in rows])
        np.testing.assert_allclose(said.probabilities, world.dataset.probabilities[rows], atol=1e-6)
        np.testing.assert_array_equal(said.features, world.features(rows))
        assert classifier.task is world.dataset.task


def test_captioner__exact_and_about_a_class():
    image = render(SCENE)
    assert PlantedCaptioner().caption([image]) == [SCENE.caption]
    assert PlantedCaptioner().caption([image], about="disc") == [SCENE.caption]
    assert PlantedCaptioner().caption([image], about="star") == [f"{SCENE.caption}, no star"]


def test_captioner__completes_with_all_that_the_beginning_leaves_open():
    captioner, image = PlantedCaptioner(), render(SCENE)
    rest = "it is small. there is two. it is on the left. the background is grassy. it is dark."
    assert captioner.complete([image], beginning="a photo of a disc.") == [f"it is green. {rest}"]
    assert captioner.complete([image], beginning="a photo of a green disc.") == [rest]
    assert captioner.complete([image], beginning="a photo of a red disc.") == [
        f"it is green. {rest}"
    ]
    assert factors_of(captioner.complete([image], beginning="")[0]) == {
        name: (getattr(SCENE, name),) for name in TOLD
    }


def test_captioner__a_true_caption_is_likelier_than_a_false_one_of_any_length():
    images = [render(SCENE), render(Scene(colour="red", lighting="bright"))]
    captions = [
        SCENE.caption,
        "it is green.",
        "it is red.",
        "it is red. it is bright.",
        "a photo of a star. it is red and green.",
    ]
    found = PlantedCaptioner().log_likelihoods(images, captions)
    assert found.shape == (2, 5)
    assert found[0].argsort().tolist()[::-1] == [1, 0, 2, 3, 4]
    assert found[1].argsort().tolist()[::-1] == [2, 3, 1, 4, 0]
    assert (found < 0).all()
    assert found[0, 0] > -0.5 > -5 > found[0, 2]
    assert PlantedCaptioner().log_likelihoods([], captions).shape == (0, 5)
    assert PlantedCaptioner().log_likelihoods(images, []).shape == (2, 0)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What colour is the object?", "green"),
        ("what COLOR is it", "green"),
        ("How many are there?", "two"),
        ("Where is it?", "left"),
        ("What is the background like?", "grassy"),
        ("What kind of object is it?", "disc"),
        ("Is it a green disc?", "yes"),
        ("Is it a red disc?", "no"),
        ("Is it on grass?", "yes"),
        ("Who painted this?", "unknown"),
    ],
)
def test_answerer__questions(question, answer):
    assert PlantedAnswerer().answer([render(SCENE)], question) == [answer]


def test_text_generator__without_a_schema():
    answer = json.loads(PlantedTextGenerator().generate("Which colour and size could matter?"))
    assert answer == {
        "attributes": {"colour": list(FACTORS["colour"]), "size": list(FACTORS["size"])}
    }


def test_image_generator__draws_what_the_prompt_says():
    prompts = ["a photo of two green stars on grass", SCENE.caption]
    found = PlantedImageGenerator().generate(prompts, seeds=[1, 2])
    scene = read_marker(found[0].image)
    assert (scene.kinds, scene.colour, scene.count, scene.background) == (
        ("star",),
        "green",
        "two",
        "grassy",
    )
    assert read_marker(found[1].image).caption == SCENE.caption
    images = PlantedImageGenerator(side=96).generate(["a disc"] * 20, seeds=range(20))
    assert len({read_marker(item.image).colour for item in images}) > 4
    assert images[0].image.size == (96, 96)


def test_image_generator__as_many_seeds_as_prompts():
    with pytest.raises(ConfigError, match="one seed"):
        PlantedImageGenerator().generate(["a disc"], seeds=[])


STRINGS = {"type": "array", "items": {"type": "string"}}


def _proposed(properties, prompt="Propose.", seed=0):
    return json.loads(
        propose(prompt, schema={"type": "object", "properties": properties}, seed=seed)
    )


def test_propose__keys_choose_the_vocabulary():
    found = _proposed(
        {"colours": STRINGS, "attributes": STRINGS, "captions": {**STRINGS, "maxItems": 2}},
        prompt="About a disc.",
    )
    assert set(found["colours"]) == set(FACTORS["colour"])
    assert set(found["attributes"]) <= set(FACTOR_NAMES)
    assert len(found["captions"]) == 2
    assert all("disc" in caption for caption in found["captions"])


def test_propose__plain_types_and_choices():
    found = _proposed(
        {
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "b": {"type": "boolean"},
            "c": {"enum": ["p", "q"]},
            "name": {},
        }
    )
    assert (found["n"], found["x"], found["b"]) == (1, 0.5, True)
    assert found["c"] in ("p", "q")
    assert found["name"] in FACTOR_NAMES


@pytest.mark.parametrize(("least", "most", "n_items"), [(20, 20, 20), (0, 3, 3), (1, 100, 8)])
def test_propose__numbers_of_items(least, most, n_items):
    found = _proposed({"colours": {**STRINGS, "minItems": least, "maxItems": most}})
    assert len(found["colours"]) == n_items


def test_propose__nested_objects():
    inner = {"type": "object", "properties": {"name": {"type": "string"}, "values": STRINGS}}
    found = _proposed({"attributes": {"type": "array", "items": inner, "minItems": 2}})
    assert len(found["attributes"]) == 3
    assert all(set(item) == {"name", "values"} for item in found["attributes"])


def test_propose__seed_decides():
    first, second = (
        propose("x", schema={"type": "object", "properties": {"colours": STRINGS}}, seed=seed)
        for seed in (0, 1)
    )
    assert first != second
    assert first == propose(
        "x", schema={"type": "object", "properties": {"colours": STRINGS}}, seed=0
    )
