"""The Clarify protocol: steps for two data sets with groups, for annotators, and for a thousand classes."""

from collections.abc import Callable
from functools import partial
from itertools import chain

from weakspot_lab.reproduce.clarify.arms import WORST, Workshop, annotator_results, arm_results
from weakspot_lab.reproduce.clarify.data_sets import SETS, WORDINGS, photograph_world
from weakspot_lab.reproduce.clarify.many_classes import ManySizes, measure_many
from weakspot_lab.reproduce.clarify.outcome import OUTCOME, PAPER
from weakspot_lab.reproduce.clarify.world import ClarifyWorld, planted_birds, planted_faces
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.protocol import Context, Paper, Step, StepResult, each_step
from weakspot_lab.reproduce.request import ReproduceRequest

STAND_IN_WORDS = (
    "Stand-in: planted embeddings with the groups and sizes of Waterbirds and of a tenth of CelebA, a thousand planted classes "
    "for ImageNet, and a list of words whose meaning is planted for CLIP's text side; annotators are simulated."
)
N_ANNOTATORS, N_PHRASES = 26, 5
PLANTED: dict[str, Callable[..., ClarifyWorld]] = {"birds": planted_birds, "faces": planted_faces}


def stand_in_steps(request: ReproduceRequest) -> tuple[Step, ...]:
    """Return all steps; the seconds were measured on one core."""
    fast = request.pick(1.0, 0.2)
    arms = [
        each_step(kind, 5 * fast, partial(_arms, kind=kind), range(request.pick(3, 1)))
        for kind in PLANTED
    ]
    people = [
        Step(name=f"annotators-{kind}", seconds=3 * fast, work=partial(_annotators, kind=kind))
        for kind in PLANTED
    ]
    return (*chain(*arms), *people, Step(name="many", seconds=60 * fast, work=_many))


def given_steps(request: ReproduceRequest, found: DataSet) -> tuple[Step, ...]:
    """Return the arms and the annotators on the data set that a folder holds."""
    del request
    kind = WORDINGS[found.name].kind
    people = partial(_photograph_annotators, found=found)
    return (
        Step(name=f"{kind}-0", seconds=600, work=partial(_photographs, found=found)),
        Step(name=f"annotators-{kind}", seconds=60, work=people),
    )


def _arms(context: Context, kind: str, number: int) -> StepResult:
    seed = context.seed_of(kind, str(number))
    world = PLANTED[kind](seed=seed, part=context.request.pick(1.0, 0.1))
    return dict(arm_results(Workshop(world=world, seed=seed)))


def _annotators(context: Context, kind: str) -> StepResult:
    seed = context.seed_of(kind, "0")
    world = PLANTED[kind](seed=seed, part=context.request.pick(1.0, 0.1))
    return people_of(Workshop(world=world, seed=seed), context, kind)


def people_of(workshop: Workshop, context: Context, kind: str) -> StepResult:
    """Return what simulated annotators reach, and the layer that they start from."""
    return {
        "annotators": annotator_results(
            workshop,
            context.random("annotators", kind),
            n_annotators=context.request.pick(N_ANNOTATORS, 4),
            n_phrases=N_PHRASES,
        ),
        "ERM": workshop.answered("ERM", workshop.base)[WORST],
    }


def _many(context: Context) -> StepResult:
    small = ManySizes(
        classes=40, planted=6, train=20, validation=20, test=20, concepts=20, steps=20
    )
    return measure_many(context.request.pick(ManySizes(), small), seed=context.seed_of("many"))


def _workshop(context: Context, found: DataSet) -> Workshop:
    kind = WORDINGS[found.name].kind
    world = context.shared(kind, partial(photograph_world, context, found))
    return Workshop(world=world, seed=context.seed_of(kind, "0"))


def _photographs(context: Context, found: DataSet) -> StepResult:
    return dict(arm_results(_workshop(context, found)))


def _photograph_annotators(context: Context, found: DataSet) -> StepResult:
    return people_of(_workshop(context, found), context, WORDINGS[found.name].kind)


PROTOCOL = Paper(
    key=PAPER,
    name="Clarify",
    sets=SETS,
    stand_in_words=STAND_IN_WORDS,
    stand_in_steps=stand_in_steps,
    given_words=lambda _request, _found: "the encoder of this machine in place of CLIP ResNet-50",
    given_steps=given_steps,
    outcome=OUTCOME,
)
