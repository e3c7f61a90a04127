"""A planted world to search in, with real images."""

import pytest

from weakspot.testing.planted import PlantedProblem, PlantedWorld, plant


@pytest.fixture(scope="session")
def green_discs() -> PlantedWorld:
    """Return a world whose classifier takes most green discs for stars."""
    problem = PlantedProblem(
        kind="rare", strength=0.0, factor="colour", value="green", usual_value="red"
    )
    return plant(problem, 3000, classes=("disc", "star"))


@pytest.fixture(scope="session")
def nothing_wrong() -> PlantedWorld:
    """Return a world whose classifier fails by chance alone."""
    return plant(PlantedProblem(kind="none"), 2000, classes=("disc", "square", "star"))
