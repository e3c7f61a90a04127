"""What can be wrong with a planted world."""

from dataclasses import dataclass
from typing import Literal

from weakspot.core.errors import ConfigError
from weakspot.testing.scenes import FACTORS, KINDS

HALF = 0.5

ProblemKind = Literal["spurious", "rare", "label-noise", "none"]


@dataclass(frozen=True, kw_only=True)
class PlantedProblem:
    """A flaw in the training data, and with it a slice on which a classifier trained on that data fails.

    Args:
        kind: `spurious` in training, `class_name` mostly comes with `usual_value` and `rival` with `value`; `rare` samples of
            `class_name` with `value` are rare in training and look much like `rival`; `label-noise` some labels are wrong, in
            every split; `none` nothing is wrong and failures are pure chance given the class.
        strength: rho, pi or r: the share of the two classes that is forced to its cue (`spurious`), of `class_name` that has
            `value` in training (`rare`), or of samples with a wrong label (`label-noise`).
        class_name: the class with the slice.
        rival: the class that its failures are taken for.
        factor: what the slice is about.
        value: the value of the factor that marks the slice.
        usual_value: the value that `class_name` has in training (`spurious`).
        evaluation_share: share of `value`, and of `usual_value` for `spurious`, wherever nothing is forced.
    """

    kind: ProblemKind = "none"
    strength: float = 0.0
    class_name: str = "disc"
    rival: str = "star"
    factor: str = "background"
    value: str = "grassy"
    usual_value: str = "plain"
    evaluation_share: float = 0.25

    def __post_init__(self) -> None:
        """Refuse problems that cannot be planted."""
        if not 0.0 <= self.strength <= 1.0:
            raise ConfigError("The strength of a planted problem must lie in [0, 1].", given=self.strength)
        if not 0.0 < self.evaluation_share < HALF:
            raise ConfigError("The evaluation share of a planted problem must lie in (0, 0.5).", given=self.evaluation_share)
        if self.factor not in FACTORS or self.factor == "kind":
            raise ConfigError(f"There is no factor {self.factor!r} to plant.", fix=f"Choose one of {list(FACTORS)[1:]}.")
        if {self.value, self.usual_value} - set(FACTORS[self.factor]) or self.value == self.usual_value:
            raise ConfigError(
                "A planted problem needs two different values of its factor.",
                given=(self.value, self.usual_value),
                fix=f"Choose from {list(FACTORS[self.factor])}.",
            )
        if {self.class_name, self.rival} - set(KINDS) or self.class_name == self.rival:
            raise ConfigError("A planted problem needs two different classes.", given=(self.class_name, self.rival))


def spurious(rho: float = 0.95, *, class_name: str = "disc", rival: str = "star") -> PlantedProblem:
    """Return a correlation of strength rho between two classes and their backgrounds in training."""
    return PlantedProblem(kind="spurious", strength=rho, class_name=class_name, rival=rival)


def rare(share: float = 0.02, *, class_name: str = "disc", value: str = "green") -> PlantedProblem:
    """Return a colour that only the given share of a class has in training."""
    usual = "red" if value != "red" else "blue"
    return PlantedProblem(kind="rare", strength=share, class_name=class_name, factor="colour", value=value, usual_value=usual)


def label_noise(rate: float = 0.1) -> PlantedProblem:
    """Return wrong labels on the given share of all samples."""
    return PlantedProblem(kind="label-noise", strength=rate)


def nothing() -> PlantedProblem:
    """Return no problem at all: the null."""
    return PlantedProblem(kind="none")
