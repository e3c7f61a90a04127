"""Failures that were made for one classifier, put to others: what share of them fails there too."""

from collections.abc import Mapping, Sequence

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.errors import DataError
from weakspot.core.evidence import Interval
from weakspot.core.failures import FailureCriterion
from weakspot.core.record import Record
from weakspot.core.statistics import wilson_interval

LEVEL = 0.95
TOP = 3


class SetOnModel(Record):
    """One set of images on one classifier.

    Args:
        set_name: the set.
        model: the classifier.
        is_own: whether the set was made for this classifier, so that it fails on it by choice.
        n_images: images of the set that the classifier answered for.
        n_wrong: those whose likeliest label is wrong.
        n_wrong_of_top: those whose true label is not among the three likeliest.
        interval: of the share that is wrong.
        interval_of_top: of the share whose true label is not among the three likeliest.
    """

    set_name: str
    model: str
    is_own: bool
    n_images: int
    n_wrong: int
    n_wrong_of_top: int
    interval: Interval
    interval_of_top: Interval

    @property
    def rate(self) -> float:
        """Return the share whose likeliest label is wrong, 0 without images."""
        return self.n_wrong / self.n_images if self.n_images else 0.0

    @property
    def rate_of_top(self) -> float:
        """Return the share whose true label is not among the three likeliest, 0 without images."""
        return self.n_wrong_of_top / self.n_images if self.n_images else 0.0


class TransferMatrix(Record):
    """Every set on every classifier.

    Args:
        sets: rows.
        models: columns.
        made_for: by set, the classifier that it was made for; empty for a set that was made for none of them.
        cells: one a set and classifier, in this order.
        n_classes: how many labels there are to choose from.
    """

    sets: tuple[str, ...]
    models: tuple[str, ...]
    made_for: dict[str, str]
    cells: tuple[SetOnModel, ...]
    n_classes: int

    def cell(self, set_name: str, model: str) -> SetOnModel:
        return next(one for one in self.cells if one.set_name == set_name and one.model == model)

    def rates(self, *, of_top: bool = False) -> tuple[tuple[float, ...], ...]:
        found = [[self.cell(name, model) for model in self.models] for name in self.sets]
        return tuple(
            tuple(one.rate_of_top if of_top else one.rate for one in line) for line in found
        )

    @property
    def notes(self) -> tuple[str, ...]:
        found = [
            f"{one.set_name} was made of failures of {one.model}: its own share there is no measurement."
            for one in self.cells
            if one.is_own
        ]
        if self.n_classes <= TOP:
            found.append(
                f"There are {self.n_classes} classes, so that the true one is always among the {TOP} likeliest."
            )
        return tuple(found)


Answers = tuple[FloatArray, IntArray]
"""What one classifier says of one set [n, c], rows that are not finite where it has no answer; and the true classes [n]."""


def transfer_matrix(
    answers: Mapping[str, Mapping[str, Answers]],
    class_names: Sequence[str],
    *,
    made_for: Mapping[str, str] | None = None,
) -> TransferMatrix:
    """Put every set to every classifier.

    Args:
        answers: by set and then by classifier; every set has all classifiers.
        class_names: in the order of the probability columns.
        made_for: by set, the classifier whose failures it is made of.

    Raises:
        DataError: if there is nothing to compare, or a set lacks a classifier.
    """
    models = tuple(next(iter(answers.values()), {}))
    if not models or any(tuple(own) != models for own in answers.values()):
        raise DataError(
            "Every set must be put to the same classifiers.",
            given={name: list(own) for name, own in answers.items()},
        )
    origin = dict(made_for or {})
    cells = tuple(
        _cell(name, model, found, class_names, is_own=origin.get(name) == model)
        for name, own in answers.items()
        for model, found in own.items()
    )
    return TransferMatrix(
        sets=tuple(answers), models=models, made_for=origin, cells=cells, n_classes=len(class_names)
    )


def _cell(
    set_name: str, model: str, answers: Answers, class_names: Sequence[str], *, is_own: bool
) -> SetOnModel:
    is_known = np.isfinite(answers[0]).all(axis=1)
    probabilities, labels = answers[0][is_known], answers[1][is_known]
    n_wrong, n_wrong_of_top = (
        int(criterion.failed_predictions(probabilities, labels, class_names).sum())
        for criterion in (FailureCriterion(kind="top-1"), FailureCriterion(kind="top-k", k=TOP))
    )
    return SetOnModel(
        set_name=set_name,
        model=model,
        is_own=is_own,
        n_images=len(labels),
        n_wrong=n_wrong,
        n_wrong_of_top=n_wrong_of_top,
        interval=_interval(n_wrong, len(labels)),
        interval_of_top=_interval(n_wrong_of_top, len(labels)),
    )


def _interval(n_wrong: int, n_images: int) -> Interval:
    low, high = wilson_interval(n_wrong, n_images, level=LEVEL)
    return Interval(low=low, high=high, level=LEVEL)
