"""Which slices are planted in which photographs, and how many."""

from dataclasses import dataclass

from names.fourth_slices import FOURTH_REPORTING, SEED
from names.second_slices import SECOND_REPORTING, SECOND_TUNING
from names.slices import REPORTING, TUNING, Planted
from names.third_slices import THIRD_REPORTING


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the benchmark.

    Args:
        slices: what is planted.
        seed: of choices, changes and predictions.
        sheet: the file of CIFAR-10.
        n_of_class: photographs of the class, a quarter of them members.
        n_beside: photographs of another class.
        beside: the other class, and what stands in for it where the class itself is of its kind.
    """

    slices: tuple[Planted, ...]
    seed: int
    sheet: str
    n_of_class: int = 132
    n_beside: int = 30
    beside: tuple[str, str] = ("truck", "bird")

    def beside_of(self, planted: Planted) -> str:
        """Return whose photographs stand beside the class."""
        is_alike = planted.class_name in ("vehicle", self.beside[0])
        return self.beside[1 if is_alike else 0]


PARTS = {
    "tuning": Part(slices=TUNING, seed=0, sheet="data_batch_1"),
    "reporting": Part(
        slices=REPORTING,
        seed=1,
        sheet="test_batch",
        n_of_class=96,
        n_beside=20,
        beside=("automobile", "cat"),
    ),
    "second-tuning": Part(slices=SECOND_TUNING, seed=3, sheet="data_batch_1"),
    "second-reporting": Part(
        slices=SECOND_REPORTING,
        seed=7,
        sheet="data_batch_3",
        n_beside=20,
        beside=("automobile", "cat"),
    ),
    "third-reporting": Part(
        slices=THIRD_REPORTING,
        seed=11,
        sheet="data_batch_5",
        n_beside=20,
        beside=("truck", "dog"),
    ),
    "fourth-reporting": Part(
        slices=FOURTH_REPORTING,
        seed=SEED,
        sheet="data_batch_4",
        n_beside=20,
        beside=("ship", "horse"),
    ),
}
