"""How often the classifier is right in training and in evaluation, and what the two say together."""

import numpy as np

from weakspot.core.preflight import CheckState, PreflightCheck
from weakspot.core.statistics import exact_interval, fisher_p
from weakspot.pipeline.preflight.answers import LabelledAnswers
from weakspot.report.wording import percent

CHECK = "accuracy"
LEAST_SAMPLES = 20
LARGEST_P = 0.001
WORSE_IN_TRAINING = 0.1
FAR_BETTER_IN_TRAINING = 0.2


def check_accuracy(answers: LabelledAnswers, *, is_dealt: bool = False) -> PreflightCheck | None:
    """Compare accuracy in training, in evaluation and of guessing; None without samples that are evaluated.

    Args:
        answers: labels and predictions.
        is_dealt: whether weakspot itself dealt out the splits, so that `train` says nothing of the training.
    """
    seen, held = answers.only(answers.is_training), answers.only(~answers.is_training)
    if not len(held):
        return None
    said = f"{_figure(held)} evaluation images are right"
    if len(seen):
        said += f", {_figure(seen)} in train"
    compared = None if is_dealt else _compared(seen, held, said)
    return compared or _against_guessing(held, said)


def _figure(answers: LabelledAnswers) -> str:
    return f"{percent(float(answers.is_right.mean()))} of {len(answers):,}"


def _compared(seen: LabelledAnswers, held: LabelledAnswers, said: str) -> PreflightCheck | None:
    if min(len(seen), len(held)) < LEAST_SAMPLES:
        return None
    wrong_seen, wrong_held = (int((~part.is_right).sum()) for part in (seen, held))
    gap = wrong_held / len(held) - wrong_seen / len(seen)
    if (
        gap <= -WORSE_IN_TRAINING
        and fisher_p(wrong_seen, len(seen), wrong_held, len(held)) <= LARGEST_P
    ):
        return PreflightCheck(
            check=CHECK,
            state=CheckState.NOTICE,
            sentence=f"{said}: train is hardly what the classifier was trained on.",
            fix="Name the split of the samples that it was trained on train, and only that.",
            short="worse in training than in evaluation",
        )
    if (
        gap >= FAR_BETTER_IN_TRAINING
        and fisher_p(wrong_held, len(held), wrong_seen, len(seen)) <= LARGEST_P
    ):
        return PreflightCheck(
            check=CHECK,
            state=CheckState.NOTICE,
            sentence=f"{said}: the evaluation images are of another kind, or the classifier learned its training by heart.",
            short=f"{percent(float(seen.is_right.mean()))} right in training, {percent(float(held.is_right.mean()))} in evaluation",
        )
    return None


def _against_guessing(held: LabelledAnswers, said: str) -> PreflightCheck:
    guessed = np.bincount(held.labels).max() / len(held)
    highest = exact_interval(int(held.is_right.sum()), len(held))[1]
    if len(held) >= LEAST_SAMPLES and highest < guessed:
        return PreflightCheck(
            check=CHECK,
            state=CheckState.NOTICE,
            sentence=f"{said}: always naming the most frequent class would be right on {percent(guessed)}.",
            fix="Make sure that this classifier belongs to these classes and images.",
            short="worse than guessing",
        )
    return PreflightCheck(check=CHECK, state=CheckState.OK, sentence=f"{said}.")
