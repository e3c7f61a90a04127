import pytest
from repair_results.proving import TRUE, given_slices
from repair_results.worlds import world_case

from weakspot.run.settings import Settings


@pytest.fixture(scope="session")
def correlation():
    return world_case("correlation", 1, n_samples=2000, seed=0)


@pytest.fixture(scope="session")
def true_slices(correlation):
    return given_slices(correlation, TRUE, Settings())
