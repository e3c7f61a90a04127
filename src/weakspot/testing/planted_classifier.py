"""The classifier of a planted world by its settings alone: a project folder with planted images can be opened anywhere."""

from typing import Literal

from weakspot.testing.fakes import PlantedClassifier, planted_classifier
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import PlantedProblem, nothing, rare, spurious


def planted_world_classifier(
    *,
    problem: Literal["rare", "spurious", "nothing"] = "rare",
    strength: float = 0.01,
    n_samples: int = 900,
    seed: int = 0,
) -> PlantedClassifier:
    """Return the classifier that a world trained.

    Args:
        problem: what is planted.
        strength: share of the rare kind in training, or correlation of the cue.
        n_samples: size of the world.
        seed: of the world.
    """
    problems: dict[str, PlantedProblem] = {"nothing": nothing()}
    if problem == "rare":
        problems["rare"] = rare(strength)
    if problem == "spurious":
        problems["spurious"] = spurious(strength)
    return planted_classifier(plant(problems[problem], n_samples, seed=seed))
