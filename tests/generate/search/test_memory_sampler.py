"""The sampler that keeps everything in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from PIL import Image

from weakspot.core.arrays import child_seed
from weakspot.core.errors import DataError
from weakspot.core.roles import GeneratedImage
from weakspot.generate.search.memory_sampler import MemorySampler
from weakspot.generate.search.sentences import ASSEMBLED
from weakspot.testing.fakes import (
    PlantedCaptioner,
    PlantedEmbedder,
    PlantedImageGenerator,
    planted_classifier,
)
from weakspot.testing.planted import PlantedWorld

PROMPT = "a realistic photograph of a disc."
Build = Callable[..., MemorySampler]


@dataclass(frozen=True, kw_only=True)
class CountingGenerator:
    """Remembers what it was asked."""

    asked: list[int] = field(default_factory=list)
    generator_id: str = "counting"

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Generate and remember."""
        self.asked.extend(seeds)
        return PlantedImageGenerator(side=32).generate(prompts, seeds=seeds)


@dataclass(frozen=True, kw_only=True)
class PlainCaptioner:
    """Only captions."""

    captioner_id: str = "plain"

    def caption(self, images: Sequence[Image.Image], *, about: str | None = None) -> list[str]:
        """Say what it is about."""
        return [f"an image of {about}"] * len(images)


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


def test_draw__says_what_the_classifier_says_of_the_image(
    green_discs: PlantedWorld, sampler_of: Build
) -> None:
    sampler, classifier = sampler_of(green_discs, None), planted_classifier(green_discs)
    draws = sampler.generate(PROMPT, "disc", first=1, n=3)
    prepared = [classifier.prepare(sampler.image(key)) for key in draws.keys]
    np.testing.assert_allclose(
        draws.probabilities, classifier.classify(prepared).probabilities, rtol=1e-5
    )
    assert sampler.generate(PROMPT, "disc", first=0, n=0).probabilities.shape == (0, 2)


def test_embeddings__are_those_of_the_embedder_in_the_order_asked(
    green_discs: PlantedWorld, sampler_of: Build
) -> None:
    sampler, embedder = sampler_of(green_discs, None), PlantedEmbedder()
    keys = sampler.generate(PROMPT, "disc", first=0, n=4).keys
    backwards = sampler.embeddings(keys[::-1])
    wanted = embedder.embed_prepared([embedder.prepare(sampler.image(key)) for key in keys])
    np.testing.assert_allclose(backwards, wanted[::-1], rtol=1e-5)
    assert sampler.embeddings([]).shape == (0, embedder.dimension)


def test_completions__by_captioner_by_plain_captioner_and_by_words(
    green_discs: PlantedWorld, sampler_of: Build
) -> None:
    prompt = f"{PROMPT} it is green."
    for captioner, wanted, source in (
        (PlantedCaptioner(), "the background is", "planted-captioner-1"),
        (PlainCaptioner(), "an image of disc", "plain"),
        (None, "it is", ASSEMBLED),
    ):
        sampler = sampler_of(green_discs, captioner)
        keys = sampler.generate(prompt, "disc", first=0, n=6).keys
        said = sampler.completions(keys, beginning=PROMPT)
        assert len(said) == 6
        assert all(wanted in text for text in said)
        assert sampler.caption_source == source


def test_likelihoods__only_from_who_can_say(green_discs: PlantedWorld, sampler_of: Build) -> None:
    scoring, plain = (
        sampler_of(green_discs, PlantedCaptioner()),
        sampler_of(green_discs, PlainCaptioner()),
    )
    keys = scoring.generate(f"{PROMPT} it is green.", "disc", first=0, n=2).keys
    scores = scoring.likelihoods(keys, ["it is green.", "it is red."])
    assert scores is not None
    assert (scores[:, 0] > scores[:, 1]).all()
    assert plain.likelihoods(keys, ["it is green."]) is None


def test_image__of_elsewhere_is_refused(green_discs: PlantedWorld, sampler_of: Build) -> None:
    with pytest.raises(DataError, match="was not generated here"):
        sampler_of(green_discs, None).image("nothing")
