"""Why a confirmed slice fails, as far as training data and wrong answers tell."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Cause, CauseFinding, Evidence, Verdict
from weakspot.core.failures import FailureCriterion, Side, class_problems, predicted_classes
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches


@dataclass(frozen=True, kw_only=True)
class CauseFinder:
    """Weighs three explanations by figures, in this order: spurious cue, rare, hard.

    Args:
        rare_ratio: rare if the share of members in training is below this part of their share in evaluation.
        rare_share: rare also if members make up less than this share of the class's training samples.
        dominant_share: a wrong answer dominates if at least this share of the failures got it.
        cue_share: a cue is spurious if the samples that carry it are at least this share of the dominant wrong class in training,
        cue_ratio: and at least so many times their share in the true class.
        min_training: least number of training samples of a class for its shares to count.
    """

    rare_ratio: float = 0.5
    rare_share: float = 0.05
    dominant_share: float = 0.8
    cue_share: float = 0.8
    cue_ratio: float = 3.0
    min_training: int = 10

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        for name in ("rare_ratio", "rare_share", "dominant_share", "cue_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"The setting {name} must lie between 0 and 1.", given=getattr(self, name))

    def explain(
        self,
        slices: Sequence[FailureSlice],
        evidence: Sequence[Evidence],
        *,
        training: SampleSet,
        evaluation: SampleSet,
        criterion: FailureCriterion,
    ) -> tuple[Evidence, ...]:
        """Return the same evidence, in the same order, with a cause for every confirmed slice."""
        by_id = {found.slice_id: found for found in slices}
        return tuple(
            entry.model_copy(update={"cause": self.cause(by_id[entry.slice_id], training, evaluation, criterion)})
            if entry.verdict is Verdict.CONFIRMED and entry.slice_id in by_id
            else entry
            for entry in evidence
        )

    def cause(self, found: FailureSlice, training: SampleSet, evaluation: SampleSet, criterion: FailureCriterion) -> CauseFinding:
        """Return the probable cause of one slice."""
        own = self._share(found, training, found.class_rows(training))
        here = self._share(found, evaluation, found.class_rows(evaluation), least=1)
        answer, answer_share = _dominant_answer(found, evaluation, criterion)
        other = None
        if answer is not None and answer_share >= self.dominant_share:
            code = training.dataset.class_code(answer)
            other = self._share(found, training, training.rows[training.dataset.labels[training.rows] == code])
        cause = self._weigh(own, here, other)
        return CauseFinding(
            cause=cause,
            share_training=own,
            share_evaluation=here,
            dominant_prediction=answer,
            dominant_share=answer_share if answer is not None else None,
            sentence=_sentence(_class_words(found), own, here, answer, answer_share, other),
        )

    def _weigh(self, own: float | None, here: float | None, other: float | None) -> Cause:
        if own is None or here is None:
            return Cause.UNKNOWN
        if other is not None and other >= self.cue_share and other >= self.cue_ratio * own:
            return Cause.SPURIOUS
        if own < self.rare_share or own < self.rare_ratio * here:
            return Cause.RARE
        return Cause.HARD

    def _share(self, found: FailureSlice, samples: SampleSet, rows: IntArray, *, least: int | None = None) -> float | None:
        """Return the share of members among rows, None if there are too few to tell."""
        scores = found.rule.scores(samples, rows) if len(rows) else np.zeros(0)
        known = rows[np.isfinite(scores)]
        if len(known) < (self.min_training if least is None else least):
            return None
        return float(found.rule.members(samples, known).mean())


def _dominant_answer(found: FailureSlice, samples: SampleSet, criterion: FailureCriterion) -> tuple[str | None, float]:
    """Return the class that failing members are mostly taken for and its share among them; single-label only."""
    dataset: Dataset = samples.dataset
    if dataset.task is not Task.SINGLE_LABEL:
        return None, 0.0
    problems = class_problems(dataset, samples.rows, criterion)
    problem = next((one for one in problems if matches(found, one)), None)
    if problem is None:
        return None, 0.0
    failing = problem.rows[found.inside(samples, problem) & problem.failed]
    answers = Counter(predicted_classes(dataset, failing).tolist())
    wrong = [(code, count) for code, count in answers.most_common() if dataset.class_names[code] != found.class_name]
    if not wrong:
        return None, 0.0
    return dataset.class_names[wrong[0][0]], wrong[0][1] / len(failing)


def _class_words(found: FailureSlice) -> str:
    return f"samples without {found.class_name}" if found.side is Side.ABSENT else found.class_name


def _sentence(
    class_name: str, own: float | None, here: float | None, answer: str | None, answer_share: float, other: float | None
) -> str:
    parts = []
    if own is not None and here is not None:
        parts.append(f"Such samples make up {100 * own:.0f} % of {class_name} in training and {100 * here:.0f} % in evaluation.")
    elif own is None:
        parts.append(f"Too few training samples of {class_name} with vectors to say how common such samples are there.")
    if answer is not None:
        parts.append(f"{100 * answer_share:.0f} % of the failures are taken for {answer}.")
    if other is not None:
        parts.append(f"The same look is found on {100 * other:.0f} % of the training samples of {answer}.")
    return " ".join(parts)
