from itertools import pairwise

import numpy as np
import pytest

from weakspot.repair.training.objective import Evaluation, minimise

LOWEST = np.array([[3.0, -2.0], [0.5, 1.0]], np.float32)
SHARPNESS = np.array([[100.0, 1.0], [0.01, 10.0]], np.float32)
ORIGIN = np.zeros((2, 2), np.float32)


class Bowl:
    """A quadratic function, or its fourth power, and how often it was asked."""

    def __init__(self, power=1, *, is_known=False):
        self.power, self.is_known, self.seen = power, is_known, []

    def evaluate(self, layer):
        inner = float((SHARPNESS * np.square(layer - LOWEST)).sum(dtype=np.float64))
        gradient = (
            2 * self.power * np.float32(inner ** (self.power - 1)) * SHARPNESS * (layer - LOWEST)
        )
        self.seen.append(inner**self.power)
        return Evaluation(
            value=1.0 + inner**self.power,
            worth=inner,
            gradient=gradient.astype(np.float32),
            bends=np.ones(2, np.float32),
        )

    def precondition(self, embedding, here):
        return embedding / SHARPNESS if self.is_known else embedding.copy()


class Everything:
    def __init__(self, most=10_000):
        self.worths, self.most = [], most

    def goes_on(self, layer, worth):
        self.worths.append(worth)
        return len(self.worths) < self.most


def _minimised(bowl, watcher=None, *, start=ORIGIN, max_steps=200, tolerance=1e-6):
    return minimise(bowl, start, watcher or Everything(), max_steps=max_steps, tolerance=tolerance)


def test_minimise__finds_the_lowest_point_and_never_goes_up():
    watcher = Everything()
    found = _minimised(Bowl(), watcher)
    assert found.has_converged
    assert found.layer[SHARPNESS > 0.1] == pytest.approx(LOWEST[SHARPNESS > 0.1], abs=1e-3)
    assert all(later <= earlier for earlier, later in pairwise(watcher.worths))


def test_minimise__a_known_curvature_needs_two_steps():
    found = _minimised(Bowl(is_known=True), tolerance=1e-5)
    assert found.n_steps <= 2
    assert found.layer == pytest.approx(LOWEST, abs=1e-5)


def test_minimise__steps_too_long_are_shortened():
    bowl = Bowl(power=2)
    found = _minimised(bowl, max_steps=500, tolerance=1e-7)
    assert max(bowl.seen[1:]) > bowl.seen[0]
    assert found.layer[0, 0] == pytest.approx(3.0, abs=0.05)


def test_minimise__stops_at_the_bound_when_told_and_at_the_end():
    short = _minimised(Bowl(), max_steps=3, tolerance=1e-9)
    told = _minimised(Bowl(), Everything(most=3), max_steps=99, tolerance=1e-9)
    there = _minimised(Bowl(), start=LOWEST)
    assert (short.n_steps, short.has_converged) == (3, False)
    assert (told.n_steps, told.has_converged) == (2, False)
    assert (there.n_steps, there.has_converged) == (0, True)
