import pytest

from weakspot.core.errors import NotEnoughDataError
from weakspot.repair.strategies.pool import ConfidenceRepairer, EntropyRepairer, MarginRepairer

ALL = pytest.mark.parametrize("repairer", [MarginRepairer, EntropyRepairer, ConfidenceRepairer])


@pytest.mark.parametrize(
    ("repairer", "expected"),
    [
        (MarginRepairer(), "bdg"),  # margins: g 0.01, b 0.05, d 0.15, h 0.20
        (EntropyRepairer(), "agh"),  # g 1.10, h 1.03, a 0.90, b 0.86
        (ConfidenceRepairer(), "bgh"),  # g 0.34, b and h 0.50, d 0.55
        (
            MarginRepairer(within="slices"),
            "abe",
        ),  # inside and likely apples: b 0.05, a 0.30, e 0.55, c 0.65
        (ConfidenceRepairer(within="slices"), "abe"),
        (EntropyRepairer(within="slices"), "abe"),
    ],
)
def test_select__least_sure_first(repairer, expected, make_material, make_slice, hidden, added):
    for labels in (None, hidden):
        material = make_material(labels=labels)
        selection = repairer.select([make_slice()], material)
        assert added(selection, material) == expected
        assert selection.weights.tolist() == [1.0] * 9
    assert ("inside the slices" in selection.note) == (repairer.within == "slices")


def test_select__ties_go_by_sample_id_whatever_the_order_of_rows(make_material, added):
    material = make_material(budget=2, order=[13, 3, 8, 6, 1, 0, 2, 4, 5, 7, 9, 10, 12, 11])
    # b and h both have 0.50.
    assert added(ConfidenceRepairer().select([], material), material) == "bg"


@ALL
def test_select__refuses_without_probabilities(repairer, make_material, without_probabilities):
    with pytest.raises(NotEnoughDataError, match="needs the classifier's probabilities"):
        repairer().select([], without_probabilities(make_material()))
