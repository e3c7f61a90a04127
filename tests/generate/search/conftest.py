"""A planted world to search in, with real images."""

from collections.abc import Callable

import pytest

from weakspot.core.roles import Captioner
from weakspot.generate.search.memory_sampler import MemorySampler
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator, planted_classifier
from weakspot.testing.planted import PlantedProblem, PlantedWorld, plant

SIDE = 32


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


@pytest.fixture
def sampler_of() -> Callable[..., MemorySampler]:
    """Return what makes a sampler of small images of a world."""

    def build(world: PlantedWorld, captioner: Captioner | None, *, seed: int = 0) -> MemorySampler:
        return MemorySampler(
            generator=PlantedImageGenerator(side=SIDE),
            classifier=planted_classifier(world),
            embedder=PlantedEmbedder(),
            captioner=captioner,
            seed=seed,
        )

    return build
