"""Whether a class and the one that its failures are taken for look alike, told by training labels alone."""

from dataclasses import dataclass

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Task
from weakspot.core.evidence import Share
from weakspot.core.failures import predicted_classes
from weakspot.core.pair_probe import PairProbe, pair_rows, unit_embeddings
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.verify.cause.worth import worth_of

N_NEIGHBOURS = 15
MOST_FAILURES = 200


@dataclass(frozen=True, kw_only=True)
class LookAlike:
    """How failures lie between their class and a rival.

    Args:
        either: failures that lie in the bulk of both classes.
        rival_only: share of failures that lie where only the rival lies.
        told_apart: how often training samples around the failures have the label of most of their own neighbours.
        back: samples of the rival that are taken for the class.
        elsewhere: samples of the rival that are taken for a third class, on average over these.
    """

    either: Share
    rival_only: float
    told_apart: float
    back: Share | None
    elsewhere: float

    @property
    def is_mutual(self) -> bool:
        """Return whether the rival is taken for the class, and more often than for others."""
        return self.back is None or (self.back.count > 0 and self.back.value >= self.elsewhere)


def look_alike(  # noqa: PLR0913 - two sides and two sets of samples
    found: FailureSlice,
    rival: str | None,
    failing: IntArray,
    *,
    training: SampleSet,
    evaluation: SampleSet,
    space: str,
    level: float,
) -> LookAlike | None:
    """Return how failures lie between the class and its rival, None if there are no embeddings or too few of them.

    Args:
        found: the slice.
        rival: the class that these failures are taken for; None in a multi-label task, where it is the other side.
        failing: rows.
        training: whose labels are asked.
        evaluation: whose failures they are.
        space: whose embeddings are read; better not the classifier's own, which shares its mistakes.
        level: of the intervals.
    """
    if space not in training.spaces or space not in evaluation.spaces:
        return None
    own, other = pair_rows(training, found.class_name, found.side, rival)
    probe = PairProbe.of(training, own, other, space)
    asked = failing[:: max(1, len(failing) // MOST_FAILURES)]
    embeddings = unit_embeddings(evaluation, asked, space)
    if probe is None or not len(embeddings):
        return None
    either = probe.is_either(embeddings)
    back, elsewhere = _mutual(found, rival, evaluation, level)
    return LookAlike(
        either=Share.of(int(either.sum()), len(either), level=level),
        rival_only=float(probe.is_rival_only(embeddings).mean()),
        told_apart=probe.told_apart(embeddings, N_NEIGHBOURS),
        back=back,
        elsewhere=elsewhere,
    )


def _mutual(
    found: FailureSlice, rival: str | None, evaluation: SampleSet, level: float
) -> tuple[Share | None, float]:
    dataset = evaluation.dataset
    if rival is None or dataset.task is not Task.SINGLE_LABEL:
        return None, 0.0
    own, other = dataset.class_code(found.class_name), dataset.class_code(rival)
    rows = evaluation.rows[dataset.labels[evaluation.rows] == other]
    answers = predicted_classes(dataset, rows)
    rows, answers = rows[answers >= 0], answers[answers >= 0]
    if not len(answers):
        return None, 0.0
    effective = worth_of(evaluation, rows) * len(answers)
    back = Share.of(int((answers == own).sum()), len(answers), level=level, effective=effective)
    n_elsewhere = int(((answers != own) & (answers != other)).sum())
    return back, n_elsewhere / len(answers) / max(dataset.n_classes - 2, 1)
