"""Which experiments are run, and how large they are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from repair_results.budgets import BudgetsExperiment
from repair_results.cifar import CifarExperiment
from repair_results.experiment import Experiment
from repair_results.groceries import GroceriesExperiment
from repair_results.worlds import WorldsExperiment
from weakspot.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class RepairChoice:
    """Experiments by name.

    Args:
        experiments: `worlds`, `budgets`, `cifar10`, `groceries`.
        n_worlds: planted worlds of every kind.
        n_samples: samples of a planted world; None for 10,000 (worlds) and 4,000 (budgets).
        n_runs: splits of images.
        n_images: CIFAR-10 images beside the test images.
        seed: same seed, same answer.
    """

    experiments: tuple[str, ...]
    n_worlds: int = 20
    n_samples: int | None = None
    n_runs: int = 5
    n_images: int = 8000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse names that mean nothing."""
        unknown = [name for name in self.experiments if name not in BUILDERS]
        if unknown or not self.experiments:
            raise ConfigError(
                "There are no such experiments.",
                given=unknown,
                fix=f"Choose from {list(BUILDERS)}.",
            )

    def chosen(self) -> tuple[Experiment, ...]:
        """Return the experiments, each once."""
        return tuple(BUILDERS[name](self) for name in dict.fromkeys(self.experiments))


BUILDERS: Mapping[str, Callable[[RepairChoice], Experiment]] = {
    "worlds": lambda one: WorldsExperiment(
        n_worlds=one.n_worlds, n_samples=one.n_samples or 10_000, seed=one.seed
    ),
    "budgets": lambda one: BudgetsExperiment(
        n_worlds=one.n_worlds, n_samples=one.n_samples or 4_000, seed=one.seed
    ),
    "cifar10": lambda one: CifarExperiment(n_runs=one.n_runs, n_images=one.n_images, seed=one.seed),
    "groceries": lambda one: GroceriesExperiment(n_runs=one.n_runs, seed=one.seed),
}
