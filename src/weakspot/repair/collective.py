"""One repair set for a family of models: pooled selections, and how much of each model's own repair they keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.group_tests import paired_group_p
from weakspot.core.heads import TrainingSelection, WorstGroupObjective, with_mean_one
from weakspot.core.record import Record
from weakspot.core.repairs import RepairArm
from weakspot.core.slices import DataUse

FamilyType = Literal[1, 2]


@dataclass(frozen=True, kw_only=True, eq=False)
class RepairSet:
    """A training selection that other models on the same samples can be trained on too.

    Args:
        sample_ids: who is in it, no sample twice.
        weights: how much each counts; their mean is one.
        note: one sentence on what was done.
        group_objectives: groups of positions of which only the worst served counts.
    """

    sample_ids: tuple[str, ...]
    weights: DoubleArray
    note: str
    group_objectives: tuple[WorstGroupObjective, ...] = ()

    @classmethod
    def of(cls, selection: TrainingSelection, dataset: Dataset) -> "RepairSet":
        """Return one model's selection by sample id."""
        return cls(
            sample_ids=tuple(dataset.sample_ids(selection.rows)),
            weights=selection.weights,
            note=selection.note,
            group_objectives=selection.group_objectives,
        )


def pooled(sets: Sequence[RepairSet]) -> RepairSet:
    """Return the set of several models: every sample with the mean of its weights, where a model that did not choose it says zero.

    Raises:
        ConfigError: if a set has group_objectives, which have no mean.
        NotEnoughDataError: if nothing is in any set.
    """
    if any(one.group_objectives for one in sets):
        raise ConfigError(
            "A strategy that trains on the worst served group cannot be pooled over models.",
            fix="Choose a strategy that weighs samples, such as slice-balanced, or the set of one model (--type 2).",
        )
    total: dict[str, float] = {}
    for one in sets:
        for sample_id, weight in zip(one.sample_ids, one.weights.tolist(), strict=True):
            total[sample_id] = total.get(sample_id, 0.0) + weight
    if not total:
        raise NotEnoughDataError("No model has anything in its repair set.")
    ids = tuple(sorted(total))
    weights = with_mean_one(np.array([total[sample_id] for sample_id in ids]))
    in_all = len(set.intersection(*[set(one.sample_ids) for one in sets]))
    note = f"One set for {len(sets)} models: {len(ids)} samples, {in_all} of them chosen for every model; weights are averaged."
    return RepairSet(sample_ids=ids, weights=weights, note=note)


