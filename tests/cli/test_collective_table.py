import numpy as np
import pytest

from weakspot.cli.collective_table import collective_lines
from weakspot.core.evidence import Share
from weakspot.core.slices import DataUse
from weakspot.repair.collective import CollectiveRepair, FamilyModel, FamilyOutcomes, family_figures

TEST = DataUse(name="test samples", n_samples=40, digest="t")
SEED = DataUse(name="validation, discovery half", n_samples=40, digest="s")


def _right(n_before, n_gained):
    """40 samples, of which the first are right before, and the next are gained."""
    return np.arange(40) < n_before + n_gained


def _figures(use, individual, collective, random):
    return family_figures(
        use,
        FamilyOutcomes(
            before=_right(20, 0), individual=_right(20, individual), collective=_right(20, collective), random=_right(20, random)
        ),
    )


@pytest.fixture
def repair():
    better = FamilyModel(
        name="small", n_slices=2, n_individual=30, n_collective=28,
        figures=(_figures(TEST, 10, 8, 1), _figures(SEED, 10, 12, 0)),
    )  # fmt: skip
    unsure = FamilyModel(
        name="large", n_slices=0, n_individual=30, n_collective=30, figures=(_figures(TEST, 0, 2, 2),), notes=("No slice.",)
    )
    return CollectiveRepair(
        kind=2, method="slice-balanced", source="small", n_in_set=30, note="Thirty samples.", n_samples=40,
        overlaps=((1.0, 0.25), (0.25, 1.0)), models=(better, unsure), shared=Share.of(8, 10), shared_random=Share.of(1, 10),
        notes=("The projects count different things as failures.",),
    )  # fmt: skip


def test_collective_lines__figures_and_words(repair):
    lines = list(collective_lines(repair))
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("One repair set resolves 8 of the 10 failures")
    assert "  accuracy                          50 % of 40    75 % of 40    70 % of 40    52 % of 40" in lines
    assert "  resolved, seed                                  50 % of 20    60 % of 20     0 % of 20" in lines
    assert "  still right                                    100 % of 20   100 % of 20" in lines
    said = " ".join(" ".join(lines).split())
    assert "Accuracy with the collective set rose (p = 0.0078), better than its random twin (p = 0.016);" in said
    assert (
        "of 10 failures that the own repair resolves it resolves 8 (80 %, 95 % interval 49–94 %); relative accuracy 0.933." in said
    )
    assert "  large  0.25  1.00" in lines
    assert lines[-1] == "The projects count different things as failures."


def test_collective_lines__what_may_be_chance_is_said_so(repair):
    said = " ".join(" ".join(collective_lines(repair)).split())
    assert (
        "The change of accuracy with the collective set may be chance (p = 0.5), not to be told from its random twin (p = 1); "
        "the own repair resolves nothing; relative accuracy 1.100." in said
    )
    assert "No slice." in said
