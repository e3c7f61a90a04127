"""Shortening of proven captions.

Shorter wordings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from weakspot.core.arrays import FloatArray, generator
from weakspot.core.failures import FailureCriterion
from weakspot.generate.search.finding import (
    Refined,
    Refinement,
    without_adjectives,
)
from weakspot.generate.search.sentences import caption_of, whole_prompt
from weakspot.generate.search.series import CaptionTrials, SampledImages
from weakspot.run.settings import SearchSettings

BASELINE = "a photo of a fly."


@dataclass(frozen=True, kw_only=True, eq=False)
class RateSampler:
    """Fails at the rate of the longest row of words that a prompt holds in full, the last of equally long ones."""

    rates: Mapping[str, float]
    generated: dict[str, int] = field(default_factory=dict)
    class_names: tuple[str, ...] = ("fly", "bee")
    caption_source: str = "nobody"

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        """Generate predictions of the prompt's series."""
        assert class_name == "fly"
        held = [
            words
            for words in self.rates
            if set(words.split()) <= set(prompt.replace(".", "").split())
        ]
        rate = self.rates[max(reversed(held), key=lambda words: len(words.split()))]
        failed = generator(0, prompt).random(4000)[first : first + n] < rate
        self.generated[prompt] = first + n
        keys = tuple(f"{prompt} {place}" for place in range(first, first + n))
        return SampledImages(
            keys=keys,
            probabilities=np.stack([~failed, failed], axis=1).astype(np.float32),
            n_asked=n,
            rejected={},
        )

    def embeddings(self, keys: Sequence[str]) -> FloatArray:
        """Return nothing of use."""
        return np.zeros((len(keys), 2), dtype=np.float32)

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return nothing of use."""
        return np.zeros((len(texts), 2), dtype=np.float32)

    def completions(self, keys: Sequence[str], *, beginning: str) -> list[str]:
        """Say nothing."""
        assert beginning
        return [""] * len(keys)

    def likelihoods(self, keys: Sequence[str], captions: Sequence[str]) -> FloatArray | None:
        """Say nothing."""
        assert keys
        assert captions


def _refined(
    sampler: RateSampler,
    *sentences: str,
    reword: Callable[[str], Sequence[str]] | None = None,
) -> tuple[Refined, CaptionTrials]:
    trials = CaptionTrials(
        sampler, class_name="fly", criterion=FailureCriterion(), settings=SearchSettings()
    )
    trials.baseline(BASELINE)
    refinement = Refinement(
        trials=trials,
        baseline=BASELINE,
        class_words=frozenset({"fly"}),
        reword=reword,
    )
    whole = trials.try_captions(
        [(caption_of(sentences), whole_prompt(BASELINE, sentences))], step="cluster"
    )[0]
    assert whole.is_proven
    return refinement.shortest(sentences, whole), trials


def test_shortest__is_the_sentence_that_matters_without_its_adjective() -> None:
    sampler = RateSampler(rates={"fly": 0.05, "flower": 0.7})
    refined, trials = _refined(
        sampler, "it is sharp", "it is on a yellow flower", "the background is green"
    )
    assert refined[0] == ("it is on a flower",)
    assert refined[1].is_proven
    assert [trial.step for trial in trials.trials] == [
        "cluster",
        "sentence",
        "sentence",
        "sentence",
        "adjective",
    ]


def test_shortest__keeps_an_adjective_that_matters() -> None:
    sampler = RateSampler(rates={"fly": 0.05, "yellow": 0.7})
    assert _refined(sampler, "it is on a yellow flower")[0][0] == ("it is on a yellow flower",)
    refined, _ = _refined(sampler, "it is on a small yellow flower", "it is wet")
    assert refined[0] == ("it is on a yellow flower",)


def test_shortest__does_not_try_what_could_not_be_shorter() -> None:
    sampler = RateSampler(rates={"fly": 0.05, "dark": 0.7})
    refined, trials = _refined(sampler, "it is dark", "it is on a flower", "it is wet")
    assert refined[0] == ("it is dark",)
    assert [trial.caption for trial in trials.trials[1:]] == ["it is dark."]


def test_shortest__keeps_sentences_that_matter_only_together() -> None:
    sampler = RateSampler(rates={"fly": 0.05, "dark wet": 0.8})
    refined, _ = _refined(sampler, "it is dark", "it is small", "it is wet")
    assert refined[0] == ("it is dark", "it is wet")


def test_shortest__a_weaker_sentence_does_not_replace_a_strong_caption() -> None:
    sampler = RateSampler(rates={"fly": 0.05, "dark": 0.35, "dark wet": 0.9})
    refined, trials = _refined(sampler, "it is dark", "it is wet")
    assert refined[0] == ("it is dark", "it is wet")
    alone = next(trial for trial in trials.trials if trial.caption == "it is dark.")
    assert alone.is_proven


def test_shortest__a_sentence_that_says_the_class_alone_is_not_tried() -> None:
    sampler = RateSampler(rates={"fly": 0.05, "green": 0.7})
    refined, trials = _refined(sampler, "it is a green fly")
    assert refined[0] == ("it is a green fly",)
    assert len(trials.trials) == 1


@pytest.mark.parametrize(
    ("sentence", "shorter"),
    [
        ("it is on a yellow flower", ("it is on a flower",)),
        ("it is an orange square", ("it is a square",)),
        (
            "there is a dark grassy background",
            ("there is a background", "there is a dark background", "there is a grassy background"),
        ),
        ("the background is green", ()),
        ("it is dark", ()),
        ("there is one on the left", ()),
        ("it is in a net", ()),
    ],
)
def test_without_adjectives__leaves_out_what_stands_before_something(
    sentence: str, shorter: tuple[str, ...]
) -> None:
    assert without_adjectives(sentence) == shorter


def test_shortest__wordings_of_a_language_model_are_measured_like_others() -> None:
    """Only those with fewer words are tried, and one that fails less often does not win."""
    sampler = RateSampler(rates={"fly": 0.05, "barn tree": 0.9, "tree": 0.9, "barn": 0.1})
    asked = []

    def reword(caption: str) -> tuple[str, ...]:
        asked.append(caption)
        return (
            "it is by a tree.",
            "it is by a barn.",
            "it is by a barn and a large tree.",
            "a fly.",
        )

    refined, objective = _refined(sampler, "it is by a barn and a tree", reword=reword)
    assert asked == ["it is by a barn and a tree."]
    assert refined[0] == ("it is by a tree",)
    tried = [trial.caption for trial in objective.trials if trial.step == "reworded"]
    assert tried == ["it is by a barn.", "it is by a tree."]
    kept, _ = _refined(sampler, "it is by a barn and a tree", reword=lambda caption: ())
    assert kept[0] == ("it is by a barn and a tree",)
