"""The protocol of the Search paper."""

from weakspot_lab.reproduce.paper import Paper
from weakspot_lab.reproduce.protocol import Step
from weakspot_lab.reproduce.search.measuring import (
    measure_clusters,
    measure_pairs,
    measure_transfer,
)
from weakspot_lab.reproduce.search.numbers import measured
from weakspot_lab.reproduce.search.own_data import SETS, given_steps
from weakspot_lab.reproduce.search.tables import plots, tables

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
PROTOCOL = Paper(
    key="search",
    name="Search",
    sets=SETS,
    stand_in_words=STAND_IN,
    stand_in_steps=lambda _request: STEPS,
    given_words=lambda _request, _found: (
        "the first of the models and the generator that is configured"
    ),
    given_steps=given_steps,
    measured=measured,
    tables=tables,
    plots=plots,
)
protocol = PROTOCOL.open
