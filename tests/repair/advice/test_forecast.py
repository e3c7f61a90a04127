import numpy as np

from weakspot.repair.advice.learning_curve import (
    CurvePoint,
    forecast_gain,
    gain_interval,
)


def _point(n_added, gain, *, n_samples=30, n_repeats=12, elsewhere=0.0):
    """Every third sample held out in turn; the first ones of all samples are gained, everywhere alike."""
    changes = np.full((n_repeats, n_samples), np.nan)
    gained = (np.arange(n_samples) < round(gain * n_samples)).astype(float)
    for repeat in range(n_repeats):
        held_out = np.arange(n_samples) % 3 == repeat % 3
        changes[repeat, held_out] = gained[held_out]
    return CurvePoint(n_added=n_added, changes=changes, elsewhere=elsewhere)


def _forecast(*pairs):
    return forecast_gain([_point(n, gain) for n, gain in pairs], 30, n_measured=40, seed=0)


def test_forecast_gain__the_smallest_number_that_brings_four_fifths():
    found = _forecast((0, 0.0), (1, 0.2), (5, 0.4), (10, 0.5), (20, 0.5))
    assert (found.n_wanted, found.n_most) == (5, 20)
    assert found.gain == 0.4
    assert found.reachable == 0.5
    assert found.interval.low < 0.4 < found.interval.high
    assert found.helps
    assert not found.is_rising


def test_forecast_gain__a_curve_that_still_rises_says_at_least():
    found = _forecast((0, 0.0), (5, 0.2), (10, 0.5))
    assert found.n_wanted == 10
    assert found.is_rising


def test_forecast_gain__nothing_to_gain_is_no_help():
    found = _forecast((0, 0.0), (5, 0.0), (10, 0.0))
    assert found.gain == 0.0
    assert not found.helps
    assert not found.is_rising


def test_gain_interval__few_measured_images_widen_it():
    point = _point(10, 0.5)
    wide, narrow = (gain_interval(point, 30, n_measured=n, seed=0) for n in (10, 1000))
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)
    assert (wide.level, narrow.level) == (0.9, 0.9)


def test_gain_interval__few_images_that_it_was_tried_on_widen_it():
    point = _point(10, 0.5)
    wide, narrow = (gain_interval(point, n_units, n_measured=1000, seed=0) for n_units in (8, 300))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_gain_interval__which_images_are_added_widens_it_and_the_more_the_fewer_there_are():
    steady = _point(10, 0.5)
    swings = np.where(np.arange(12) % 2 == 0, 1.0, 0.0)[:, None]
    changes = np.where(np.isnan(steady.changes), np.nan, swings)
    uneven, most = (
        CurvePoint(n_added=n_added, changes=changes, elsewhere=0.0) for n_added in (10, 20)
    )
    widths = [
        found.high - found.low
        for found in (
            gain_interval(point, 3000, n_measured=10000, seed=0) for point in (steady, uneven, most)
        )
    ]
    assert widths[0] < 0.05
    assert widths[1] > 0.8
    assert widths[2] > 1.2 * widths[1]
