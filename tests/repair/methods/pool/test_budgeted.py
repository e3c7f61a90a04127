import numpy as np
import pytest

from weakspot.core.errors import NotEnoughDataError
from weakspot.repair.strategies.pool import BudgetedRepairer, apportioned


def test_apportioned__never_more_than_the_budget_and_all_of_it_if_possible():
    draws = np.random.default_rng(0)
    for _ in range(200):
        shares, most = draws.integers(1, 50, 6).astype(float), draws.integers(0, 20, 6)
        budget = int(draws.integers(0, 100))
        found = apportioned(budget, shares, most)
        assert found.sum() == min(budget, most.sum())
        assert (found <= most).all()


def test_select__least_sure_of_the_slice_first(
    make_material, make_slice, make_evidence, hidden, added
):
    found = make_slice()
    material = make_material(
        budget=2,
        labels=hidden,
        evidence={found.slice_id: make_evidence(found, 8, 10)},
        n_failures=8,
    )
    # Inside and likely an apple: a (0.60), b (0.50), c (0.80) and e (0.75).
    selection = BudgetedRepairer().select([found], material)
    assert added(selection, material) == "ab"
    assert "in 1 of 1 slices by their share of the failures, least sure first" in selection.note


def test_select__worst_slices_first_and_no_more_once_beta_of_the_failures_is_reached(
    make_material, make_slice, make_evidence, added
):
    apple, pear, plum = make_slice("apple"), make_slice("pear", threshold=0.25), make_slice("plum")
    evidence = {
        plum.slice_id: make_evidence(plum, 6, 10),
        pear.slice_id: make_evidence(pear, 30, 60),
        apple.slice_id: make_evidence(apple, 4, 40),
    }
    # Rates 0.6, 0.5, 0.1 and 40 failures: 6 are not 90 %, 36 are.
    material = make_material(budget=99, evidence=evidence, n_failures=40)
    selection = BudgetedRepairer().select([apple, pear, plum], material)
    assert "in 2 of 3 slices" in selection.note
    # Plum claims d; pear is among the two likeliest of all the others that lie deep enough.
    assert added(selection, material) == "abcde"
    material = make_material(budget=99, evidence=evidence, n_failures=41)
    assert "in 3 of 3 slices" in BudgetedRepairer().select([apple, pear, plum], material).note
    material = make_material(budget=99, evidence=evidence, n_failures=40)
    narrow = BudgetedRepairer(beta=0.15).select([apple, pear, plum], material)
    assert added(narrow, material) == "d"


def test_select__budget_in_proportion_to_failures(make_material, make_slice, make_evidence, added):
    apple, plum = make_slice("apple", threshold=0.4), make_slice("plum")
    evidence = {
        apple.slice_id: make_evidence(apple, 20, 40),
        plum.slice_id: make_evidence(plum, 10, 20),
    }
    material = make_material(budget=3, evidence=evidence, n_failures=30)
    assert added(BudgetedRepairer().select([plum, apple], material), material) == "abd"


def test_select__slices_without_evidence_are_left_out_and_named(
    make_material, make_slice, make_evidence
):
    apple, plum = make_slice("apple"), make_slice("plum")
    material = make_material(evidence={apple.slice_id: make_evidence(apple, 5, 20)}, n_failures=50)
    assert (
        "left out for want of evidence: 1"
        in BudgetedRepairer().select([apple, plum], material).note
    )
    with pytest.raises(NotEnoughDataError, match="not known how often the slices fail"):
        BudgetedRepairer().select([apple, plum], make_material())
    with pytest.raises(NotEnoughDataError, match="not known how often the slices fail"):
        BudgetedRepairer().select(
            [apple], make_material(evidence={apple.slice_id: make_evidence(apple, 0, 20)})
        )


def test_select__needs_members_and_probabilities(
    make_material, make_slice, make_evidence, without_probabilities, added
):
    nobody = make_slice(threshold=3.0)
    with pytest.raises(NotEnoughDataError, match="None of the 8 pool samples"):
        BudgetedRepairer().select(
            [nobody], make_material(evidence={nobody.slice_id: make_evidence(nobody, 5, 9)})
        )
    found = make_slice()
    material = make_material(evidence={found.slice_id: make_evidence(found, 5, 9)})
    with pytest.raises(
        NotEnoughDataError, match="pool-budgeted needs the classifier's probabilities"
    ):
        BudgetedRepairer().select([found], without_probabilities(material))
    assert added(BudgetedRepairer().select([], material), material) == ""
