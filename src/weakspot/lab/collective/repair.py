"""Repairing a family of classifiers with one set: the projects are opened, retrained and measured on the samples they share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.heads import Head
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.core.training_sets import TrainingSelection
from weakspot.lab.collective.family import Family, FamilyMember, OwnRepair, project_name
from weakspot.pipeline.preparation import FEATURES
from weakspot.project.project import Project
from weakspot.repair.bench import FittedHead
from weakspot.repair.collective import (
    CollectiveRepair,
    FamilyFigures,
    FamilyModel,
    FamilyPredictions,
    FamilyType,
    RepairSet,
    applied,
    family_figures,
    over_models,
    pooled,
)
from weakspot.repair.matched_controls import random_control
from weakspot.repair.measure import ArmAnswers, measure_arm
from weakspot.repair.measure.predictions import compare

FEWEST_MODELS = 2
INDIVIDUAL, COLLECTIVE, RANDOM = "individual", "collective", "random"


@dataclass(frozen=True, kw_only=True)
class FamilyRequest:
    """What a family is repaired with.

    Args:
        kind: 1: one set from the failures of all models; 2: from those of one.
        source: for type 2, the project folder (or its name) of that one; the first by default.
        method: registered name of the strategy.
    """

    kind: FamilyType = 1
    source: str = ""
    method: str = "slice-balanced"


@dataclass(frozen=True, kw_only=True, eq=False)
class FamilyResult:
    """A family after its repair.

    Args:
        repair: all figures.
        repair_set: who was trained on, by sample id.
        heads: the last layer of every model after the collective repair, by name.
        class_names: the classes in the order of each of these layers, by name.
    """

    repair: CollectiveRepair
    repair_set: RepairSet
    heads: dict[str, Head]
    class_names: dict[str, tuple[str, ...]]


def repair_family(
    projects: Sequence[Path | Project],
    request: FamilyRequest | None = None,
    *,
    progress: StageProgress = no_stage_progress,
) -> FamilyResult:
    """Repair the classifiers of two or more projects with one set, beside each one's own repair; each is named after its folder.

    Args:
        projects: folders, or open projects.
        request: what they are repaired with.
        progress: told how far it is.

    Raises:
        ConfigError: if fewer than two projects are given, two of the same name, or options that do not go together.
        DataError: if the projects have other classes, or share no sample to measure on.
        StoreError: if a project has no verified run.
        ModelError: if the last layer of a classifier is not known.
        NotEnoughDataError: if there is nothing to repair, or to train on.
    """
    asked = request or FamilyRequest()
    opened = [
        one if isinstance(one, Project) else Project.open(one, progress=progress)
        for one in projects
    ]
    names = _names(opened)
    source = _source(asked, names)
    family = Family.of([FamilyMember.of(project) for project in opened])
    overlaps = family.overlaps()
    own = {member.name: member.own_repair(asked.method) for member in family.members}
    sources = _sources(family, own, source)
    repair_set = _repair_set(sources, own, source)
    repaired = [
        _repair(member, family, sources, own[member.name], repair_set)
        for member in _told(family.members, progress)
    ]
    repair = CollectiveRepair(
        kind=asked.kind,
        method=asked.method,
        source=source,
        n_in_set=len(repair_set.sample_ids),
        note=repair_set.note,
        n_samples=len(family.shared_ids),
        overlaps=overlaps,
        models=tuple(model for model, _ in repaired),
        notes=tuple(family.notes()),
        **_shares(repaired, sources),
    )
    heads = {model.name: head for model, head in repaired}
    classes = {member.name: member.dataset.class_names for member in family.members}
    return FamilyResult(repair=repair, repair_set=repair_set, heads=heads, class_names=classes)


def _told(members: Sequence[FamilyMember], progress: StageProgress) -> Iterator[FamilyMember]:
    for number, member in enumerate(members):
        progress("models", number, len(members))
        yield member
    progress("models", len(members), len(members))


def _shares(
    repaired: Sequence[tuple[FamilyModel, Head]], sources: Sequence[FamilyMember]
) -> dict[str, Share]:
    """Return how much of what individual repairs resolve is resolved together; a single source shares everything with itself."""
    alone = {member.name for member in sources} if len(sources) == 1 else set()
    figures = [model.figures[0] for model, _ in repaired if model.name not in alone]
    return {
        "shared": over_models([one.shared for one in figures]),
        "shared_random": over_models([one.shared_random for one in figures]),
    }


def _names(projects: Sequence[Project]) -> list[str]:
    names = [project_name(project) for project in projects]
    if len(names) < FEWEST_MODELS or len(set(names)) != len(names):
        raise ConfigError(
            "A collective repair needs two or more project folders with different names.",
            given=[str(one.folder) for one in projects],
        )
    return names


def _source(asked: FamilyRequest, names: Sequence[str]) -> str | None:
    if asked.kind == 1:
        if asked.source:
            raise ConfigError(
                "--from says whose failures to use, which is for --type 2.",
                given=asked.source,
                fix="Add --type 2.",
            )
        return None
    name = Path(asked.source).resolve().name if asked.source else names[0]
    if name not in names:
        raise ConfigError(
            "--from names none of the projects.",
            given=asked.source,
            fix=f"Choose one of {list(names)}.",
        )
    return name


def _sources(
    family: Family, own: dict[str, OwnRepair], source: str | None
) -> tuple[FamilyMember, ...]:
    """Return the models that the set is made from; those that only could be retrained have nothing to add to it."""
    asked = [member.name for member in family.members if source in (None, member.name)]
    chosen = tuple(
        member
        for member in family.members
        if member.name in asked and not own[member.name].obstacle
    )
    if not chosen:
        raise NotEnoughDataError(
            f"There is nothing to make a repair set from in {', '.join(asked)}.",
            given=[own[name].obstacle for name in asked],
        )
    return chosen


def _repair_set(
    sources: Sequence[FamilyMember], own: dict[str, OwnRepair], source: str | None
) -> RepairSet:
    sets = [RepairSet.of(own[member.name].selection, member.dataset) for member in sources]
    return sets[0] if source is not None else pooled(sets)


def _repair(
    member: FamilyMember,
    family: Family,
    sources: Sequence[FamilyMember],
    own: OwnRepair,
    repair_set: RepairSet,
) -> tuple[FamilyModel, Head]:
    bench = member.bench
    together = applied(repair_set, member.dataset, member.allowed)
    selections = {
        INDIVIDUAL: own.selection,
        COLLECTIVE: together,
        RANDOM: random_control(together, bench.material),
    }
    fitted = {name: bench.fitted(selection) for name, selection in selections.items()}
    measured = family.measured(member)
    arms = [
        measure_arm(
            _answers(name, selection, fitted[name], measured),
            bench.slices,
            measured,
            bench.criterion,
            column=bench.settings.repair.groups,
        )
        for name, selection in selections.items()
    ]
    sets = [one for one in (measured, member.half(0), family.held_out(member, sources)) if len(one)]
    notes = [own.obstacle] if own.obstacle else []
    if len(sources) == 1 and member is sources[0]:
        notes.append("The set is this model's own, so that its two repairs are the same.")
    model = FamilyModel(
        name=member.name,
        n_slices=len(bench.slices),
        n_individual=len(own.selection.rows),
        n_collective=len(together.rows),
        figures=tuple(_figures(member, samples, fitted) for samples in sets),
        arms=tuple(arms),
        notes=tuple(notes),
    )
    return model, fitted[COLLECTIVE].head


def _answers(
    name: str, selection: TrainingSelection, fitted: FittedHead, samples: SampleSet
) -> ArmAnswers:
    return ArmAnswers(
        arm=name,
        is_baseline=name == RANDOM,
        note=selection.note,
        n_trained=len(selection.rows),
        probabilities=fitted.head.probabilities(samples.embeddings(FEATURES)),
        thresholds=fitted.thresholds,
        temperature=fitted.temperature,
    )


def _figures(
    member: FamilyMember, samples: SampleSet, fitted: dict[str, FittedHead]
) -> FamilyFigures:
    features = samples.embeddings(FEATURES)
    right: dict[str, BoolArray] = {}
    groups: IntArray | None = None
    for name, one in fitted.items():
        both = compare(
            samples, one.head.probabilities(features), (), member.bench.criterion, one.thresholds
        )
        right[name] = np.concatenate([result.right_after for result in both.predictions])
        right["before"] = np.concatenate([result.right_before for result in both.predictions])
        groups = both.decision_groups
    return family_figures(DataUse.of(samples), FamilyPredictions(**right, groups=groups))
