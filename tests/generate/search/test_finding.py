"""The whole search on planted worlds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from PIL import Image
from tests.build import planted_sampler

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError, RefusedPromptError
from weakspot.core.failures import FailureCriterion, LabelHierarchy
from weakspot.core.roles import GeneratedImage
from weakspot.generate.search.finding import (
    CaptionSearch,
    ClassSearch,
    search_failures,
    usable_criterion,
)
from weakspot.generate.search.memory_sampler import MemorySampler
from weakspot.generate.search.sentences import ASSEMBLED
from weakspot.generate.search.series import SampledImages, StoppedBecause
from weakspot.run.settings import SearchSettings
from weakspot.testing.fakes import (
    PlantedCaptioner,
    PlantedEmbedder,
    PlantedImageGenerator,
)
from weakspot.testing.planted import PlantedWorld
from weakspot.testing.scenes import read_marker

DISC = CaptionSearch(class_name="disc")


@dataclass(frozen=True, kw_only=True)
class PhraseCaptioner(PlantedCaptioner):
    """Says two things in a sentence, so that an adjective can be left out."""

    def complete(self, images: Sequence[Image.Image], *, beginning: str) -> list[str]:
        """Return two sentences an image."""
        assert beginning
        scenes = [read_marker(image) for image in images]
        return [
            f"It is a {one.size} {one.colour} {one.kinds[0]}. There is a {one.background} background."
            for one in scenes
        ]


@dataclass(frozen=True, kw_only=True)
class TwiceCaptioner:
    """Says the same thing twice, and cannot go on from a beginning or tell likelihoods."""

    captioner_id: str = "twice"

    def caption(self, images: Sequence[Image.Image], *, about: str | None = None) -> list[str]:
        """Return two sentences an image."""
        assert about == "disc"
        return [
            f"it glows {colour}. it is {colour}."
            for colour in (read_marker(image).colour for image in images)
        ]


@dataclass(frozen=True, kw_only=True)
class TextlessEmbedder(PlantedEmbedder):
    """Knows no words."""

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Refuse."""
        raise ModelError("There is no text side.", given=texts)


