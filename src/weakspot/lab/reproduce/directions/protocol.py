"""The Directions protocol: steps, figures, tables and plots."""

from functools import partial
from pathlib import Path

from weakspot.lab.reproduce.directions.corruption import measure_corruption
from weakspot.lab.reproduce.directions.data_sets import SETS, photograph_steps
from weakspot.lab.reproduce.directions.outcome import PAPER, measured
from weakspot.lab.reproduce.directions.rare import DEGREES, measure_rare, measure_removal
from weakspot.lab.reproduce.directions.shown import plots, tables
from weakspot.lab.reproduce.directions.spurious import RATIOS, measure_spurious, measure_strength
from weakspot.lab.reproduce.directions.tints import SHARES, measure_conditions, measure_tint
from weakspot.lab.reproduce.expected_files import require_data
from weakspot.lab.reproduce.figures import read_figures
from weakspot.lab.reproduce.protocol import Protocol, Step
from weakspot.lab.reproduce.request import ReproduceRequest

STAND_IN_WORDS = (
    "Stand-in: drawn scenes for CelebA (shape is the label, background the spurious cue), twenty planted superclasses of five "
    "subclasses for CIFAR-100, scikit-learn's tinted digits for Colored MNIST, a planted multi-label world for "
    "ChestX-ray14, noisy scenes for ImageNet-C; small networks trained from scratch for ResNet18, and the renderer for Stable Diffusion."
)


def protocol(request: ReproduceRequest) -> Protocol:
    """Return the protocol on the stand-in, or the part of it that fits the data given."""
    stated = read_figures(PAPER)
    if request.is_stand_in:
        return Protocol(
            stated=stated,
            data_words=STAND_IN_WORDS,
            steps=stand_in_steps(request),
            measured=measured,
            tables=tables,
            plots=plots,
        )
    found = require_data(request.data, SETS, paper="Directions")
    assert request.data is not None
    steps = photograph_steps(found, Path(request.data), request)
    return Protocol(
        stated=stated,
        data_words=f"{found.name}, with the encoder and small networks of this machine in place of CLIP and ResNet18.",
        steps=steps,
        measured=measured,
        tables=tables,
        plots=plots,
    )


def stand_in_steps(request: ReproduceRequest) -> tuple[Step, ...]:
    """Return all steps; the seconds were measured on one core."""
    n_worlds = request.pick(3, 1)
    fast = request.pick(1.0, 0.1)
    ratios = request.pick(RATIOS, RATIOS[::2])
    degrees, shares = request.pick(DEGREES, DEGREES[1::2]), request.pick(SHARES, SHARES[::2])
    return (
        *(
            Step(
                name=f"spurious-{number}",
                seconds=70 * fast,
                work=partial(measure_spurious, number=number),
            )
            for number in range(n_worlds)
        ),
        *(
            Step(
                name=f"strength-{ratio:g}",
                seconds=20 * fast,
                work=partial(measure_strength, ratio=ratio),
            )
            for ratio in ratios
        ),
        *(
            Step(
                name=f"rare-{number}", seconds=12 * fast, work=partial(measure_rare, number=number)
            )
            for number in range(n_worlds)
        ),
        *(
            Step(
                name=f"removal-{removed:g}",
                seconds=4 * fast,
                work=partial(measure_removal, removed=removed),
            )
            for removed in degrees
        ),
        *(
            Step(name=f"tint-{share:g}", seconds=14 * fast, work=partial(measure_tint, share=share))
            for share in shares
        ),
        *(
            Step(
                name=f"conditions-{number}",
                seconds=3 * fast,
                work=partial(measure_conditions, number=number),
            )
            for number in range(n_worlds)
        ),
        *(
            Step(
                name=f"corruption-{number}",
                seconds=10 * fast,
                work=partial(measure_corruption, number=number),
            )
            for number in range(request.pick(2, 1))
        ),
    )
