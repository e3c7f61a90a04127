"""What is wrong with whole classes: records with the same proof as slices."""

import hashlib
from enum import StrEnum

from weakspot.core.evidence import Interval, Verdict
from weakspot.core.record import Record


class ClassFindingKind(StrEnum):
    """What is said of a class."""

    WHOLE = "fails as a whole"
    CONFUSED = "confused"
    SHIFT = "looks unlike training"
    UNTRAINED = "no training images"
    DRIFT = "changes over a column"


class ClassFinding(Record):
    """One statement on a class, tested on samples that did not choose it.

    Args:
        kind: what is said.
        class_name: the true class it is said of.
        other_class: the class that it is taken for (`CONFUSED`, and `WHOLE` if there is one that most failures go to).
        verdict: what the evidence allows to say; `UNTRAINED` is counted, not tested, and always confirmed.
        sentence: the finding in words with its figures, as the terminal, the report and the page print it.
        n_samples: evaluation samples of the class that it was measured on.
        n_failed: those of them that fail (as `kind` counts: all failures, those taken for `other_class`, ...).
        rate: `n_failed / n_samples`, for `SHIFT` how well a held-out test tells evaluation from training images (AUC).
        interval: of `rate`.
        reference: what `rate` is compared with: the other classes' rate, the reverse or usual confusion, 0.5 for `SHIFT`.
        p_value: None where nothing is tested.
        q_value: over everything that these samples were asked.
        n_training: training samples of the class; None if training samples are not known.
        words_here: words that fit evaluation images better than training images; empty if none is known to fit.
        words_there: words that fit training images better.
        examples_here: ids of evaluation samples that show it best, none of them from the confirmation half.
        examples_there: ids of training samples to put beside them.
        column: the column of `DRIFT`.
        value: its value at which the class fails.
        batch: as in `Evidence`.
        question: as in `Evidence`.
    """

    kind: ClassFindingKind
    class_name: str
    other_class: str = ""
    verdict: Verdict
    sentence: str
    n_samples: int = 0
    n_failed: int = 0
    rate: float = 0.0
    interval: Interval | None = None
    reference: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    n_training: int | None = None
    words_here: tuple[str, ...] = ()
    words_there: tuple[str, ...] = ()
    examples_here: tuple[str, ...] = ()
    examples_there: tuple[str, ...] = ()
    column: str = ""
    value: str = ""
    batch: int = 0
    question: str = ""

    @property
    def finding_id(self) -> str:
        """Return a short name that stays the same from run to run."""
        parts = (self.kind, self.class_name, self.other_class, self.column, self.value)
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]

    @property
    def is_confirmed(self) -> bool:
        return self.verdict is Verdict.CONFIRMED
