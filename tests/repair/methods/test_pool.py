import pytest

from weakspot.repair.strategies.pool import (
    BudgetedRepairer,
    CoresetRepairer,
    DeepestRepairer,
    MarginRepairer,
    RandomRepairer,
)
from weakspot.testing.checks import checks_for

UNUSUAL = {
    "budgeted": lambda: BudgetedRepairer(weighting="balanced", beta=0.5),
    "coreset": lambda: CoresetRepairer(within="slices"),
    "deepest": lambda: DeepestRepairer(weighting="balanced", only_members=False),
    "random": lambda: RandomRepairer(within="slices"),
    "margin": lambda: MarginRepairer(within="slices"),
}


@pytest.mark.parametrize("check", checks_for("repairers").values(), ids=checks_for("repairers"))
@pytest.mark.parametrize("factory", UNUSUAL.values(), ids=UNUSUAL)
def test_conformance__with_other_parameters_than_the_default(factory, check):
    check(factory)
