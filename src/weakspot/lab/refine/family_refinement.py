"""Several classifiers refined with one set of images, beside each one's own: types 1 and 2 of the Refine paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.errors import ConfigError, NotEnoughDataError, RefusedPromptError
from weakspot.core.evidence import Share
from weakspot.core.heads import Head
from weakspot.core.record import Record
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.lab.collective.family import Family
from weakspot.lab.refine.names import SeedNames, pooled_names, seed_names
from weakspot.lab.refine.prompts import random_prompts, refine_prompts
from weakspot.lab.refine.records import GeneratedPrompt, NamedFailures, RefineInputs
from weakspot.lab.refine.refinement import generated_prompts, most_wanted
from weakspot.lab.refine.request import Images, RefineRequest, Wanted
from weakspot.lab.refine.shared_failures import SharedFailures, shared_failures
from weakspot.lab.refine.step_choice import chosen_head
from weakspot.lab.refine.subjects import Subject, subjects_of
from weakspot.lab.refine.training import (
    RefinedHead,
    Rights,
    added_images,
    refined_head,
)
from weakspot.repair.collective import (
    FamilyFigures,
    FamilyPredictions,
    FamilyType,
    family_figures,
    over_models,
)

FEWEST_MODELS = 2
TEST, SEED, HELD_OUT = 0, 1, 2
"""Places in the figures of a model."""


class RefinedMember(Record):
    """One model of a family.

    Args:
        name: its project.
        n_own: images of its own refinement, 0 if it has none.
        n_collective: images of the collective set that it was trained on.
        own_weight: how much its own images counted.
        collective_weight: how much the collective ones counted.
        own_share: how far its own images moved the layer from the old one to the retrained one; None: all the way, to one trained
            from nothing.
        collective_share: how far the collective ones did.
        figures: on test samples, the discovery half (seed) and the confirmation half (held-out); `random` is the collective set
            generated from the mere names of the classes.
        notes: what to know.
    """

    name: str
    n_own: int
    n_collective: int
    own_weight: float
    collective_weight: float
    figures: tuple[FamilyFigures, ...]
    own_share: float | None = None
    collective_share: float | None = None
    notes: tuple[str, ...] = ()


class FamilyRefinement(Record):
    """A family of models, refined with one set of images.

    Args:
        kind: 1: values from the failures of all models; 2: from those of one.
        source: the model whose failures were used, None for all.
        names: values that these failures show, added up.
        prompts: the collective set.
        models: one entry a model.
        overlaps: share of common failures of every two models before.
        shared: of the held-out failures that the models' own refinements resolve, those that the collective one resolves too; the
            model that is the single source is left out, since it shares everything with itself.
        shared_random: of the same, those that images of the mere classes resolve.
        relative: held-out failures that the collective set resolves as a part of those that the models' own refinements resolve;
            None if those resolve nothing.
        shared_test: the same as `shared`, of the failures among test samples.
        rejected: images that each quality check rejected.
        common: failures that all models share, and what they show; None in earlier records.
        notes: what to know.
        made_from: inputs and versions.
    """

    record_version: int = 1
    kind: FamilyType
    source: str | None
    names: tuple[NamedFailures, ...]
    prompts: tuple[GeneratedPrompt, ...]
    models: tuple[RefinedMember, ...]
    overlaps: tuple[tuple[float, ...], ...]
    shared: Share
    shared_random: Share
    relative: float | None
    shared_test: Share
    rejected: dict[str, int]
    common: SharedFailures | None = None
    notes: tuple[str, ...] = ()
    made_from: RefineInputs | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RefinedFamily:
    """A refined family.

    Args:
        refinement: all figures.
        heads: the last layer of every model after the collective refinement.
    """

    refinement: FamilyRefinement
    heads: Mapping[str, Head]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sets:
    """What is generated: for every model by itself, for all together, and from mere names in place of the latter."""

    own: Mapping[str, tuple[Wanted, ...]]
    collective: tuple[Wanted, ...]
    random: tuple[Wanted, ...]


def refine_family(
    family: Family,
    images: Images,
    request: RefineRequest,
    *,
    source: str | None = None,
    progress: StageProgress = no_stage_progress,
) -> RefinedFamily:
    """Refine all models of a family with one set of images, beside each one's own.

    Args:
        family: the models.
        images: the generator.
        request: names, images and weights; arms are not used.
        source: the model whose failures the set is made from (type 2), None for those of all (type 1).
        progress: told how far it is.

    Raises:
        ConfigError: if there are fewer than two models, or the source is none of them.
        NotEnoughDataError: if the failures show none of the proposed values.
        RefusedPromptError: if the generator can generate none of them.
    """
    _refuse(family, source)
    subjects = subjects_of(family)
    counted = {subject.name: seed_names(subject, request, images) for subject in subjects}
    names = pooled_names(
        [counted[subject.name].names for subject in subjects if source in (None, subject.name)]
    )
    collective, notes = refine_prompts(names, request, images)
    sets = _Sets(
        own={subject.name: _own(counted[subject.name], request, images) for subject in subjects},
        collective=collective,
        random=random_prompts(collective, images),
    )
    images.generate(
        most_wanted(
            [*sets.collective, *sets.random, *(one for own in sets.own.values() for one in own)]
        )
    )
    models: list[tuple[RefinedMember, Head, tuple[GeneratedPrompt, ...]]] = []
    for number, subject in enumerate(subjects):
        progress("models", number, len(subjects))
        models.append(_refine(subject, sets, images, request, is_source=subject.name == source))
    progress("models", len(subjects), len(subjects))
    judged = [model for model, _, _ in models if source is None or model.name != source]
    refinement = FamilyRefinement(
        kind=1 if source is None else 2,
        source=source,
        names=tuple(names),
        prompts=models[0][2],
        models=tuple(model for model, _, _ in models),
        overlaps=family.overlaps(),
        shared=over_models([one.figures[HELD_OUT].shared for one in judged]),
        shared_random=over_models([one.figures[HELD_OUT].shared_random for one in judged]),
        relative=_relative(judged),
        shared_test=over_models([one.figures[TEST].shared for one in judged]),
        rejected=images.rejected(),
        common=shared_failures(family, subjects, request),
        notes=(*notes, *family.notes()),
    )
    return RefinedFamily(
        refinement=refinement, heads={model.name: head for model, head, _ in models}
    )


def _refuse(family: Family, source: str | None) -> None:
    names = [member.name for member in family.members]
    if len(names) < FEWEST_MODELS or len(set(names)) != len(names):
        raise ConfigError(
            "A collective refinement needs two or more projects with different names.", given=names
        )
    if source is not None and source not in names:
        raise ConfigError(
            "--from names none of the projects.", given=source, fix=f"Choose one of {names}."
        )


def _own(counted: SeedNames, request: RefineRequest, images: Images) -> tuple[Wanted, ...]:
    """Return what a model's own failures ask for; nothing where they show no value that can be generated."""
    try:
        return refine_prompts(counted.names, request, images)[0]
    except (NotEnoughDataError, RefusedPromptError):
        return ()


