import pytest

from weakspot.core.errors import ConfigError
from weakspot.project.refine.training import RefineRequest


def test_refine_request__images_of_a_value_grow_with_its_failures_up_to_a_limit():
    request = RefineRequest(n_each=5, least_each=1, most_each=20)
    assert [request.n_images(n_failures) for n_failures in (1, 3, 4, 50)] == [5, 15, 20, 20]


def test_refine_request__says_everything_that_is_wrong_at_once():
    with pytest.raises(ConfigError) as caught:
        RefineRequest(
            kinds=("taste",), n_names=0, debug_weight=-1.0, most_lost=1.0, arms=("magic",)
        )
    for words in (
        "taste",
        "n_names must be at least 1",
        "debug_weight must be above 0",
        "most_lost",
        "magic",
    ):
        assert words in caught.value.what
