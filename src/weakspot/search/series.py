"""What was drawn of one prompt so far, and who failed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from weakspot.core.failures import FailureCriterion
from weakspot.search.records import StoppedBecause, TrialStep
from weakspot.search.sampling import Draws

FINAL = (StoppedBecause.REFUSED, StoppedBecause.REJECTED)


@dataclass(frozen=True, kw_only=True)
class FailedPictures:
    """Failures that count.

    Args:
        keys: the pictures, by content hash.
        labels: what each was taken for.
    """

    keys: tuple[str, ...]
    labels: tuple[str, ...]


class Referee:
    """Says of drawn pictures which failed.

    Args:
        class_name: what they show.
        class_names: the classifier's classes.
        criterion: when an answer is a failure of any kind.
        target: count only failures towards this class.
    """

    def __init__(self, *, class_name: str, class_names: Sequence[str], criterion: FailureCriterion, target: str | None) -> None:
        self.target = target or (criterion.target if criterion.kind == "target" else None)
        self._names, self._code = tuple(class_names), list(class_names).index(class_name)
        self._any = replace(criterion, kind="top-1") if criterion.kind == "target" else criterion
        self._counted = FailureCriterion(kind="target", target=self.target) if self.target else self._any

    def judged(self, draws: Draws) -> tuple["JudgedPicture", ...]:
        """Return what became of every picture, in order."""
        labels = np.full(len(draws.keys), self._code, dtype=np.int64)
        if not len(labels):
            return ()
        counts = self._counted.failed_outcomes(draws.probabilities, labels, self._names)
        fails = self._any.failed_outcomes(draws.probabilities, labels, self._names)
        said = np.argmax(draws.probabilities, axis=1)
        return tuple(
            JudgedPicture(key=key, label=self._names[int(code)], is_failure=bool(one), is_any_failure=bool(other or one))
            for key, code, one, other in zip(draws.keys, said, counts, fails, strict=True)
        )

    def is_wrong(self, picture: "JudgedPicture") -> bool:
        """Return whether a picture was taken for another class."""
        return picture.label != self._names[self._code]


@dataclass(frozen=True, kw_only=True)
class JudgedPicture:
    """One picture and what the classifier made of it.

    Args:
        key: by content hash.
        label: what it was taken for.
        is_failure: whether it failed in the way that counts.
        is_any_failure: whether it failed in any way.
    """

    key: str
    label: str
    is_failure: bool
    is_any_failure: bool


@dataclass(kw_only=True, eq=False)
class PictureSeries:
    """The pictures of one prompt, from the first place of its series on.

    Args:
        caption: what was added to the baseline prompt.
        prompt: the whole prompt.
        step: where the caption comes from.
        n_asked: places of the series that were drawn.
        rejected: how many each gate rejected.
        pictures: those that were judged.
        wrong_labels: what failures of any kind were taken for.
        target_failures: pictures taken for the target.
        failures: failures that count.
        stopped: why nothing more was drawn, None while it goes on.
        note: anything to tell.
    """

    caption: str
    prompt: str
    step: TrialStep
    n_asked: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    pictures: list[JudgedPicture] = field(default_factory=list)
    wrong_labels: Counter[str] = field(default_factory=Counter)
    target_failures: int = 0
    failures: int = 0
    stopped: StoppedBecause | None = None
    note: str = ""

    @property
    def n_pictures(self) -> int:
        """Return how many were judged."""
        return len(self.pictures)

    @property
    def guess(self) -> float:
        """Return the rate, a little towards one half so that it is never 0 or 1."""
        return (self.failures + 0.5) / (self.n_pictures + 1.0)

    @property
    def is_final(self) -> bool:
        """Return whether nothing more can be drawn, whatever the budget."""
        return self.stopped in FINAL or (self.stopped is StoppedBecause.BUDGET and not self.n_asked)

    @property
    def failed(self) -> FailedPictures:
        """Return the failures that count, in order."""
        chosen = [one for one in self.pictures if one.is_failure]
        return FailedPictures(keys=tuple(one.key for one in chosen), labels=tuple(one.label for one in chosen))

    def take(self, draws: Draws, referee: Referee, *, n_asked: int) -> None:
        """Add what came of the next places of the series."""
        judged = referee.judged(draws)
        self.n_asked += n_asked
        self.rejected.update(dict(draws.rejected))
        self.pictures.extend(judged)
        self.failures += sum(one.is_failure for one in judged)
        self.wrong_labels.update(one.label for one in judged if one.is_any_failure and referee.is_wrong(one))
        if referee.target:
            self.target_failures += sum(one.is_failure for one in judged)
