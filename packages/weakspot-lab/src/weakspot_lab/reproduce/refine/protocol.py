"""The protocol of the Refine paper."""

from functools import partial

from weakspot_lab.reproduce.paper import Paper
from weakspot_lab.reproduce.protocol import Step
from weakspot_lab.reproduce.refine.families import FAMILIES, SMALL_FAMILIES
from weakspot_lab.reproduce.refine.measuring import (
    measure_colour,
    measure_family,
    measure_many,
    measure_sweep,
)
from weakspot_lab.reproduce.refine.numbers import measured
from weakspot_lab.reproduce.refine.own_data import SETS, given_steps
from weakspot_lab.reproduce.refine.tables import plots, tables
from weakspot_lab.reproduce.request import ReproduceRequest

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
    measured=measured,
    tables=tables,
    plots=plots,
)
protocol = PROTOCOL.open
