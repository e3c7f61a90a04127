"""All strategies on one case, beside retraining alone and matched controls of the selections that matter most."""

from collections.abc import Callable, Iterator, Sequence

from repair_results.arms import (
    Workshop,
    accuracies,
    n_added,
    options_for,
    pool_methods,
    training_methods,
)
from repair_results.case import TRUTH
from repair_results.figures import Figures
from repair_results.proving import TRUE
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError
from weakspot.core.heads import RepairMaterial, TrainingSelection
from weakspot.core.roles import Repairer
from weakspot.repair.bench import GROUP_METHODS
from weakspot.repair.controls import MATCHED_CONTROLS, zero_shot
from weakspot.run.wiring import build_part

PLAIN, WORDS, CLIP = "plain", "zero-shot-classes", "clip"
WITH_CONTROLS = ("slice-balanced", "worst-slice")
Select = Callable[[], TrainingSelection]


def strategy_figures(
    shop: Workshop, unit: str, *, with_controls: Sequence[str] = WITH_CONTROLS
) -> Iterator[Figures]:
    """Yield one entry an arm: plain, every strategy that applies, references with group labels, and matched controls.

    A strategy that cannot work on the case gets a note in place of figures. Group labels tell the truth, so references that read
    them stand beside the true slice only.
    """
    references = GROUP_METHODS if shop.given.source == TRUE else ()
    for name in (PLAIN, *training_methods(), *references, *(pool_methods() if shop.budget else ())):
        select = selecting(shop, name)
        yield arm_figures(shop, unit, name, select)
        for kind, control in MATCHED_CONTROLS.items() if name in with_controls else ():
            yield arm_figures(
                shop, unit, f"{name}, {kind} matched control", _with_controls(shop, select, control)
            )


def words_figures(shop: Workshop, unit: str) -> Figures:
    """Return what the embedder reaches by the names of the classes alone, without any training."""
    samples = shop.case.samples
    answers = zero_shot(
        samples.dataset.class_names, shop.case.assistants.embed_texts, task=samples.dataset.task
    )
    measured = shop.said(
        WORDS,
        answers.probabilities(samples.embeddings(CLIP, shop.case.test.rows)),
        note=answers.note,
    )
    return Figures(
        unit=unit,
        part=shop.given.source,
        arm=WORDS,
        values=accuracies(measured, shop.case),
        note=answers.note,
    )


def selecting(shop: Workshop, name: str) -> Select:
    """Return what asks a registered strategy for its selection."""
    part: Repairer = build_part(
        "repairers", name, options_for(name, TRUTH), where="benchmarks/repair.py"
    )
    return lambda: part.select(shop.given.slices, shop.material)


def _with_controls(
    shop: Workshop,
    select: Select,
    control: Callable[[TrainingSelection, RepairMaterial], TrainingSelection],
) -> Select:
    return lambda: control(select(), shop.material)


def arm_figures(shop: Workshop, unit: str, arm: str, select: Select) -> Figures:
    """Return what one arm reaches, or why it cannot be used."""
    blank = Figures(unit=unit, part=shop.given.source, arm=arm)
    try:
        selection = select()
        measured, penalty = shop.measured(arm, selection)
    except (DataError, ModelError, NotEnoughDataError) as error:
        return blank.model_copy(update={"note": str(error)})
    values = accuracies(measured, shop.case) | {
        "penalty": penalty,
        "added": float(n_added(selection, shop.case)),
    }
    return blank.model_copy(update={"values": values, "note": selection.note})
