import pytest

from weakspot.core.errors import ConfigError
from weakspot.testing.planted_problems import PlantedProblem, label_noise, nothing, rare, spurious


def test_problems__in_short():
    assert (spurious(0.8).kind, spurious(0.8).strength) == ("spurious", 0.8)
    assert (rare(0.1, value="red").factor, rare(0.1, value="red").usual_value) == ("colour", "blue")
    assert label_noise(0.3).strength == 0.3
    assert nothing() == PlantedProblem()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"strength": 1.5}, r"\[0, 1\]"),
        ({"strength": -0.1}, r"\[0, 1\]"),
        ({"evaluation_share": 0.5}, "evaluation_share must lie in"),
        ({"factor": "kind"}, "no factor 'kind'; choose"),
        ({"value": "beige"}, "Two different values"),
        ({"value": "plain", "usual_value": "plain"}, "Two different values"),
        ({"class_name": "star", "rival": "star"}, "Two different classes"),
    ],
)
def test_planted_problem__refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        PlantedProblem(**wrong)
