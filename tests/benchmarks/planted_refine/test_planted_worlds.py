import numpy as np
import pytest
from planted_refine.planted_worlds import ModelFeatures, PlantedImages, refine_problem

from weakspot.project.refine.training import Prompt
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.scenes import read_marker


def test_refine_problem__class_and_values_change_from_number_to_number():
    problems = [refine_problem("rare", "background", number) for number in range(10)]
    assert len({(one.class_name, one.rival, one.value) for one in problems}) == 10
    assert all(one.factor == "background" and one.class_name != one.rival for one in problems)


def test_planted_images__show_what_the_prompt_says(images):
    scenes = images.scenes(Prompt("disc", "A photo of a green disc on a striped background"), 8)
    assert {(scene.kinds, scene.colour, scene.background) for scene in scenes} == {
        (("disc",), "green", "striped")
    }
    assert len({scene.instance for scene in scenes}) == 8


def test_planted_images__the_first_are_always_the_same(images):
    prompt = Prompt("disc", "A photo of a disc")
    assert images.scenes(prompt, 5) == images.scenes(prompt, 9)[:5]
    assert np.array_equal(
        images.features("planted", prompt, 5), images.features("planted", prompt, 9)[:5]
    )


def test_planted_images__habits_of_the_training_samples(colour_world):
    models = {"planted": ModelFeatures(problem=colour_world.problem)}
    usual, free = (
        PlantedImages(world=colour_world, models=models, habits=habits)
        for habits in ("usual", "open")
    )
    prompt = Prompt(
        colour_world.problem.class_name, f"A photo of a {colour_world.problem.class_name}"
    )
    shares = [
        np.mean(
            [scene.colour == colour_world.problem.value for scene in generated.scenes(prompt, 300)]
        )
        for generated in (usual, free)
    ]
    assert shares[0] < 0.05
    assert shares[1] == pytest.approx(1 / 8, abs=0.06)


def test_planted_images__rendered_scenes_carry_the_same_features(images):
    prompt = Prompt("disc", "A photo of a disc")
    scenes = images.scenes(prompt, 2)
    shown = images.shown(prompt, 2)
    assert [read_marker(image) for image in shown] == scenes
    assert [PlantedEmbedder().prepare(image).tolist() for image in shown] == [
        [*scene.codes.tolist(), scene.instance] for scene in scenes
    ]


def test_model_features__the_same_for_a_image_whatever_comes_with_it(colour_world):
    features = ModelFeatures(problem=colour_world.problem, number=3, own=0.2)
    whole = features.of(colour_world.codes[:50], colour_world.instances[:50])
    assert np.array_equal(
        features.of(colour_world.codes[20:30], colour_world.instances[20:30]), whole[20:30]
    )
