"""What is asked of a refinement."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.errors import ConfigError, raise_all
from weakspot.lexicon.uncommon_vocabulary import uncommon_axes

REFINE, RANDOM, PREDEFINED, DIRECTIONS, CUTMIX, PLAIN = "refine", "random", "predefined", "directions", "cutmix", "plain"
BESIDE = (RANDOM, PREDEFINED, DIRECTIONS, CUTMIX, PLAIN)
"""What stands beside the refinement: pictures of the bare class, of values that no failure chose, of captions of directions slices,
mixed training features, and retraining alone."""
KINDS = ("background", "colour")


@dataclass(frozen=True, kw_only=True)
class RefineRequest:
    """What is asked of a refinement.

    Args:
        kinds: kinds of attribute that failures may show; `uncommon_axes` names them.
        n_names: how many values of a kind are drawn for a class, those that most seed failures show.
        n_each: pictures for every seed failure that shows a value.
        most_each: at most so many pictures of one prompt; a value counts by its failures, however many pictures there are of it.
        debug_weight: how much all generated pictures together count beside all training samples together; None: the largest of
            some weights with which at most `most_lost` of the formerly right samples of the discovery half are lost.
        most_lost: share of formerly right samples that a chosen weight may cost.
        n_values: how many values a language model is asked for, per class and kind.
        arms: what stands beside the refinement.
        predefined: values by kind for the arm of that name; the built-in ones by default.
    """

    kinds: tuple[str, ...] = KINDS
    n_names: int = 3
    n_each: int = 5
    most_each: int = 20
    debug_weight: float | None = None
    most_lost: float = 0.01
    n_values: int = 10
    arms: tuple[str, ...] = BESIDE
    predefined: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        raise_all(self._problems(), error=ConfigError, what="The refinement cannot be done as it is asked for:")

    def _problems(self) -> list[str]:
        problems = [
            f"{name} must be at least 1, is {getattr(self, name)}"
            for name in ("n_names", "n_each", "most_each", "n_values")
            if getattr(self, name) < 1
        ]
        if self.debug_weight is not None and not (np.isfinite(self.debug_weight) and self.debug_weight > 0):
            problems.append(f"debug_weight must be a positive number, is {self.debug_weight:g}")
        if not 0 <= self.most_lost < 1:
            problems.append(f"most_lost must lie in [0, 1), is {self.most_lost:g}")
        named = [("kinds", self.kinds, uncommon_axes()), ("arms", self.arms, BESIDE)]
        named.append(("predefined", tuple(kind for kind, _ in self.predefined), uncommon_axes()))
        for name, given, known in named:
            unknown = sorted(set(given) - set(known))
            problems += [f"{name} knows nothing of {', '.join(unknown)}; choose from {', '.join(known)}"] if unknown else []
        return problems if self.kinds else [*problems, "kinds must name at least one kind of attribute"]

    def n_pictures(self, n_failures: int) -> int:
        """Return how many pictures a value gets that so many failures show."""
        return min(self.most_each, self.n_each * n_failures)
