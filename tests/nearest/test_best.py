import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weakspot.nearest.best import BestRows


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.floats(0.01, 3)), min_size=1, max_size=60),
    st.integers(1, 10),
    st.randoms(use_true_random=False),
    st.integers(1, 9),
)
def test_found__the_same_in_any_order(scored, n_wanted, shuffle, most):
    true = np.array([score for score, _ in scored], dtype=np.float64)
    slack = np.array([width for _, width in scored], dtype=np.float32)
    rough = (true + slack * np.linspace(-0.9, 0.9, len(true))).astype(np.float32)
    one = BestRows(n_wanted, lambda rows: true[rows])
    one._most = max(most, n_wanted)
    places = list(range(0, len(true), 4))
    shuffle.shuffle(places)
    for start in places:
        one.offer(rough[start : start + 4], slack[start : start + 4], start)
    rows, scores = one.found()
    expected = np.lexsort((np.arange(len(true)), -true))[:n_wanted]
    assert rows.tolist() == expected.tolist()
    assert scores.tolist() == true[expected].tolist()


def test_found__rows_without_a_score():
    one = BestRows(2, lambda rows: np.where(rows == 1, np.nan, rows.astype(float)))
    one.offer(np.array([0.0, np.nan, 0.0, np.nan], np.float32), np.full(4, np.inf, np.float32), 0)
    rows, scores = one.found()
    assert rows.tolist() == [2, 0]
    assert scores.tolist() == pytest.approx([2.0, 0.0])
