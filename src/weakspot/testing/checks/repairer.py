"""Checks of repairers."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.dataset import Split
from weakspot.core.roles import Repairer
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.testing.checks import material
from weakspot.testing.checks.expectation import Check, Factory, expect, expect_no_global_randomness
from weakspot.testing.checks.parts import ANY_METHOD, implements

BUDGET = 5
TOLERANCE = 1e-6


def _selected(
    factory: Factory, *, with_pool: bool = True, budget: int = BUDGET, seed: int = 0, slices: Sequence[FailureSlice] | None = None
) -> TrainingSelection:
    part: Repairer = factory()
    wanted = material.slices_of(material.sample_set(Split.VALIDATION)) if slices is None else slices
    given = RepairMaterial(
        training=material.sample_set(Split.TRAIN),
        pool=material.sample_set(Split.POOL) if with_pool else None,
        budget=budget,
        seed=seed,
    )
    return part.select(wanted, given)


def _told(selection: TrainingSelection) -> tuple[bytes, bytes, str]:
    return selection.rows.tobytes(), selection.weights.tobytes(), selection.note


def rows_come_from_training_or_pool(factory: Factory) -> None:
    """Nothing is ever trained on validation or test samples."""
    allowed = material.small_world().dataset.rows_of(Split.TRAIN, Split.POOL)
    for seed in range(3):
        rows = _selected(factory, seed=seed).rows
        expect(len(rows), "Nothing was selected.")
        expect(np.isin(rows, allowed).all(), "Rows outside training and pool were selected.")
        expect(len(np.unique(rows)) == len(rows), "A row was selected twice; give it a larger weight instead.")


def weights_have_mean_one(factory: Factory) -> None:
    """Weights are finite, not negative, one a row, with mean one."""
    selection = _selected(factory)
    weights = selection.weights
    expect(weights.shape == selection.rows.shape, "Not one weight a row.")
    expect(np.isfinite(weights).all() and (weights >= 0).all(), "A weight is negative or not finite.")
    expect(abs(float(weights.mean()) - 1.0) < TOLERANCE, f"The mean weight is {float(weights.mean()):.4f} and should be one.")


def budget_is_kept(factory: Factory) -> None:
    """No more than the budget comes from the pool, and nothing without a pool or a budget."""
    pool = material.small_world().dataset.rows_of(Split.POOL)
    for budget in (0, BUDGET):
        taken = int(np.isin(_selected(factory, budget=budget).rows, pool).sum())
        expect(taken <= budget, f"{taken} pool samples were taken with a budget of {budget}.")
    expect(not np.isin(_selected(factory, with_pool=False).rows, pool).any(), "Pool samples were taken although none were given.")


def says_what_was_done(factory: Factory) -> None:
    """The report needs a sentence, and has to know what is a baseline."""
    expect(_selected(factory).note.strip(), "The note is empty.")
    expect(isinstance(factory().is_baseline, bool), "is_baseline is no truth value.")


def same_seed_same_result(factory: Factory) -> None:
    """Two fresh parts with the same seed choose the same."""
    expect(_told(_selected(factory, seed=4)) == _told(_selected(factory, seed=4)), "The same seed gave two selections.")


def second_call_forgets_the_first(factory: Factory) -> None:
    """A part that was used before chooses what a fresh one chooses."""
    part = factory()
    _selected(lambda: part, seed=9, budget=1)
    expect(_told(_selected(lambda: part)) == _told(_selected(factory)), "The result depends on an earlier call.")


def input_stays_as_it_is(factory: Factory) -> None:
    """No array of the samples is changed."""
    part: Repairer = factory()
    training = material.sample_set(Split.TRAIN)
    before = material.contents(training)
    slices = material.slices_of(material.sample_set(Split.VALIDATION))
    part.select(slices, RepairMaterial(training=training))
    expect(material.contents(training) == before, "An array of the given samples was changed.")


def no_global_randomness(factory: Factory) -> None:
    """Only the given seed decides."""
    expect_no_global_randomness(lambda: _told(_selected(factory)))


def evaluation_labels_do_not_matter(factory: Factory) -> None:
    """Labels and outcomes of validation and test samples are never looked at."""
    part: Repairer = factory()
    training = material.sample_set(Split.TRAIN)
    slices = material.slices_of(material.sample_set(Split.VALIDATION))
    changed = material.with_outcomes_elsewhere_changed(training)
    results = [_told(part.select(slices, RepairMaterial(training=given))) for given in (training, changed)]
    expect(results[0] == results[1], "Labels or outcomes outside the training samples were used.")


def no_slices_change_nothing(factory: Factory) -> None:
    """Without slices the training samples stay as they are."""
    selection = _selected(factory, slices=(), budget=0)
    expect(np.allclose(selection.weights, 1.0), "Weights were changed although there is nothing to repair.")


CHECKS: dict[str, Check] = {
    "implements_role": implements(Repairer),
    **ANY_METHOD,
    **{
        check.__name__: check
        for check in (
            rows_come_from_training_or_pool,
            weights_have_mean_one,
            budget_is_kept,
            says_what_was_done,
            same_seed_same_result,
            second_call_forgets_the_first,
            input_stays_as_it_is,
            no_global_randomness,
            evaluation_labels_do_not_matter,
            no_slices_change_nothing,
        )
    },
}
