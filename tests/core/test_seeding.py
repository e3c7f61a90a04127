import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weakspot.core.arrays import child_seed, generator


def test_child_seed__the_same_on_every_machine():
    # First four bytes of sha256("0/discover") and sha256("7/verify/apple").
    assert child_seed(0, "discover") == 531765160
    assert child_seed(7, "verify", "apple") == 62146779


@given(st.integers(0, 2**31), st.integers(0, 2**31))
def test_child_seed__other_seeds_and_names_give_other_numbers(first, second):
    if first != second:
        assert child_seed(first, "a") != child_seed(second, "a")
    assert child_seed(first, "a") != child_seed(first, "b")
    assert 0 <= child_seed(first, "a") < 2**32


def test_generator__own_stream_a_step():
    first, again, other = (generator(3, name).random(4) for name in ("embed", "embed", "repair"))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
