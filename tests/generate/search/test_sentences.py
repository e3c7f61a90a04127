"""Captions of clusters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from tests.build import planted_sampler

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import ModelError
from weakspot.generate.search.memory_sampler import MemorySampler
from weakspot.generate.search.sentences import CaptionWriter, contrasts
from weakspot.generate.search.series import SampledImages
from weakspot.testing.fakes import PlantedCaptioner
from weakspot.testing.planted import PlantedWorld

BASELINE = "a realistic photograph of a disc."


@dataclass(frozen=True, kw_only=True, eq=False)
class ToldSampler:
    """Images of which nothing is known but their captions, and perhaps embeddings or likelihoods."""

    texts: dict[str, str]
    scores: dict[str, FloatArray] | None = None
    caption_source: str = "told"
    class_names: tuple[str, ...] = ("fly", "bee")

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        """Generate nothing."""
        raise NotImplementedError

    def embeddings(self, keys: Sequence[str]) -> FloatArray:
        """Return nothing of use."""
        return np.zeros((len(keys), 2), dtype=np.float32)

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Refuse, as an embedder without a text side does."""
        raise ModelError("There is no text side.", given=texts)

    def completions(self, keys: Sequence[str], *, beginning: str) -> list[str]:
        """Return what was told."""
        assert beginning
        return [self.texts[key] for key in keys]

    def likelihoods(self, keys: Sequence[str], captions: Sequence[str]) -> FloatArray | None:
        """Return likelihoods by sentence, added up."""
        if self.scores is None:
            return None
        rows = [
            [
                sum(float(self.scores[name][int(key[1:])]) for name in self.scores if name in text)
                for text in captions
            ]
            for key in keys
        ]
        return np.array(rows, dtype=np.float32)


def _failures_and_rights(sampler: MemorySampler, n: int = 160) -> tuple[list[str], tuple[str, ...]]:
    draws = sampler.generate(BASELINE, "disc", first=0, n=n)
    is_right = draws.probabilities[:, 0] > 0.5
    failures = [key for key, right in zip(draws.keys, is_right, strict=True) if not right]
    return failures, tuple(key for key, right in zip(draws.keys, is_right, strict=True) if right)


@pytest.mark.parametrize("has_captioner", [True, False])
def test_caption__names_what_failures_share_and_right_images_lack(
    green_discs: PlantedWorld, *, has_captioner: bool
) -> None:
    sampler = planted_sampler(green_discs, captioner=PlantedCaptioner() if has_captioner else None)
    failures, right = _failures_and_rights(sampler)
    writer = CaptionWriter(sampler=sampler, baseline=BASELINE, right_keys=right)
    said, _ = writer.caption(failures)
    assert said[0] == "it is green"
    assert len(said) <= 4


def test_caption__what_is_true_of_every_image_is_not_said() -> None:
    texts = {f"f{place}": "it has wings. it is on a flower." for place in range(6)}
    texts |= {f"r{place}": "it has wings. it is on a wall." for place in range(6)}
    writer = CaptionWriter(
        sampler=ToldSampler(texts=texts), baseline="a fly.", right_keys=tuple(texts)[6:]
    )
    assert writer.caption(list(texts)[:6])[0] == ("it is on a flower",)


def test_caption__a_cluster_of_its_own_looks_says_nothing_that_failures_do_not_share() -> None:
    colours = ["red", "blue", "green", "white"] * 3
    texts = {f"f{place}": f"it is {colour}." for place, colour in enumerate(colours)}
    texts |= {f"r{place}": f"it is {colour}." for place, colour in enumerate(colours)}
    failures, right = list(texts)[:12], tuple(texts)[12:]
    writer = CaptionWriter(sampler=ToldSampler(texts=texts), baseline="a fly.", right_keys=right)
    assert writer.caption(failures[::4], failures)[0] == ()
    assert writer.caption(failures[::4])[0] == ("it is red",)


def test_caption__leaves_out_sentences_that_name_what_it_was_taken_for() -> None:
    texts = {f"f{place}": "there are honey bees. it is on a flower." for place in range(5)}
    texts |= {f"r{place}": "it is on a wall." for place in range(5)}
    writer = CaptionWriter(
        sampler=ToldSampler(texts=texts),
        baseline="a fly.",
        right_keys=tuple(texts)[5:],
        avoided=("honey_bee", "wall clock"),
    )
    sentences, left_out = writer.caption(list(texts)[:5])
    assert sentences == ("it is on a flower",)
    assert left_out == ("there are honey bees",)


def test_caption__survives_likelihoods_that_are_not_numbers() -> None:
    texts = {f"f{place}": "it is on a flower. it is odd." for place in range(5)} | {
        f"r{place}": "" for place in range(5)
    }
    scores = {
        "flower": np.array([-1.0] * 5, dtype=np.float32),
        "odd": np.array([np.nan, -np.inf, -1, -1, -1], dtype=np.float32),
    }
    sampler = ToldSampler(texts=texts, scores=scores)
    said = CaptionWriter(sampler=sampler, baseline="a fly.", right_keys=tuple(texts)[5:]).caption(
        list(texts)[:5]
    )
    assert set(said[0]) <= {"it is on a flower", "it is odd"}


def test_contrasts__counts_standard_errors_of_the_difference() -> None:
    values = np.array([[0.0, 5.0], [1.0, 5.0], [0.0, 5.0], [1.0, 5.0]])
    found = contrasts(values + np.array([1.0, 0.0]), values)
    assert found[0] == pytest.approx(1.0 / np.sqrt((2.0 / 6) * (2 / 4)), rel=1e-3)
    assert found[1] == 0.0
