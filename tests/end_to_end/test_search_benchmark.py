"""The benchmark's shortcut: images that hold nothing but the strip tell the planted models the same."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from weakspot.core.roles import ImageGenerator
from weakspot.generate.search.memory_sampler import MemorySampler
from weakspot.testing.fakes import (
    PlantedCaptioner,
    PlantedEmbedder,
    PlantedImageGenerator,
    planted_classifier,
)
from weakspot.testing.planted import PlantedProblem, PlantedWorld, plant

PROMPT = "a realistic photograph of a disc. it is green."


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """Return the benchmark as a module."""
    path = Path(__file__).parents[2] / "benchmarks" / "search.py"
    spec = importlib.util.spec_from_file_location("search_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def green_discs() -> PlantedWorld:
    """Return a world whose classifier takes most green discs for stars."""
    problem = PlantedProblem(
        kind="rare", strength=0.0, factor="colour", value="green", usual_value="red"
    )
    return plant(problem, 3000, classes=("disc", "star"))


def _sampler(world: PlantedWorld, generator: ImageGenerator) -> MemorySampler:
    classifier = planted_classifier(world)
    return MemorySampler(
        generator=generator,
        classifier=classifier,
        embedder=PlantedEmbedder(),
        captioner=PlantedCaptioner(),
    )


def test_strip_generator__gives_the_same_predictions_embeddings_and_captions(
    benchmark: ModuleType, green_discs: PlantedWorld
) -> None:
    drawn = _sampler(green_discs, PlantedImageGenerator(side=32))
    strips = _sampler(green_discs, benchmark.StripGenerator())
    one, other = (sampler.generate(PROMPT, "disc", first=0, n=12) for sampler in (drawn, strips))
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    np.testing.assert_array_equal(drawn.embeddings(one.keys), strips.embeddings(other.keys))
    assert drawn.completions(one.keys, beginning=PROMPT) == strips.completions(
        other.keys, beginning=PROMPT
    )


def test_true_rate__is_high_where_the_problem_is(
    benchmark: ModuleType, green_discs: PlantedWorld
) -> None:
    assert benchmark.true_rate(green_discs, "disc", [("colour", "green")]) > 0.5
    assert (
        benchmark.true_rate(green_discs, "disc", [("colour", "red")])
        < benchmark.true_rate(green_discs, "disc")
        < 0.25
    )