@dataclass(frozen=True, kw_only=True)
class ShyGenerator:
    """Refuses to generate what it is told not to."""

    refused: str
    generator_id: str = "shy"

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Generate, or refuse."""
        if any(self.refused in prompt for prompt in prompts):
            raise RefusedPromptError(
                f"It cannot generate {self.refused}.", fix="Ask for something else."
            )
        return PlantedImageGenerator(side=32).generate(prompts, seeds=seeds)


class EmptySampler(MemorySampler):
    """Everything is rejected."""

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        """Reject all."""
        assert prompt.startswith("a realistic photograph")
        assert class_name == "disc"
        assert first >= 0
        return SampledImages(
            keys=(),
            probabilities=np.zeros((0, 2), dtype=np.float32),
            n_asked=n,
            rejected={"blank": n},
        )


class RepeatingSampler(MemorySampler):
    """Of every eight images only the first is new."""

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        """Leave out the copies."""
        whole = super().generate(prompt, class_name, first=first, n=n)
        kept = whole.keys[::8]
        return replace(
            whole,
            keys=kept,
            probabilities=whole.probabilities[::8],
            rejected={"near-duplicate": n - len(kept)},
        )


@pytest.fixture(scope="module")
def found(green_discs: PlantedWorld) -> ClassSearch:
    """Return what a search finds with the planted captioner."""
    return search_failures(planted_sampler(green_discs), DISC)


def test_search_failures__finds_the_planted_caption_and_nothing_else(found: ClassSearch) -> None:
    assert [finding.trial.caption for finding in found.findings] == ["it is green."]
    finding = found.findings[0]
    assert finding.trial.prompt == "a realistic photograph of a disc (device). it is green."
    assert finding.trial.rate.value > found.baseline.rate.value + 0.3
    assert finding.trial.q_value <= 0.05
    assert finding.example_keys
    assert set(finding.trial.wrong_labels) == {"star"}


def test_search_failures__tells_everything_it_drew(found: ClassSearch) -> None:
    assert found.n_images == found.baseline.n_asked + sum(trial.n_asked for trial in found.trials)
    assert found.clusters[0].size == max(cluster.size for cluster in found.clusters)
    assert "it is green" in found.clusters[0].caption
    assert found.clusters[0].predicted == "star"
    assert found.caption_source == "planted-captioner-1"
    assert ClassSearch.model_validate_json(found.model_dump_json()) == found


def test_search_failures__the_same_seed_gives_the_same_result_and_a_second_search_draws_nothing(
    found: ClassSearch, green_discs: PlantedWorld
) -> None:
    sampler = planted_sampler(green_discs)
    assert search_failures(sampler, DISC) == found
    n_generated = sampler.n_generated
    assert n_generated == found.n_images
    assert search_failures(sampler, DISC) == found
    assert sampler.n_generated == n_generated


def test_search_failures__drops_adjectives_that_do_not_matter(green_discs: PlantedWorld) -> None:
    result = search_failures(planted_sampler(green_discs, captioner=PhraseCaptioner()), DISC)
    assert "it is a green disc." in [finding.trial.caption for finding in result.findings]
    assert result.findings[0].is_shortened
    assert "adjective" in {trial.step for trial in result.trials}


def test_search_failures__works_with_words_and_says_so(green_discs: PlantedWorld) -> None:
    result = search_failures(planted_sampler(green_discs, captioner=None), DISC)
    assert ["green" in finding.trial.caption for finding in result.findings] == [True]
    assert result.caption_source == ASSEMBLED
    assert any(ASSEMBLED in note for note in result.notes)


def test_search_failures__finds_nothing_where_nothing_is_wrong(nothing_wrong: PlantedWorld) -> None:
    result = search_failures(planted_sampler(nothing_wrong), DISC)
    assert result.trials
    assert result.findings == ()


def test_search_failures__measures_own_captions_first_and_explains_failures_with_them(
    green_discs: PlantedWorld,
) -> None:
    request = replace(DISC, own_captions=("It is green!", "it is on a brick wall", " "))
    result = search_failures(planted_sampler(green_discs), request)
    assert [(trial.step, trial.caption, trial.is_proven) for trial in result.trials[:2]] == [
        ("user", "it is green.", True), ("user", "it is on a brick wall.", False)
    ]  # fmt: skip
    assert [finding.trial.caption for finding in result.findings] == ["it is green."]


def test_search_failures__counts_only_failures_towards_a_target(
    nothing_wrong: PlantedWorld,
) -> None:
    request = replace(
        DISC,
        target="square",
        enough_failures=4,
        settings=SearchSettings(most_baseline=64, budget=200),
    )
    result = search_failures(planted_sampler(nothing_wrong), request)
    assert result.baseline.failures == result.baseline.wrong_labels.get("square", 0)
    assert result.baseline.all_failures == sum(result.baseline.wrong_labels.values())
    assert {cluster.predicted for cluster in result.clusters} <= {"square"}
    assert result.criterion == "the sample is taken for 'square'"


def test_search_failures__a_caption_that_cannot_be_drawn_is_noted(
    green_discs: PlantedWorld,
) -> None:
    sampler = planted_sampler(green_discs, generator=ShyGenerator(refused="it is green"))
    result = search_failures(sampler, DISC)
    assert not any("green" in finding.trial.caption for finding in result.findings)
    assert any("cannot generate" in note and "it is green" in note for note in result.notes)


def test_search_failures__a_caption_that_cannot_be_drawn_whole_is_tried_in_parts(
    green_discs: PlantedWorld,
) -> None:
    parts = {"embedder": TextlessEmbedder(), "captioner": TwiceCaptioner()}
    sampler = planted_sampler(green_discs, generator=ShyGenerator(refused="green. it"), **parts)
    result = search_failures(sampler, replace(DISC, settings=SearchSettings(most_clusters=1)))
    assert result.trials[0].stopped_because is StoppedBecause.REFUSED
    assert {finding.trial.caption for finding in result.findings} == {"it is green."}


def test_search_failures__a_class_that_cannot_be_drawn_is_an_error(
    green_discs: PlantedWorld,
) -> None:
    sampler = planted_sampler(green_discs, generator=ShyGenerator(refused="disc"))
    with pytest.raises(RefusedPromptError, match="baseline prompt"):
        search_failures(sampler, DISC)
    with pytest.raises(NotEnoughDataError, match="passed the quality check"):
        search_failures(planted_sampler(green_discs, EmptySampler), DISC)
    with pytest.raises(DataError, match="no class"):
        search_failures(sampler, CaptionSearch(class_name="whale"))


def test_search_failures__a_classifier_without_failures_is_told(green_discs: PlantedWorld) -> None:
    request = replace(
        DISC,
        criterion=FailureCriterion(kind="top-k", k=2),
        settings=SearchSettings(most_baseline=40),
    )
    result = search_failures(planted_sampler(green_discs), request)
    assert (result.findings, result.clusters, result.trials) == ((), (), ())
    assert any("nothing to caption" in note for note in result.notes)


def test_search_failures__few_different_images_are_told(green_discs: PlantedWorld) -> None:
    sampler = planted_sampler(green_discs, RepeatingSampler)
    result = search_failures(sampler, replace(DISC, settings=SearchSettings(budget=200)))
    note = next(note for note in result.notes if "passed the quality check" in note)
    assert f"Only {result.baseline.n_images} of {result.baseline.n_asked}" in note
    assert "near-duplicate" in note


def test_usable_criterion__derives_parents_only_where_they_are_needed() -> None:
    classes = ("fly", "bee", "sparrow")
    derived = usable_criterion(FailureCriterion(kind="parent", k=1), classes)
    probabilities = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], dtype=np.float32)
    failed = derived.failed_predictions(probabilities, np.array([0, 0]), classes)
    assert failed.tolist() == [False, True]
    given = FailureCriterion(kind="parent", hierarchy=LabelHierarchy(parents={"fly": "thing"}))
    assert usable_criterion(given, classes) is given
    assert usable_criterion(FailureCriterion(), classes) == FailureCriterion()
