import pytest

from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import rare


@pytest.fixture(scope="session")
def world():
    return plant(rare(0.01), 900, seed=3)


@pytest.fixture(scope="session")
def manifest(world, tmp_path_factory):
    return world.write_pictures(tmp_path_factory.mktemp("world")).manifest
