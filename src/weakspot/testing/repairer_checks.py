"""Checks of repairers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.errors import NotEnoughDataError, WeakspotError
from weakspot.core.heads import RepairMaterial, TrainingSelection
from weakspot.core.roles import Repairer
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.testing import material
from weakspot.testing.material import BUDGET, slice_of_nobody
from weakspot.testing.part_checks import (
    ANY_METHOD,
    Factory,
    expect,
    expect_no_global_randomness,
    role_checks,
)

TOLERANCE = 1e-6
DIGITS = 9
MIN_GROUPS = 2


def _select(
    factory: Factory,
    given: RepairMaterial | None = None,
    slices: Sequence[FailureSlice] | None = None,
) -> TrainingSelection:
    part: Repairer = factory()
    given = material.full() if given is None else given
    return part.select(material.repair_slices(given.training) if slices is None else slices, given)


def _selected_if_possible(
    factory: Factory, given: RepairMaterial, slices: Sequence[FailureSlice] | None = None
) -> TrainingSelection | None:
    try:
        return _select(factory, given, slices)
    except NotEnoughDataError:
        return None


def _told(selection: TrainingSelection) -> tuple[object, ...]:
    group_objectives = tuple(
        tuple(group.tobytes() for group in objective) for objective in selection.group_objectives
    )
    return selection.rows.tobytes(), selection.weights.tobytes(), selection.note, group_objectives


def _expect_sound(selection: TrainingSelection, given: RepairMaterial) -> None:
    rows, weights, dataset = selection.rows, selection.weights, given.training.dataset
    sources = [
        given.training,
        *(samples for samples in (given.pool, given.synthetic) if samples is not None),
    ]
    expect(len(rows), "Nothing was selected.")
    expect(
        np.isin(rows, np.concatenate([samples.rows for samples in sources])).all(),
        "Rows outside training, pool and generated samples were selected.",
    )
    expect(
        len(np.unique(rows)) == len(rows),
        "A row was selected twice; give it a larger weight instead.",
    )
    unlabelled = given.training.rows[~dataset.is_labelled[given.training.rows]]
    expect(not np.isin(rows, unlabelled).any(), "An unlabelled training sample was selected.")
    expect(weights.shape == rows.shape, "Not one weight a row.")
    expect(
        np.isfinite(weights).all() and (weights >= 0).all(), "A weight is negative or not finite."
    )
    expect(
        abs(float(weights.mean()) - 1.0) < TOLERANCE,
        f"The mean weight is {float(weights.mean()):.4f} and should be one.",
    )
    _expect_sound_group_objectives(selection)


def _expect_sound_group_objectives(selection: TrainingSelection) -> None:
    groups = [group for objective in selection.group_objectives for group in objective]
    expect(
        all(len(objective) >= MIN_GROUPS for objective in selection.group_objectives),
        "A group objective has fewer than two groups.",
    )
    expect(all(len(group) for group in groups), "A group of a group objective is empty.")
    if groups:
        places = np.concatenate(groups)
        expect(
            np.issubdtype(places.dtype, np.integer),
            "Groups of a group objective must hold positions.",
        )
        expect(
            (places >= 0).all() and (places < len(selection.rows)).all(),
            "A group objective names positions that are not selected.",
        )
        expect(
            len(np.unique(places)) == len(places),
            "A position is in two groups of group objectives.",
        )


def selections_are_sound(factory: Factory) -> None:
    """Rows come from labelled training, pool and generated samples, once each; weights have mean one; objectives hold positions."""
    for seed in range(3):
        given = replace(material.full(), seed=seed)
        _expect_sound(_select(factory, given), given)


def budget_is_kept(factory: Factory) -> None:
    """No more than the budget comes from the pool; who cannot do without a budget takes something when there is one."""
    given = material.full()
    pool = np.zeros(0, dtype=np.int64) if given.pool is None else given.pool.rows
    taken: dict[int, int | None] = {}
    for budget in (0, 1, BUDGET, 2 * len(pool)):
        selection = _selected_if_possible(factory, replace(given, budget=budget))
        taken[budget] = None if selection is None else int(np.isin(selection.rows, pool).sum())
        expect(
            (taken[budget] or 0) <= budget,
            f"{taken[budget]} pool samples were taken with a budget of {budget}.",
        )
    expect(
        taken[0] is not None or (taken[BUDGET] or 0) > 0,
        "It needs a budget, and takes nothing from the pool when it has one.",
    )


def material_that_is_not_there_is_not_used(factory: Factory) -> None:
    """Without pool, generated samples or assistants: a sound selection without them, or a NotEnoughDataError."""
    everything = material.full()
    lacking = (
        replace(everything, pool=None),
        replace(everything, synthetic=None),
        replace(everything, assistants=NO_ASSISTANTS),
        replace(everything, pool=None, synthetic=None, evidence={}, n_failures=0),
    )
    for given in lacking:
        selection = _selected_if_possible(factory, given)
        if selection is not None:
            _expect_sound(selection, given)


def says_what_was_done(factory: Factory) -> None:
    """The report needs a sentence, and has to know what is a baseline."""
    expect(_select(factory).note.strip(), "The note is empty.")
    expect(isinstance(factory().is_baseline, bool), "is_baseline is no truth value.")


def same_seed_same_result(factory: Factory) -> None:
    given = replace(material.full(), seed=4)
    expect(
        _told(_select(factory, given)) == _told(_select(factory, given)),
        "The same seed gave two selections.",
    )


def second_call_forgets_the_first(factory: Factory) -> None:
    """A part that was used before chooses what a fresh one chooses."""
    part = factory()
    _select(lambda: part, replace(material.full(), seed=9, budget=2))
    expect(
        _told(_select(lambda: part)) == _told(_select(factory)),
        "The result depends on an earlier call.",
    )


def input_stays_as_it_is(factory: Factory) -> None:
    """No array of the samples is changed."""
    given = material.full()
    sets = [
        samples for samples in (given.training, given.pool, given.synthetic) if samples is not None
    ]
    before = [material.contents(samples) for samples in sets]
    _select(factory, given)
    expect(
        [material.contents(samples) for samples in sets] == before,
        "An array of the given samples was changed.",
    )


def no_global_randomness(factory: Factory) -> None:
    """Only the given seed decides."""
    expect_no_global_randomness(lambda: _told(_select(factory)))


def order_of_rows_does_not_matter(factory: Factory) -> None:
    """The same samples in another order are chosen, and count the same."""
    given, moved = (
        material.full(),
        material.full(change=material.in_another_order),
    )
    first, second = (_by_id(_select(factory, one), one) for one in (given, moved))
    expect(
        first == second,
        "Other samples are chosen, or count otherwise, when the rows are in another order.",
    )


def _by_id(selection: TrainingSelection, given: RepairMaterial) -> tuple[object, ...]:
    ids = np.array(given.training.dataset.sample_ids(selection.rows))
    group_objectives = frozenset(
        frozenset(frozenset(ids[group]) for group in objective)
        for objective in selection.group_objectives
    )
    return dict(
        zip(ids.tolist(), np.round(selection.weights, DIGITS - 2).tolist(), strict=True)
    ), group_objectives


def evaluation_labels_do_not_matter(factory: Factory) -> None:
    """Labels and predictions of validation and test samples are never looked at, but through the evidence."""
    given = material.full()
    changed = material.full(change=material.with_evaluation_changed)
    changed = replace(changed, evidence=given.evidence, n_failures=given.n_failures)
    results = [_told(_select(factory, one)) for one in (given, changed)]
    expect(
        results[0] == results[1], "Labels or predictions of validation or test samples were used."
    )


def unlabelled_pool_is_understood(factory: Factory) -> None:
    """A pool without labels gives a sound selection or a NotEnoughDataError; that no label is -1 must not mean the last class."""

    def further(samples: SampleSet) -> SampleSet:
        return material.with_absent_class(material.with_unlabelled_pool(samples))

    chosen = []
    for change in (material.with_unlabelled_pool, further):
        given = material.full(change=change)
        selection = _selected_if_possible(factory, given)
        if selection is not None:
            _expect_sound(selection, given)
        chosen.append(None if selection is None else selection.rows.tolist())
    expect(chosen[0] == chosen[1], "Samples without a label were taken for the last class.")


def no_slices_change_nothing(factory: Factory) -> None:
    """Without slices training samples stay as they are, or a NotEnoughDataError is raised, unless slices are never looked at."""
    given = material.full()
    selection = _selected_if_possible(factory, given, ())
    if selection is None or _told(selection) == _told(_select(factory, given)):
        return
    expect(
        np.array_equal(np.sort(selection.rows), given.labelled),
        "Other samples are trained on although there is nothing to repair.",
    )
    expect(
        np.allclose(selection.weights, 1.0),
        "Weights were changed although there is nothing to repair.",
    )
    expect(
        not selection.group_objectives,
        "There are group objectives although there is nothing to repair.",
    )


def slices_without_members_are_survived(factory: Factory) -> None:
    """A slice that no sample is in does not stop the others; alone it gives a sound selection or a NotEnoughDataError."""
    given = material.full()
    nobody = slice_of_nobody("square")
    _expect_sound(_select(factory, given, (nobody, *material.repair_slices(given.training))), given)
    alone = _selected_if_possible(factory, given, (nobody,))
    if alone is not None:
        _expect_sound(alone, given)


def missing_classes_are_survived(factory: Factory) -> None:
    """A class with a slice and without training samples gives a sound selection or a NotEnoughDataError."""
    given = material.full()
    labels = given.training.dataset.labels[given.training.rows]
    code = given.training.dataset.class_code("disc")
    rest = replace(given, training=given.training.only(given.training.rows[labels != code]))
    selection = _selected_if_possible(factory, rest)
    if selection is not None:
        _expect_sound(selection, rest)


def multi_label_is_understood(factory: Factory) -> None:
    """In a multi-label task a selection is sound, too, or an error of weakspot says that it cannot be."""
    given = material.full(is_multi_label=True)
    try:
        selection = _select(factory, given)
    except WeakspotError:
        return
    _expect_sound(selection, given)


CHECKS = role_checks(
    Repairer,
    ANY_METHOD,
    selections_are_sound,
    budget_is_kept,
    material_that_is_not_there_is_not_used,
    says_what_was_done,
    same_seed_same_result,
    second_call_forgets_the_first,
    input_stays_as_it_is,
    no_global_randomness,
    order_of_rows_does_not_matter,
    evaluation_labels_do_not_matter,
    unlabelled_pool_is_understood,
    no_slices_change_nothing,
    slices_without_members_are_survived,
    missing_classes_are_survived,
    multi_label_is_understood,
)
