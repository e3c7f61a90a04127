"""The protocol of the Search paper."""

from weakspot.lab.reproduce.expected_files import require_data
from weakspot.lab.reproduce.figures import read_figures
from weakspot.lab.reproduce.protocol import Protocol, Step
from weakspot.lab.reproduce.request import ReproduceRequest
from weakspot.lab.reproduce.search.measuring import (
    measure_clusters,
    measure_pairs,
    measure_transfer,
)
from weakspot.lab.reproduce.search.numbers import measured
from weakspot.lab.reproduce.search.own_data import SETS, given_steps
from weakspot.lab.reproduce.search.tables import plots, tables

STAND_IN = (
    "For ImageNet: rendered scenes of eight classes, which in training mostly come on backgrounds of their own; for ResNet-50 and "
    "ViT: small networks trained on their pixels; for the text-to-image model: the renderer, which draws as training scenes "
    "show it whatever a caption leaves open; for the second one: a softer renderer with other tones; for the captioner: one "
    "that tells the factors of a scene."
)
STEPS: tuple[Step, ...] = (
    Step(name="pairs", seconds=60, work=measure_pairs),
    Step(name="clusters", seconds=80, work=measure_clusters),
    Step(name="transfer", seconds=60, work=measure_transfer),
)


def protocol(request: ReproduceRequest) -> Protocol:
    """Return the steps and figures of the paper, for the data that is given.

    Raises:
        DataError: if files of the data are missing.
    """
    words, steps = STAND_IN, STEPS
    if not request.is_stand_in:
        found = require_data(request.data, SETS, paper="Search")
        words = f"{found.name}, with the first of the models and the generator that is configured."
        steps = given_steps(request, found)
    return Protocol(
        stated=read_figures("search"),
        data_words=words,
        steps=steps,
        measured=measured,
        tables=tables,
        plots=plots,
    )
