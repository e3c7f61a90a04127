"""Every way to say the truth of a planted slice is answered alike, and never denied."""

import numpy as np
import pytest

from weakspot.core.dataset import Split
from weakspot.core.failures import FailureCriterion
from weakspot.core.online_testing import spending_share
from weakspot.discover.hypothesis import HypothesisDiscoverer
from weakspot.pipeline.hypotheses import ClassHalves
from weakspot.testing.planted import plant
from weakspot.testing.planted_features import phrase_embeddings
from weakspot.testing.planted_problems import nothing, rare, spurious

COLOURED = (
    "{0}",
    "{0} discs",
    "a {0} disc",
    "discs that are {0}",
    "the disc is {0}",
    "a photo of {0} discs",
)
PLACED = (
    "grassy",
    "on grass",
    "discs on grass",
    "a disc on a grassy background",
    "discs that are on a grassy background",
    "a photo of a disc on grass",
)
CERTAIN = 0.05


def _p_values(problem, seed, phrases):
    world = plant(problem, 3000, seed=seed)
    samples = world.samples(Split.VALIDATION), world.samples(Split.TEST)
    method = HypothesisDiscoverer(phrases={})
    both = ClassHalves.of(samples, FailureCriterion(), "disc", method)
    directions = method.phrase_directions(phrases, phrase_embeddings, both.discovery.problem)
    found = []
    for phrase in phrases:
        cut = both.discovery.threshold(directions[phrase])
        found.append(both.confirmation.question(directions[phrase], cut, phrase).p_value)
    return found


@pytest.mark.parametrize("value", ["green", "blue", "purple", "pink"])
def test_phrases__of_a_planted_colour__all_separate_alike(value):
    phrases = [one.format(value) for one in COLOURED]
    found = _p_values(rare(0.02, value=value), 1, phrases)
    assert len(set(found)) == 1
    assert max(found) < CERTAIN


def test_phrases__of_a_planted_place__all_separate():
    assert max(_p_values(spurious(0.95), 2, list(PLACED))) < CERTAIN


def test_phrases__where_nothing_was_planted__seldom_separate():
    words = [
        "green",
        "red",
        "blue",
        "small",
        "large",
        "striped",
        "grassy",
        "dark",
        "dotted",
        "pink",
    ]
    found = np.concatenate([_p_values(nothing(), seed, words) for seed in range(20)])
    assert len(found) == 200
    # What the ledger calls a finding when it is the first question.
    assert (found <= CERTAIN * spending_share(1)).mean() <= CERTAIN
