import pytest
from repair_results.budgets import BudgetsExperiment
from repair_results.figures import Figures, by_unit

from weakspot.core.run import no_stage_progress

EXPERIMENT = BudgetsExperiment(n_worlds=1, n_samples=1500, budgets=(30,))


@pytest.fixture(scope="module")
def figures():
    return EXPERIMENT.measure("rare 0", no_stage_progress)


def _value(figures, arm, name, part="rare, true slice, 30"):
    return by_unit(figures, part, arm, name)["rare 0"]


def test_units__every_kind_and_number():
    assert BudgetsExperiment(n_worlds=2).units() == [
        "rare 0",
        "rare 1",
        "correlation 0",
        "correlation 1",
    ]


def test_measure__the_deepest_beat_a_random_choice(figures):
    assert (
        _value(figures, "pool-deepest", "slice after")
        > _value(figures, "pool-random", "slice after") + 0.05
    )
    assert _value(figures, "pool-deepest", "added") == _value(figures, "pool-random", "added") == 30


def test_measure__all_arms_share_the_penalty_of_plain(figures):
    plain = _value(figures, "plain", "penalty", part="rare, true slice, 0")
    assert {one.values["penalty"] for one in figures if one.part == "rare, true slice, 30"} == {
        plain
    }


def test_winners__above_random_at_every_budget():
    def one(unit, arm, budget, after):
        return Figures(
            unit=unit, part=f"rare, true slice, {budget}", arm=arm, values={"slice after": after}
        )

    gains = {"pool-deepest": (0.2, 0.1), "pool-margin": (0.1, -0.1), "pool-random": (0.0, 0.0)}
    figures = [
        one(f"rare {world}", arm, budget, 0.5 + gain + 0.01 * world)
        for world in range(4)
        for arm, both in gains.items()
        for budget, gain in zip((10, 20), both, strict=True)
    ]
    assert BudgetsExperiment(budgets=(10, 20)).winners(
        figures, "rare", "true slice", "slice after"
    ) == ("pool-deepest",)


def test_page__differences_to_random(figures):
    page = EXPERIMENT.page(figures)
    assert "| strategy | 30 added |" in page
    assert "| pool-random | " in page
    assert page.count("| pool-deepest | +") >= 1
    assert "## correlation, true slice\n\nNo slice was confirmed" in page
