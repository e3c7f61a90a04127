import numpy as np
import pytest
from sequential_worlds import fixed_design

from weakspot.core.arrays import generator
from weakspot.core.statistics import fisher_ps


@pytest.mark.parametrize(("baseline_rate", "gain"), [(0.1, 0.1), (0.15, 0.1), (0.1, 0.3)])
def test_fixed_design__has_the_power_it_was_planned_for(baseline_rate, gain):
    """Fisher's test is a little less powerful than the approximation says; never by more than a few points."""
    design = fixed_design(baseline_rate, gain, n_captions=20, alpha=0.05, power=0.9)
    random, n_worlds = generator(8, str(gain)), 2000
    failures = random.binomial(design.per_caption, baseline_rate + gain, n_worlds)
    others = random.binomial(design.baseline, baseline_rate, n_worlds)
    p_values = fisher_ps(
        failures, np.full(n_worlds, design.per_caption), others, np.full(n_worlds, design.baseline)
    )
    assert 0.82 <= np.mean(p_values <= 0.05 / 20) <= 0.95


def test_fixed_design__smaller_gains_need_more():
    totals = [fixed_design(0.1, gain, n_captions=20).total for gain in (0.6, 0.4, 0.2, 0.1, 0.05)]
    assert totals == sorted(totals)
