from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.arrays import generator
from weakspot.core.errors import (
    DataError,
    InputError,
    NotEnoughDataError,
    RefusedPromptError,
)
from weakspot.core.failures import FailureCriterion
from weakspot.generate.search.series import CaptionTrials, SampledImages, StoppedBecause
from weakspot.run.settings import SearchSettings

CLASSES = ("fly", "bee", "wasp")
PROMPT = "a fly."


class KnownRates:
    """A sampler whose images fail with known rates: towards bee, or towards wasp for the second rate of a pair."""

    class_names = CLASSES
    caption_source = "nobody"

    def __init__(
        self,
        rates: Mapping[str, float | tuple[float, float]],
        *,
        seed: int = 0,
        kept: Mapping[str, float] | None = None,
    ):
        self.rates, self.seed, self.kept = rates, seed, kept or {}
        self.places: dict[str, list[int]] = {}

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        assert class_name == "fly"
        if prompt not in self.rates:
            raise RefusedPromptError(f"There is no {prompt!r}.", fix="Use known words.")
        self.places.setdefault(prompt, []).extend(range(first, first + n))
        rate = self.rates[prompt]
        bee, wasp = rate if isinstance(rate, tuple) else (rate, 0.0)
        chances = generator(self.seed, prompt).random((2, first + n))[:, first:]
        is_kept = chances[1] < self.kept.get(prompt, 1.0)
        codes = np.where(chances[0] < bee, 1, np.where(chances[0] < bee + wasp, 2, 0))[is_kept]
        keys = tuple(f"{prompt} {place}" for place in np.flatnonzero(is_kept) + first)
        n_lost = int(n - is_kept.sum())
        rejected = {"black": n_lost} if n_lost else {}
        return SampledImages(
            keys=keys,
            probabilities=np.eye(3, dtype=np.float32)[codes],
            n_asked=n,
            rejected=rejected,
        )


def world(
    baseline: float, rates: list[float], *, seed: int = 0, **design: object
) -> tuple[CaptionTrials, list[tuple[str, str]]]:
    """Return a contest with its baseline generated, and captions with these rates."""
    captions = [(f"caption {place}.", f"{PROMPT} caption {place}.") for place in range(len(rates))]
    sampler = KnownRates(
        {
            PROMPT: baseline,
            **{prompt: rate for (_, prompt), rate in zip(captions, rates, strict=True)},
        },
        seed=seed,
    )
    return contest_of(sampler, **{"most_captions": 20, **design}), captions


def contest_of(sampler: KnownRates, *, asked: Mapping[str, object] = {}, **design: object):
    """Return a contest whose baseline is generated, if it can be; `asked` is of the contest, the rest are settings."""
    contest = CaptionTrials(
        sampler,
        **{"class_name": "fly", "criterion": FailureCriterion(), **asked},
        settings=SearchSettings(**design),
    )
    if PROMPT in sampler.rates:
        contest.baseline(PROMPT)
    return contest


def test_try_captions__proves_the_planted_ones_and_gives_up_the_others():
    contest, captions = world(0.1, [0.7, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1])
    trials = contest.try_captions(captions, step="cluster")
    assert [place for place, trial in enumerate(trials) if trial.is_proven] == [0, 3]
    assert {trial.stopped_because for trial in trials if trial.is_proven} == {StoppedBecause.BETTER}
    assert {trial.stopped_because for trial in trials if not trial.is_proven} == {
        StoppedBecause.NOT_BETTER
    }
    proven, other = trials[0], trials[1]
    assert proven.difference
    assert proven.ratio
    assert proven.difference.low > 0
    assert proven.ratio.low > 1
    assert proven.q_value <= 0.05 < other.q_value
    assert proven.log10_e_value > np.log10(20) > other.log10_e_value
    assert proven.rate.interval.low < 0.7 < proven.rate.interval.high
    assert contest.trials == trials


def test_try_captions__needs_at_most_a_fifth_of_a_fixed_design():
    n_asked, n_found = [], []
    for seed in range(4):
        contest, captions = world(0.1, [0.5, 0.8, *[0.1] * 18], seed=seed)
        trials = contest.try_captions(captions, step="cluster")
        n_asked.append(contest.n_asked)
        n_found.append(sum(trial.is_proven for trial in trials[:2]))
    planned = (
        7009  # fixed_design(0.1, 0.1, n_captions=20, power=0.95) of benchmarks/sequential_worlds.py
    )
    assert np.mean(n_asked) <= planned / 5
    assert np.sum(n_found) >= 7


def test_try_captions__false_discoveries_stay_rare_when_nothing_is_there():
    n_false = 0
    for seed in range(20):
        contest, captions = world(0.15, [0.15] * 5, seed=seed, alpha=0.2, most_captions=5)
        n_false += any(trial.is_proven for trial in contest.try_captions(captions, step="cluster"))
    assert n_false <= 20 * 0.2 + 2 * np.sqrt(20 * 0.16)


def test_try_captions__a_refused_prompt_is_a_trial_with_a_note():
    contest, captions = world(0.1, [0.8])
    refused, proven = contest.try_captions([("snow", "a fly in snow"), *captions], step="cluster")
    assert refused.stopped_because is StoppedBecause.REFUSED
    assert "known words" in refused.note
    assert not refused.can_be_generated
    assert refused.difference is None
    assert proven.is_proven


def test_try_captions__a_caption_whose_images_are_all_rejected_is_rejected():
    sampler = KnownRates({PROMPT: 0.1, "dark": 0.9, "dim": 0.9}, kept={"dark": 0.0, "dim": 0.5})
    contest = contest_of(sampler)
    dark, dim = contest.try_captions([("dark", "dark"), ("dim", "dim")], step="cluster")
    assert dark.stopped_because is StoppedBecause.REJECTED
    assert dark.rejected == {"black": dark.n_asked}
    assert dark.n_asked <= 24
    assert dim.is_proven
    assert dim.n_images + dim.rejected["black"] == dim.n_asked


