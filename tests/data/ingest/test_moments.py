import numpy as np

from weakspot.data.groups import burst_sentence, count_bursts
from weakspot.data.images import CAMERA_BITS


def _moments(seconds, cameras):
    return (np.array(seconds) + 1_000_000 << CAMERA_BITS) | np.array(cameras)


def _bursts(seconds, *, cameras=None, strata=None, evaluated=None):
    n_samples = len(seconds)
    return count_bursts(
        _moments(seconds, [1] * n_samples if cameras is None else cameras),
        np.zeros(n_samples, dtype=np.int64) if strata is None else np.array(strata),
        np.ones(n_samples, dtype=np.bool_) if evaluated is None else np.array(evaluated),
    )


def test_count_bursts__seconds_in_between():
    assert _bursts([0, 3, 6, 60, 90, 91, 200]) == (5, 2, 7)
    assert _bursts([4, 0, 8]) == (0, 0, 3)


def test_count_bursts__one_camera_one_class_and_only_what_is_evaluated():
    seconds = [0, 1, 2, 3]
    assert _bursts(seconds, cameras=[1, 2, 1, 2])[1] == 2
    assert _bursts(seconds, strata=[0, 1, 2, 7])[0] == 0
    assert _bursts(seconds, evaluated=[True, False, False, True]) == (2, 1, 2)


def test_count_bursts__a_clock_that_was_never_set_is_no_burst():
    assert _bursts([0] * 40 + [100, 101])[0] == 2
    assert _bursts([0] * 8 + [100, 101])[0] == 10


def test_burst_sentence__a_number_or_nothing():
    assert burst_sentence(9, 4, 100) == ""
    said = burst_sentence(1_240, 310, 2_000)
    assert said.startswith(
        "1,240 of 2,000 evaluation images with a capture time come in 310 bursts"
    )
    assert '[data] group = "..."' in said