def _refine(
    subject: Subject, sets: _Sets, images: Images, request: RefineRequest, *, is_source: bool
) -> tuple[RefinedMember, Head, tuple[GeneratedPrompt, ...]]:
    together = added_images(subject, sets.collective, images)
    collective = chosen_head(subject, together, request)
    random = refined_head(subject, added_images(subject, sets.random, images), collective.step)
    wanted = sets.own[subject.name]
    own = added_images(subject, wanted, images) if wanted else None
    individual = (
        chosen_head(subject, own, request)
        if own is not None
        else refined_head(subject, None, collective.step)
    )
    notes = (
        []
        if wanted
        else [
            "Its own failures show nothing that can be generated; its own refinement is retraining alone."
        ]
    )
    notes += (
        ["The set is this model's own, so that its two refinements are the same."]
        if is_source
        else []
    )
    model = RefinedMember(
        name=subject.name,
        n_own=sum(own.n_kept) if own is not None else 0,
        n_collective=sum(together.n_kept),
        own_weight=individual.step.debug_weight,
        collective_weight=collective.step.debug_weight,
        own_share=individual.step.share,
        collective_share=collective.step.share,
        figures=_figures(subject, individual, collective, random),
        notes=tuple(notes),
    )
    return model, collective.head, generated_prompts(sets.collective, together)


def _figures(
    subject: Subject, individual: RefinedHead, collective: RefinedHead, random: RefinedHead
) -> tuple[FamilyFigures, ...]:
    found = {
        name: Rights.of(subject, head)
        for name, head in (
            ("individual", individual),
            ("collective", collective),
            ("random", random),
        )
    }
    figures = []
    for place, use in zip(("test", "seed", "held_out"), subject.uses(), strict=True):
        right = {name: getattr(one, place)[1] for name, one in found.items()}
        before = getattr(found["individual"], place)[0]
        figures.append(family_figures(use, FamilyPredictions(before=before, **right)))
    return tuple(figures)


def _relative(models: Sequence[RefinedMember]) -> float | None:
    own = sum(one.figures[HELD_OUT].resolved_individual.count for one in models)
    together = sum(one.figures[HELD_OUT].resolved_collective.count for one in models)
    return float(np.divide(together, own)) if own else None
