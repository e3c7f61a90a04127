"""The protocol of the Refine paper, on the stand-in and on the paper's own data with the user's models."""

from functools import partial

from weakspot.project.refine.projects import refine_project, refine_projects
from weakspot.project.refine.training import RefineRequest
from weakspot.repair.collective import FamilyType
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.given_models import given_generator, model_projects
from weakspot_lab.reproduce.labelled_files import CIFAR_100, IMAGENET, INATURALIST
from weakspot_lab.reproduce.protocol import Context, Paper, Step, StepResult
from weakspot_lab.reproduce.refine.families import (
    FAMILIES,
    IMAGES_PER_FAILURE,
    LAMBDA,
    MAX_IMAGES,
    SMALL_FAMILIES,
    K,
)
from weakspot_lab.reproduce.refine.measuring import (
    arm_figures,
    collective,
    first_names,
    measure_colour,
    measure_family,
    measure_many,
    measure_sweep,
)
from weakspot_lab.reproduce.refine.outcome import OUTCOME
from weakspot_lab.reproduce.request import ReproduceRequest

SETS = (IMAGENET, CIFAR_100, INATURALIST)
KINDS = ("background",)
SECONDS_A_MODEL = 3600.0


def given_steps(request: ReproduceRequest, found: DataSet) -> tuple[Step, ...]:
    """Return one step for all models; what each has generated and embedded is kept in its project."""
    seconds = SECONDS_A_MODEL * max(len(request.models), 1)
    return (Step(name="family-given", seconds=seconds, work=partial(measure_given, found=found)),)


def measure_given(context: Context, found: DataSet) -> StepResult:
    """Refine every model by itself, and all with one set of images where there are several."""
    projects = model_projects(context.request, found)
    generator = given_generator(context.request)
    kinds = ("colour",) if found is CIFAR_100 else KINDS
    request = RefineRequest(
        kinds=kinds,
        n_names=K,
        n_each=IMAGES_PER_FAILURE,
        least_each=IMAGES_PER_FAILURE,
        most_each=MAX_IMAGES,
        debug_weight=LAMBDA,
    )
    refined = [refine_project(one, request, generator=generator).refinement for one in projects]
    result: StepResult = {
        "models": [
            {"name": one.name, "arms": arm_figures(one), "names": first_names(one)}
            for one in refined
        ],
        "failures": {},
        "overlaps": [],
    }
    if len(projects) > 1:
        kinds_of_set: tuple[FamilyType, ...] = (1, 2)
        for kind in kinds_of_set:
            made = refine_projects(
                projects,
                request,
                kind=kind,
                generator=generator,
            ).refinement
            result[f"collective {kind}"] = collective(made)
            result["overlaps"] = [list(line) for line in made.overlaps]
    return result


STAND_IN = (
    "For ImageNet, CIFAR-100 and iNaturalist: rendered scenes of eight classes, which in training mostly come on backgrounds (or in "
    "colours) of their own; for the 40 pretrained models: eight families of five small networks, trained on their pixels; for "
    "CLIP: embeddings by what is in a scene, with noise; for Stable Diffusion: the renderer, which draws as training scenes "
    "show it whatever a prompt leaves open."
)


def _stand_in_steps(request: ReproduceRequest) -> tuple[Step, ...]:
    shapes = request.pick(FAMILIES, SMALL_FAMILIES)
    steps = [
        Step(name=f"family-{shape}", seconds=30.0, work=partial(measure_family, shape=shape))
        for shape in shapes
    ]
    steps += [
        Step(name="colour", seconds=25.0, work=measure_colour),
        Step(name="sweep", seconds=20.0, work=measure_sweep),
        Step(name="many", seconds=90.0, work=measure_many),
    ]
    return tuple(steps)


PROTOCOL = Paper(
    key="refine",
    name="Refine",
    sets=SETS,
    stand_in_words=STAND_IN,
    stand_in_steps=_stand_in_steps,
    given_words=lambda request, _found: (
        f"{len(request.models)} models and the generator that is configured"
    ),
    given_steps=given_steps,
    outcome=OUTCOME,
)
