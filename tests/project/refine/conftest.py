import pytest
from planted_refine.planted_worlds import (
    ModelFeatures,
    PlantedImages,
    family_features,
    planted_member,
    refine_world,
)

from weakspot.project.collective import Family
from weakspot.project.refine.training import Subject


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


@pytest.fixture(scope="package")
def family_world():
    return refine_world("spurious", "background", 2, seed=77, n_samples=2500)


@pytest.fixture(scope="package")
def features(family_world):
    return {f"model {one.number}": one for one in family_features(family_world.problem, 3)}


@pytest.fixture(scope="package")
def models(family_world, features):
    return Family.of(
        [planted_member(family_world, own, name=name) for name, own in features.items()]
    )
