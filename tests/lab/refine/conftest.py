import pytest
from planted_refine.planted_worlds import (
    ModelFeatures,
    PlantedImages,
    planted_member,
    refine_world,
)

from weakspot.lab.refine.subjects import Subject


@pytest.fixture(scope="package")
def colour_world():
    return refine_world("rare", "colour", 1, seed=77, n_samples=3000)


@pytest.fixture(scope="package")
def subject(colour_world):
    return Subject.of(planted_member(colour_world))


@pytest.fixture
def images(colour_world):
    return PlantedImages(
        world=colour_world,
        models={"planted": ModelFeatures(problem=colour_world.problem)},
        habits="usual",
    )
