"""The protocol of the HiBug paper."""

from functools import partial

from weakspot_lab.bench.problem import ProblemKind
from weakspot_lab.reproduce.dcbench_files import DCBENCH
from weakspot_lab.reproduce.hibug.measuring import (
    measure_generation,
    measure_selection,
    measure_slices,
)
from weakspot_lab.reproduce.hibug.outcome import OUTCOME
from weakspot_lab.reproduce.hibug.own_data import SETS, given_steps
from weakspot_lab.reproduce.hibug.settings import measure_setting
from weakspot_lab.reproduce.hibug.tasks import TASKS
from weakspot_lab.reproduce.protocol import Paper, Step
from weakspot_lab.reproduce.request import ReproduceRequest

STAND_IN = (
    "For dcbench: planted worlds with a spurious feature, a rare case or wrong labels, and an embedder with noise. For CelebA, RPC "
    "and ImageNet10: rendered scenes of two classes that mostly come on backgrounds of their own, of 20 classes that training "
    "shows one at a time on plain ground, and of eight classes; networks are trained on the pixels. For BLIP: attributes told "
    "from embeddings by what is in a scene, with noise; for Stable Diffusion: the renderer."
)
WORLDS: dict[ProblemKind, int] = {"correlation": 50, "rare": 40, "noisy-label": 10}


def _stand_in_steps(request: ReproduceRequest) -> tuple[Step, ...]:
    steps = [
        Step(
            name=f"dcbench-{kind}",
            seconds=0.6 * number,
            work=partial(measure_setting, kind=kind, n_worlds=request.pick(number, 1)),
        )
        for kind, number in WORLDS.items()
    ]
    for name in TASKS:
        steps.append(
            Step(name=f"slices-{name}", seconds=7, work=partial(measure_slices, name=name))
        )
        steps.append(
            Step(name=f"selection-{name}", seconds=65, work=partial(measure_selection, name=name))
        )
    steps.append(Step(name="generation", seconds=70, work=measure_generation))
    return tuple(steps)


PROTOCOL = Paper(
    key="hibug",
    name="HiBug",
    sets=SETS,
    stand_in_words=STAND_IN,
    stand_in_steps=_stand_in_steps,
    given_words=lambda _request, found: (
        "the encoder of this machine in place of BLIP"
        if found is DCBENCH
        else "small networks and the encoder of this machine in place of ResNet18 and BLIP"
    ),
    given_steps=given_steps,
    outcome=OUTCOME,
)