def applied(repair_set: RepairSet, dataset: Dataset, allowed: IntArray) -> TrainingSelection:
    """Return what a set means for one model; samples that it has not, or may not train on, are left out.

    Args:
        repair_set: the set.
        dataset: the model's own samples.
        allowed: rows that it may be trained on; labelled, with features, and not measured on.

    Raises:
        NotEnoughDataError: if none of the samples is there.
    """
    row_of = dict(zip(dataset.sample_ids(allowed), allowed.tolist(), strict=True))
    places = np.array(
        [place for place, one in enumerate(repair_set.sample_ids) if one in row_of], dtype=np.int64
    )
    if not len(places) or not repair_set.weights[places].sum() > 0:
        raise NotEnoughDataError(
            "None of the samples of the repair set is among the samples that this model may be trained on.",
            given=f"{len(repair_set.sample_ids)} samples in the set",
            fix="Repair models together that share their training or pool samples.",
        )
    rows = np.array([row_of[repair_set.sample_ids[place]] for place in places], dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    new_place = np.full(len(repair_set.sample_ids), -1, dtype=np.int64)
    new_place[places[order]] = np.arange(len(places))
    n_missing = len(repair_set.sample_ids) - len(places)
    note = (
        f"{repair_set.note} {n_missing} of them are not among this model's samples."
        if n_missing
        else repair_set.note
    )
    return TrainingSelection(
        rows=rows[order],
        weights=with_mean_one(repair_set.weights[places[order]]),
        note=note,
        group_objectives=tuple(
            kept
            for group_objective in repair_set.group_objectives
            if (kept := _kept(group_objective, new_place))
        ),
    )


def _kept(group_objective: WorstGroupObjective, new_place: IntArray) -> WorstGroupObjective:
    groups = [np.sort(new_place[group][new_place[group] >= 0]) for group in group_objective]
    return tuple(group for group in groups if len(group))


class FamilyFigures(Record):
    """One model of a family on one set of samples: before, after its own repair, the collective one and its random control.

    Args:
        measured_on: the samples.
        before: right before.
        individual: right with the model's own repair.
        collective: right with the collective repair.
        random: right with the random control of the collective set.
        resolved_individual: of the former failures, right with the model's own repair.
        resolved_collective: the same with the collective repair.
        resolved_random: the same with the random control.
        clean_individual: of the formerly right, still right with the model's own repair.
        clean_collective: the same with the collective repair.
        shared: of the failures that the model's own repair resolves, those that the collective one resolves too.
        shared_random: of the same, those that the random control resolves too.
        p_value: McNemar's exact test of the collective repair against before.
        p_against_random: the same against the random control.
        relative_accuracy: accuracy with the collective repair as a part of that with the model's own; None if the latter is zero.
    """

    measured_on: DataUse
    before: Share
    individual: Share
    collective: Share
    random: Share
    resolved_individual: Share
    resolved_collective: Share
    resolved_random: Share
    clean_individual: Share
    clean_collective: Share
    shared: Share
    shared_random: Share
    p_value: float
    p_against_random: float
    relative_accuracy: float | None


class FamilyModel(Record):
    """One model of a family.

    Args:
        name: its project.
        n_slices: confirmed slices that its own repair aims at.
        n_individual: samples in its own repair set.
        n_collective: samples of the collective set that it was trained on.
        figures: on test samples, then on the discovery half (seed) and the confirmation half (held-out).
        arms: its own repair, the collective one and the random control, with all groups.
        notes: what to know.
    """

    name: str
    n_slices: int
    n_individual: int
    n_collective: int
    figures: tuple[FamilyFigures, ...]
    arms: tuple[RepairArm, ...] = ()
    notes: tuple[str, ...] = ()


class CollectiveRepair(Record):
    """A family of models, repaired with one set.

    Args:
        kind: 1: from the failures of all models; 2: from those of one.
        method: registered name of the strategy.
        source: the model whose failures the set is made from, None for all.
        n_in_set: samples in the set.
        note: what the set is, in a sentence.
        n_samples: test samples that all models were measured on.
        overlaps: share of common failures of every two models before, in the order of models.
        models: one entry a model.
        shared: over the test samples of all models but the source, the individually resolved failures that the collective set
            resolves too.
        shared_random: of the same, those that the random controls resolve too.
        notes: what to know.
    """

    kind: FamilyType
    method: str
    source: str | None
    n_in_set: int
    note: str
    n_samples: int
    overlaps: tuple[tuple[float, ...], ...]
    models: tuple[FamilyModel, ...]
    shared: Share
    shared_random: Share
    notes: tuple[str, ...] = ()


def over_models(shares: Sequence[Share]) -> Share:
    """Return the share over the samples of several models; a sample counts once a model."""
    return Share.of(sum(one.count for one in shares), sum(one.total for one in shares))


def family_figures(
    measured_on: DataUse,
    *,
    before: BoolArray,
    individual: BoolArray,
    collective: BoolArray,
    random: BoolArray,
    groups: IntArray | None = None,
) -> FamilyFigures:
    """Count what each repair of a model resolves, keeps and shares.

    Args:
        measured_on: the samples.
        before: which decisions are right [n], in one order.
        individual: the same with the model's own repair.
        collective: the same with the collective repair.
        random: the same with its random control.
        groups: of these samples [n], if any.

    Raises:
        DataError: if the predictions are not of the same samples.
    """
    arms = (before, individual, collective, random)
    if len({len(one) for one in arms}) != 1:
        raise DataError(
            "All repairs of a model need a result for the same samples.",
            given=[len(one) for one in arms],
        )
    failed = ~before
    own = failed & individual
    return FamilyFigures(
        measured_on=measured_on,
        before=_share(before),
        individual=_share(individual),
        collective=_share(collective),
        random=_share(random),
        resolved_individual=_share(individual[failed]),
        resolved_collective=_share(collective[failed]),
        resolved_random=_share(random[failed]),
        clean_individual=_share(individual[before]),
        clean_collective=_share(collective[before]),
        shared=_share(collective[own]),
        shared_random=_share(random[own]),
        p_value=_paired_p(before, collective, groups),
        p_against_random=_paired_p(random, collective, groups),
        relative_accuracy=float(collective.sum() / individual.sum()) if individual.any() else None,
    )


def _share(right: BoolArray) -> Share:
    return Share.of(int(right.sum()), len(right))


def _paired_p(first: BoolArray, second: BoolArray, groups: IntArray | None) -> float:
    return paired_group_p(~first & second, first & ~second, groups)
