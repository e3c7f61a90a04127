"""How long a step will still take."""

from weakspot.core.machine import next_pace


def _heard(*messages):
    pace = None
    for moment, stage, done, total in messages:
        pace = next_pace(pace, stage, done, total, moment)
    assert pace is not None
    return pace


def test_next_pace__half_done__as_long_again():
    assert _heard((0, "embed", 0, 100), (10, "embed", 50, 100)).seconds_left(10) == 10
    assert _heard((0, "embed", 0, 100), (10, "embed", 50, 100)).seconds_left(14) == 6


def test_next_pace__resumed__what_was_done_before_says_nothing():
    assert _heard((0, "embed", 80, 100), (10, "embed", 90, 100)).seconds_left(10) == 10


def test_next_pace__too_early_or_unknown_or_over__nothing_is_foretold():
    assert _heard((0, "embed", 0, 100), (1, "embed", 50, 100)).seconds_left(1) is None
    assert _heard((0, "embed", 0, None), (10, "embed", 50, None)).seconds_left(10) is None
    assert _heard((0, "embed", 0, 100), (10, "embed", 100, 100)).seconds_left(10) is None
    assert _heard((0, "ingest", 0, 9), (10, "embed", 3, 9)).seconds_left(10) is None
