"""The sampler that keeps everything in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.build import planted_sampler

from weakspot.core.arrays import child_seed
from weakspot.core.errors import DataError
from weakspot.core.roles import GeneratedImage
from weakspot.generate.search.memory_sampler import MemorySampler
from weakspot.testing.fakes import (
    PlantedEmbedder,
    PlantedImageGenerator,
    planted_classifier,
)
from weakspot.testing.planted import PlantedWorld

PROMPT = "a realistic photograph of a disc."


@dataclass(frozen=True, kw_only=True)
class CountingGenerator:
    """Remembers what it was asked."""

    asked: list[int] = field(default_factory=list)
    generator_id: str = "counting"

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Generate and remember."""
        self.asked.extend(seeds)
        return PlantedImageGenerator(side=32).generate(prompts, seeds=seeds)


def test_draw__never_asks_twice_and_gives_the_same_place_the_same_image(
    green_discs: PlantedWorld,
) -> None:
    generator = CountingGenerator()
    sampler = MemorySampler(
        generator=generator,
        classifier=planted_classifier(green_discs),
        embedder=PlantedEmbedder(),
        seed=3,
    )
    whole = sampler.generate(PROMPT, "disc", first=0, n=6)
    part = sampler.generate(PROMPT, "disc", first=2, n=6)
    assert generator.asked == [
        child_seed(3, "search", "disc", PROMPT, str(place)) for place in range(8)
    ]
    assert part.keys[:4] == whole.keys[2:]
    np.testing.assert_array_equal(part.probabilities[:4], whole.probabilities[2:])
    assert (whole.n_asked, dict(whole.rejected), sampler.n_generated) == (6, {}, 8)


def test_image__of_elsewhere_is_refused(green_discs: PlantedWorld) -> None:
    with pytest.raises(DataError, match="was not generated here"):
        planted_sampler(green_discs).image("nothing")
