import pytest

from weakspot.core.errors import NotEnoughDataError
from weakspot.repair.strategies.pool import LabelledRepairer


def test_select__every_labelled_pool_sample_and_no_other(make_material, make_slice, hidden, added):
    labels = list(hidden)
    places = [place for place, label in enumerate(labels) if label < 0][:2]
    for place in places:
        labels[place] = 0
    material = make_material(budget=9, labels=labels)
    selection = LabelledRepairer().select([make_slice()], material)
    assert len(added(selection, material)) == 2
    assert material.training.dataset.is_labelled[selection.rows].all()
    assert selection.weights.tolist() == [1.0] * len(selection.rows)


def test_select__no_more_than_the_budget(make_material, make_slice, added):
    material = make_material(budget=3, labels=None)
    assert len(added(LabelledRepairer().select([make_slice()], material), material)) == 3


def test_select__without_a_label_it_says_what_to_do(make_material, make_slice, hidden):
    with pytest.raises(NotEnoughDataError, match="No pool sample has a label yet") as raised:
        LabelledRepairer().select([make_slice()], make_material(budget=3, labels=hidden))
    assert "next/to_label.csv" in raised.value.fix
