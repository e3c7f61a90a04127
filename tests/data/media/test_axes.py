import pytest

from weakspot.data.charts import Axis


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 1.0], ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([-0.004, 0.003], ["-0.004", "-0.002", "0.000", "0.002", "0.004"]),
        ([0.91, 0.94], ["0.91", "0.92", "0.93", "0.94"]),
        ([3.0, 47.0], ["0", "10", "20", "30", "40", "50"]),
        ([], ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_around__round_numbers(values, ticks):
    assert [words for _, words in Axis.around(values, 100.0).ticks] == ticks


@pytest.mark.parametrize(
    "values", [[0.0], [5.0], [-2.5], [1e9], [0.3, 0.3 + 1e-15], [float("nan"), 1.0]]
)
def test_around__one_value_lies_inside(values):
    axis = Axis.around(values, 100.0)
    assert axis.low < values[-1] < axis.high
    assert 0.0 < axis.place(values[-1]) < 100.0
