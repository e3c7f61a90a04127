"""How examined samples become a data set."""

from dataclasses import dataclass

from weakspot.core.bounds import Fraction, check_bounds
from weakspot.core.dataset import Split, Task


@dataclass(frozen=True, kw_only=True)
class AssemblySettings:
    """How examined samples become a data set.

    Args:
        class_names: the classes in order; empty: those found in the labels, numbers in numerical order.
        task: single-label or multi-label; None: multi-label if any sample has several labels.
        default_split: split of samples that name none; None: labelled ones are split by the fractions, unlabelled ones are pool.
        validation_fraction: share of them that becomes validation.
        test_fraction: share of them that becomes test; the rest becomes train.
        seed: seed of that split.
        unlabelled_is_negative: multi-label only: a sample without labels has none of them, instead of unknown ones.
        group: where the name of its group stands: a column, `folder:1`, `file-name`, a pattern with one capture, `none`, or `auto`
            for the column `group`.
    """

    class_names: tuple[str, ...] = ()
    task: Task | None = None
    default_split: Split | None = None
    validation_fraction: Fraction = 0.25
    test_fraction: Fraction = 0.25
    seed: int = 0
    unlabelled_is_negative: bool = False
    group: str = "auto"

    def __post_init__(self) -> None:
        problems = []
        if self.validation_fraction + self.test_fraction > 1:
            problems.append("validation_fraction and test_fraction must not exceed 1 together")
        repeated = sorted({name for name in self.class_names if self.class_names.count(name) > 1})
        if repeated:
            problems.append(f"class_names repeats {repeated}")
        check_bounds(self, where="data", problems=problems)
