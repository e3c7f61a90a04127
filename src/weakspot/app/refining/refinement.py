"""One classifier, refined: what its failures show is drawn, trained on and measured, beside arms that draw something else."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from weakspot.app.refining.measuring import Rights
from weakspot.app.refining.names import SeedNames, seed_names
from weakspot.app.refining.pictures import Pictures, Prompt, Wanted
from weakspot.app.refining.prompts import (
    ARM_OBSTACLES,
    directions_prompts,
    predefined_prompts,
    random_prompts,
    refine_prompts,
)
from weakspot.app.refining.records import DrawnPrompt, RefinedArm, Refinement
from weakspot.app.refining.request import CUTMIX, DIRECTIONS, PLAIN, PREDEFINED, RANDOM, REFINE, RefineRequest
from weakspot.app.refining.subjects import Subject
from weakspot.app.refining.training import Added, RefinedHead, added_mixtures, added_pictures, chosen_head, refined_head
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.heads import Head
from weakspot.core.run import StageProgress, no_stage_progress

NOTES = {
    REFINE: "pictures of the values that most seed failures show",
    RANDOM: "as many pictures from the mere names of the classes",
    PREDEFINED: "as many pictures with values of a fixed list, drawn by lot",
    DIRECTIONS: "as many pictures from the captions of directions slices",
    CUTMIX: "as many mixtures of training features",
    PLAIN: "retrained on the training samples alone",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class RefinedModel:
    """A refined classifier.

    Args:
        refinement: all figures.
        head: its last layer after the refinement.
    """

    refinement: Refinement
    head: Head


@dataclass(kw_only=True, eq=False)
class _Plan:
    """What every arm draws, and why some arms are not there."""

    seed: SeedNames
    wanted: dict[str, tuple[Wanted, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def numbers(self) -> dict[Prompt, int]:
        """Return how many pictures of every prompt serve all arms."""
        return most_wanted([one for own in self.wanted.values() for one in own])


def most_wanted(wanted: Sequence[Wanted]) -> dict[Prompt, int]:
    """Return the largest number of pictures that is wanted of every prompt."""
    found: dict[Prompt, int] = {}
    for one in wanted:
        found[one.prompt] = max(found.get(one.prompt, 0), one.n_pictures)
    return found


def refine_model(
    subject: Subject, pictures: Pictures, request: RefineRequest, *, progress: StageProgress = no_stage_progress
) -> RefinedModel:
    """Refine one classifier, beside the arms that are asked for; one that cannot work here becomes a note.

    Seed failures choose values, prompts and, unless it is given, the weight of generated pictures; held-out failures and test
    samples choose nothing.

    Raises:
        NotEnoughDataError: if there are no failures, none shows a proposed value, or no picture can be used.
        RefusedPromptError: if the generator can draw none of the values.
    """
    plan = _planned(subject, pictures, request)
    pictures.draw(plan.numbers())
    arms: dict[str, _Arm] = {}
    names = [REFINE, *[name for name in request.arms if name in plan.wanted or name in (CUTMIX, PLAIN)]]
    for number, name in enumerate(names):
        progress("refine", number, len(names))
        try:
            arms[name] = _arm(subject, name, plan, pictures, request, arms.get(REFINE))
        except NotEnoughDataError as error:
            if name == REFINE:
                raise
            plan.notes.append(f"{name}: {error.what}")
    progress("refine", len(names), len(names))
    measured = {name: Rights.of(subject, arm.head) for name, arm in arms.items()}
    refinement = Refinement(
        name=subject.name,
        names=plan.seed.names,
        arms=tuple(_recorded(name, arms[name], measured) for name in arms),
        measured_on=subject.uses(),
        rejected=pictures.rejected(),
        notes=tuple(dict.fromkeys([*plan.seed.notes, *plan.notes])),
    )
    return RefinedModel(refinement=refinement, head=arms[REFINE].head.head)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Arm:
    """A trained arm."""

    head: RefinedHead
    prompts: tuple[DrawnPrompt, ...] = ()
    n_pictures: int = 0


def _planned(subject: Subject, pictures: Pictures, request: RefineRequest) -> _Plan:
    plan = _Plan(seed=seed_names(subject, request))
    plan.wanted[REFINE], notes = refine_prompts(plan.seed.names, request, pictures)
    plan.notes += notes
    for name in (RANDOM, PREDEFINED, DIRECTIONS):
        if name in request.arms:
            try:
                plan.wanted[name], notes = _beside(name, plan.wanted[REFINE], subject, pictures, request)
            except ARM_OBSTACLES as error:
                notes = [error.what]
            plan.notes += [f"{name}: {note}" for note in notes]
    return plan


def _beside(
    name: str, wanted: Sequence[Wanted], subject: Subject, pictures: Pictures, request: RefineRequest
) -> tuple[tuple[Wanted, ...], list[str]]:
    if name == RANDOM:
        return random_prompts(wanted, pictures), []
    if name == PREDEFINED:
        return predefined_prompts(wanted, request, pictures, seed=subject.bench.settings.seed)
    return directions_prompts(wanted, request, pictures, subject)


def _arm(subject: Subject, name: str, plan: _Plan, pictures: Pictures, request: RefineRequest, first: _Arm | None) -> _Arm:
    """Train one arm; the first one chooses the weight of added samples, which all others share."""
    if name == PLAIN:
        return _Arm(head=refined_head(subject, None, 0.0))
    if name == CUTMIX and first is not None:
        return _of(subject, added_mixtures(subject, first.n_pictures), first.head.debug_weight)
    wanted = plan.wanted[name]
    added = added_pictures(subject, wanted, pictures)
    head = chosen_head(subject, added, request) if first is None else refined_head(subject, added, first.head.debug_weight)
    return _Arm(head=head, prompts=drawn_prompts(wanted, added), n_pictures=sum(added.n_kept))


def _of(subject: Subject, added: Added, debug_weight: float) -> _Arm:
    return _Arm(head=refined_head(subject, added, debug_weight), n_pictures=sum(added.n_kept))


def drawn_prompts(wanted: Sequence[Wanted], added: Added) -> tuple[DrawnPrompt, ...]:
    """Return what was drawn, for the record."""
    total = sum(one.weight for one in wanted)
    return tuple(
        DrawnPrompt(
            class_name=one.prompt.class_name,
            prompt=one.prompt.text,
            n_asked=one.n_pictures,
            n_kept=n_kept,
            weight=one.weight / total,
        )
        for one, n_kept in zip(wanted, added.n_kept, strict=True)
    )


def _recorded(name: str, arm: _Arm, measured: dict[str, Rights]) -> RefinedArm:
    random = measured.get(RANDOM) if name != RANDOM else None
    return RefinedArm(
        arm=name,
        note=NOTES[name],
        prompts=arm.prompts,
        n_pictures=arm.n_pictures,
        debug_weight=arm.head.debug_weight,
        p_against_random=None if random is None else measured[name].p_against(random),
        **measured[name].shares(),
    )
