import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weakspot.core.arrays import BLOCK_ROWS, child_seed, even_part, generator, unit_rows


def test_unit_rows__lengths_and_zero_rows():
    given = np.array([[3.0, 4.0], [0.0, 0.0], [-5.0, 0.0]])
    found = unit_rows(given)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 0.0], [-1.0, 0.0]], atol=1e-7)
    assert given[0, 0] == 3.0


def test_unit_rows__missing_embeddings_stay_missing():
    assert np.isnan(unit_rows(np.full((1, 2), np.nan))).all()


def test_unit_rows__blocks_give_the_same_as_all_at_once():
    given = np.random.default_rng(0).standard_normal((2 * BLOCK_ROWS + 3, 3)).astype(np.float32)
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    assert np.array_equal(unit_rows(given), given / lengths)


def test_even_part__at_even_steps_and_never_more_than_there_are():
    given = np.arange(100, 107)
    assert even_part(given, 3).tolist() == [100, 102, 104]
    assert even_part(given, 7) is given
    assert even_part(given, 0).tolist() == []


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
