"""The Directions protocol: steps, figures, tables and plots."""

from weakspot_lab.reproduce.directions.conditions import measure_conditions
from weakspot_lab.reproduce.directions.data_sets import SETS, photograph_steps
from weakspot_lab.reproduce.directions.other_data import SHARES, measure_corruption, measure_tint
from weakspot_lab.reproduce.directions.outcome import OUTCOME, PAPER
from weakspot_lab.reproduce.directions.rare import DEGREES, measure_rare, measure_removal
from weakspot_lab.reproduce.directions.spurious import RATIOS, measure_spurious, measure_strength
from weakspot_lab.reproduce.protocol import Paper, Step, each_step
from weakspot_lab.reproduce.request import ReproduceRequest

STAND_IN_WORDS = (
    "Stand-in: drawn scenes for CelebA (shape is the label, background the spurious cue), twenty planted superclasses of five "
    "subclasses for CIFAR-100, scikit-learn's tinted digits for Colored MNIST, a planted multi-label world for "
    "ChestX-ray14, noisy scenes for ImageNet-C; small networks trained from scratch for ResNet18, and the renderer for Stable Diffusion."
)


def stand_in_steps(request: ReproduceRequest) -> tuple[Step, ...]:
    """Return all steps; the seconds were measured on one core."""
    worlds, pairs = range(request.pick(3, 1)), range(request.pick(2, 1))
    fast = request.pick(1.0, 0.1)
    ratios = request.pick(RATIOS, RATIOS[::2])
    degrees, shares = request.pick(DEGREES, DEGREES[1::2]), request.pick(SHARES, SHARES[::2])
    return (
        *each_step("spurious", 70 * fast, measure_spurious, worlds),
        *each_step("strength", 20 * fast, measure_strength, ratios, argument="ratio"),
        *each_step("rare", 12 * fast, measure_rare, worlds),
        *each_step("removal", 4 * fast, measure_removal, degrees, argument="removed"),
        *each_step("tint", 14 * fast, measure_tint, shares, argument="share"),
        *each_step("conditions", 3 * fast, measure_conditions, worlds),
        *each_step("corruption", 10 * fast, measure_corruption, pairs),
    )


PROTOCOL = Paper(
    key=PAPER,
    name="Directions",
    sets=SETS,
    stand_in_words=STAND_IN_WORDS,
    stand_in_steps=stand_in_steps,
    given_words=lambda _request, _found: (
        "the encoder and small networks of this machine in place of CLIP and ResNet18"
    ),
    given_steps=photograph_steps,
    outcome=OUTCOME,
)
