import numpy as np

from weakspot.core.arrays import BLOCK_ROWS, even_part, unit_rows


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
