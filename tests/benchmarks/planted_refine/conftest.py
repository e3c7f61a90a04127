import pytest
from planted_refine.planted_worlds import (
    ModelFeatures,
    PlantedImages,
    refine_world,
)


@pytest.fixture(scope="package")
def colour_world():
    return refine_world("rare", "colour", 1, seed=77, n_samples=3000)


@pytest.fixture
def images(colour_world):
    return PlantedImages(
        world=colour_world,
        models={"planted": ModelFeatures(problem=colour_world.problem)},
        habits="usual",
    )
