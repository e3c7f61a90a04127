"""Adding the pool samples that people have labelled."""

from collections.abc import Sequence
from dataclasses import dataclass

from weakspot.core.errors import NotEnoughDataError
from weakspot.core.seeding import generator
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.repair.methods.pool.added import with_added
from weakspot.repair.methods.pool.candidates import open_pool

STRATEGY = "pool-labelled"


@dataclass(frozen=True, kw_only=True)
class LabelledRepairer:
    """Adds every pool sample that has a label, whoever chose it; of more than the budget, some at random.

    This is what `next/to_label.csv` asks for: people label some of the list, and the last layer is retrained with all of them, every
    sample counting once.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> LabelledRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen because they have a label.'
    """

    is_baseline = False

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and labelled pool rows; slices have no influence.

        Raises:
            NotEnoughDataError: if no pool sample has a label.
        """
        del slices
        pool = open_pool(material, STRATEGY)
        labelled = pool.rows[material.training.dataset.is_labelled[pool.rows]]
        if not len(labelled):
            raise NotEnoughDataError(
                "No pool sample has a label yet.",
                where=STRATEGY,
                fix="Fill in labels in next/to_label.csv, and give it with --labels.",
            )
        chosen = generator(material.seed, STRATEGY).permutation(labelled)[: pool.budget]
        return with_added(material, chosen, "because they have a label")
