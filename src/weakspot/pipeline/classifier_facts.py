"""How the classifier does on the evaluation samples, class by class, and on what it was trained on."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems, predicted_classes
from weakspot.core.given_labels import as_given
from weakspot.core.group_tests import effective_number
from weakspot.core.run import ClassifierFacts

MOST_CONFUSIONS = 3
ROWS_AT_ONCE = 65_536


def classifier_facts(
    dataset: Dataset, rows: IntArray, criterion: FailureCriterion
) -> ClassifierFacts:
    """Count samples and failures of every class among the evaluation rows, and of all training samples together.

    By labels as given: people correct those of the half that they look at, and with predictions before their eyes.
    """
    dataset = as_given(dataset)
    problems = class_problems(dataset, rows, criterion)
    is_single = dataset.task is Task.SINGLE_LABEL
    return ClassifierFacts(
        n_samples=sum(len(problem.rows) for problem in problems),
        n_failed=sum(problem.n_failed for problem in problems),
        per_class={problem.title: (len(problem.rows), problem.n_failed) for problem in problems},
        confusions=_confusions(dataset, problems) if is_single else {},
        training=_count_training(dataset, criterion),
        counted=_counted(dataset, rows) if is_single else "labels",
        effective=_effective(dataset, problems) if is_single else None,
    )


def _confusions(
    dataset: Dataset, problems: Sequence[ClassProblem]
) -> dict[str, tuple[tuple[str, int], ...]]:
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    names = dataset.class_names
    for problem in problems:
        said = predicted_classes(dataset, problem.rows[problem.failed])
        codes, counts = np.unique(said, return_counts=True)
        wrong = [
            (names[code], count)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
            if code >= 0 and names[code] != problem.class_name
        ]
        wrong.sort(key=lambda one: (-one[1], one[0]))
        if wrong:
            found[problem.title] = tuple(wrong[:MOST_CONFUSIONS])
    return found


def _count_training(dataset: Dataset, criterion: FailureCriterion) -> tuple[int, int] | None:
    rows = with_predictions(dataset, dataset.rows_of(Split.TRAIN))
    n_samples = n_failed = 0
    for start in range(0, len(rows), ROWS_AT_ONCE):
        for problem in class_problems(dataset, rows[start : start + ROWS_AT_ONCE], criterion):
            n_samples += len(problem.rows)
            n_failed += problem.n_failed
    return (n_samples, n_failed) if n_samples else None


def with_predictions(dataset: Dataset, rows: IntArray) -> IntArray:
    """Return the rows that the classifier said something of; a table may hold predictions for some samples only."""
    if dataset.predictions is not None or dataset.probabilities is None:
        return rows
    known = np.concatenate(
        [
            ~np.isnan(dataset.probabilities[rows[start : start + ROWS_AT_ONCE]]).any(axis=1)
            for start in range(0, len(rows), ROWS_AT_ONCE)
        ]
        or [np.zeros(0, dtype=np.bool_)]
    )
    chosen: IntArray = rows[known]
    return chosen


def _counted(dataset: Dataset, rows: IntArray) -> str:
    has_images = any(place is not None for place in dataset.locations(rows[:1]))
    return "images" if has_images else "samples"


def _effective(dataset: Dataset, problems: Sequence[ClassProblem]) -> float | None:
    if not any(problem.groups is not None for problem in problems):
        return None
    rows = np.concatenate([problem.rows for problem in problems])
    return effective_number(dataset.groups[rows], np.ones(len(rows), dtype=np.bool_))