def test_try_captions__the_budget_ends_it():
    contest, captions = world(0.1, [0.25] * 10, budget=260)
    trials = contest.try_captions(captions, step="cluster")
    assert contest.is_spent
    assert contest.n_asked == 260
    assert StoppedBecause.BUDGET in {trial.stopped_because for trial in trials}
    late = contest.try_captions([("late", f"{PROMPT} caption 0. late")], step="user")[0]
    assert late.stopped_because is StoppedBecause.BUDGET
    assert not late.can_be_generated


def test_try_captions__more_captions_than_announced_are_not_drawn():
    contest, captions = world(0.1, [0.8, 0.8, 0.8], most_captions=2)
    trials = contest.try_captions(captions, step="cluster")
    assert [trial.is_proven for trial in trials] == [True, True, False]
    assert not trials[2].can_be_generated
    assert "announced" in trials[2].note


def test_try_captions__goes_on_until_enough_target_failures():
    rates = {PROMPT: (0.05, 0.05), "wasps": (0.0, 0.6), "bees": (0.6, 0.0)}
    asked = {"target": "wasp", "until_target_failures": 20}
    contest = contest_of(KnownRates(rates), asked=asked, most_baseline=800)
    baseline = contest.baseline(PROMPT)
    assert baseline.target_failures >= 20
    assert baseline.all_failures > baseline.target_failures
    wasps, bees = contest.try_captions([("wasps", "wasps"), ("bees", "bees")], step="cluster")
    assert wasps.stopped_because is StoppedBecause.TARGET_FAILURES
    assert 20 <= wasps.target_failures < 28
    assert wasps.is_proven
    assert bees.stopped_because is StoppedBecause.NOT_BETTER
    assert bees.failures == 0
    assert bees.all_failures > 0
    assert bees.wrong_labels == {"bee": bees.all_failures}


def test_baseline__draws_enough_to_begin_with_and_more_failures_if_asked():
    contest, _ = world(0.1, [])
    first = contest.baseline(PROMPT)
    assert 32 <= first.n_images < 250
    assert first.stopped_because is StoppedBecause.PRECISE
    assert first.step == "baseline"
    more = contest.baseline(PROMPT, enough_failures=30)
    assert more.failures >= 30
    assert contest.n_asked == more.n_asked
    assert len(contest.failures_of_baseline()) == more.failures
    assert {one.label for one in contest.failures_of_baseline()} == {"bee"}
    with pytest.raises(InputError):
        contest.baseline("another")


def test_baseline__a_refused_one_leaves_nothing_to_compare_with():
    contest = contest_of(KnownRates({}))
    assert contest.baseline(PROMPT).stopped_because is StoppedBecause.REFUSED
    with pytest.raises(NotEnoughDataError):
        contest.try_captions([("x", "x")], step="user")


def test_same_rate__knows_a_shorter_caption_that_does_as_well():
    right = []
    for seed in range(8):
        contest, captions = world(0.1, [0.8, 0.8, 0.15], seed=seed)
        longer, equal, lower = contest.try_captions(captions, step="sentence")
        right += [contest.same_rate(equal, longer), not contest.same_rate(lower, longer)]
    assert np.mean(right) >= 0.85


def test_same_rate__decides_by_what_there_is_when_the_budget_is_spent():
    contest, captions = world(0.1, [0.8, 0.78], budget=160)
    longer, shorter = contest.try_captions(captions, step="sentence")
    assert isinstance(contest.same_rate(shorter, longer, margin=0.01), bool)
    assert contest.n_asked <= 160


def test_proven_among__a_caption_that_others_helped_may_fall_out_when_it_is_reported_alone():
    helped = 0
    for seed in range(6):
        contest, captions = world(0.1, [0.9, 0.9, 0.9, 0.5], seed=seed)
        trials = contest.try_captions(captions, step="cluster")
        assert contest.proven_among(trials) == tuple(trial for trial in trials if trial.is_proven)
        alone = contest.proven_among(trials[3:])
        assert bool(alone) == (trials[3].log10_e_value >= np.log10(20 / 0.05))
        helped += trials[3].is_proven and not alone
    assert helped > 0


def test_contest__says_what_is_missing():
    for wrong in ({"class_name": "moth"}, {"target": "moth"}, {"target": "fly"}):
        with pytest.raises(DataError):
            contest_of(KnownRates({PROMPT: 0.1}), asked=wrong)
    with pytest.raises(InputError):
        contest_of(KnownRates({})).try_captions([], step="user")


class FewObjects(KnownRates):
    """Shows twelve objects, twice each, and then nothing more."""

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        n = max(0, min(24, first + n) - first)
        draws = super().generate(prompt, class_name, first=first, n=n)
        places = range(first, first + n)
        return replace(draws, parents=tuple(str(place % 12) for place in places))


def test_baseline__ends_where_the_objects_end_and_counts_each_once():
    trial = contest_of(FewObjects({PROMPT: 0.5})).baseline(PROMPT)
    assert (trial.n_asked, trial.n_images, trial.n_views) == (24, 12, 12)
    assert trial.stopped_because is StoppedBecause.MAX_IMAGES


def test_try_captions__views_of_the_same_objects_prove_nothing():
    contest = contest_of(FewObjects({PROMPT: 0.3, "green": 0.8}))
    (trial,) = contest.try_captions([("green", "green")], step="user")
    assert (trial.n_images, trial.is_proven) == (12, False)
