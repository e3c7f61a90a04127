import numpy as np
from repair_results.figures import Figures
from repair_results.groceries import FOUND, GroceriesExperiment, grocery_case

from weakspot_lab.bench.worlds import planted_problem


def test_grocery_case__the_hidden_kind_is_in_every_part():
    problem = planted_problem("rare", 0, n_samples=1500)
    case = grocery_case(problem, seed=0)
    (truth,) = problem.truths
    held_out = np.concatenate([problem.discovery.rows, problem.confirmation.rows])
    sizes = {
        name: len(getattr(case, name)) / len(held_out) for name in ("validation", "pool", "test")
    }
    assert {name: round(size, 1) for name, size in sizes.items()} == {
        "validation": 0.5,
        "pool": 0.2,
        "test": 0.3,
    }
    assert not set(case.training.rows) & set(held_out)
    shares = [
        truth.inside[getattr(case, name).rows].mean() for name in ("validation", "pool", "test")
    ]
    assert max(shares) - min(shares) < 0.02
    assert min(shares) > 0.04


def test_grocery_case__seeds_draw_other_parts():
    problem = planted_problem("rare", 0, n_samples=500)
    assert (
        grocery_case(problem, seed=0).test.digest() == grocery_case(problem, seed=0).test.digest()
    )
    assert (
        grocery_case(problem, seed=0).test.digest() != grocery_case(problem, seed=1).test.digest()
    )


def test_units__every_kind_in_every_run():
    units = GroceriesExperiment(n_runs=2).units()
    assert len(units) == 16
    assert units[0] == "Granny-Smith, run 0"


def test_page__means_and_kinds():
    figures = [
        Figures(
            unit=f"{kind}, run 0",
            part="true slice",
            arm=arm,
            values={"slice before": 0.2, "slice after": after},
        )
        for kind in ("Anjou", "Kaiser")
        for arm, after in (("plain", 0.2), ("worst-slice", 0.5))
    ]
    figures += [Figures(unit="Anjou, run 0", part="true slice", arm=FOUND, values={"slices": 1.0})]
    page = GroceriesExperiment(n_runs=1).page(figures)
    assert "| arm | Anjou | Kaiser |" in page
    assert "| before | 20.0 | 20.0 |" in page
    assert "| worst-slice | 50.0 | 50.0 |" in page
    assert "Problems with a slice to repair: 1 of 1." in page
