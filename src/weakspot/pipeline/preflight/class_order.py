"""Whether predictions fit the labels far better once the classes are put in another order.

A usual mistake is tried on all samples; any other order is chosen on one half and tried on the other. A classifier that is merely bad
fits no order; a class that fails as a whole fits one that is wrong for the class whose place it takes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.preflight import CheckState, PreflightCheck
from weakspot.core.statistics import mcnemar_p
from weakspot.pipeline.preflight.answers import LabelledAnswers
from weakspot.report.wording import percent

CHECK = "class order"
LARGEST_P = 0.001
SMALLEST_GAIN = 0.2
"""So much more must be right under another order, as a share of the samples that it was not chosen on."""
SHARE_MOVED = 0.5
"""An order of all classes is wrong only if it moves so many of those that have samples; fewer may be confused ones."""
N_USUAL = 7
SHARE_WORSE = 0.2
"""At most so many of the moved classes may be right less often than before."""
LEAST_ELSEWHERE = 3
"""So many more must be right outside the class that gains most: one class that fails says nothing of the others."""
LEAST_SAMPLES = 12
LEAST_IN_A_SPLIT = 20
EXCHANGED_RECALL = 0.8
LEAST_EXCHANGED = 10
_NUMBERS = re.compile(r"(\d+)")
_PAIR = 2
_MOST_NAMED = 4
_MOST_FITTED_CLASSES = 2000


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassOrder:
    """What the outputs mean, if they mean something else than they are called.

    Args:
        meant: for every class code, the code of the class that a prediction of it means [c].
        words: the order in words.
        is_usual: whether it is one of the usual mistakes, and not made from the samples.
        accuracy: share of samples that are right in this order, if it was tried.
    """

    meant: IntArray
    words: str
    is_usual: bool = False
    accuracy: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    """How an order does on the samples that it was not chosen on."""

    n_samples: int
    n_named: int
    n_meant: int
    p_value: float

    @property
    def gain(self) -> float:
        return (self.n_meant - self.n_named) / max(self.n_samples, 1)


def check_class_order(
    answers: LabelledAnswers, outputs: Sequence[str]
) -> tuple[PreflightCheck | None, ClassOrder | None]:
    """Return what is to be said of the order of classes, and the order that fits if all are wrong; None with too few samples.

    Args:
        answers: labels and predictions.
        outputs: the classes in the order of the classifier's outputs; usual mistakes are tried on it.
    """
    if len(answers) < LEAST_SAMPLES:
        return None, None
    chosen_on, tried_on = _halves(answers)
    order = _best_order(chosen_on, outputs)
    if order is None:
        return _fine(answers), None
    # Usual mistakes are few and known beforehand, so that all samples may be asked, with a correction for their number.
    tried_on, n_orders = (answers, N_USUAL) if order.is_usual else (tried_on, 1)
    fit = _fit(tried_on, order)
    if n_orders * fit.p_value > LARGEST_P or fit.gain <= 0:
        return _fine(answers), None
    if _is_wrong_order(tried_on, order, fit):
        return _problem(order, fit), replace(order, accuracy=fit.n_meant / fit.n_samples)
    return _exchanged(answers, order) or _fine(answers), None


def named_outputs(
    order: ClassOrder, outputs: Sequence[str], class_names: Sequence[str]
) -> tuple[str, ...]:
    """Return the right names of the outputs, in their order."""
    code = {name: number for number, name in enumerate(class_names)}
    return tuple(class_names[order.meant[code[name]]] for name in outputs)


def _halves(answers: LabelledAnswers) -> tuple[LabelledAnswers, LabelledAnswers]:
    """Return two halves in which every class, in training and evaluation, has as many samples."""
    by_class = np.lexsort((answers.labels, answers.is_training))
    is_first = np.zeros(len(answers), dtype=np.bool_)
    is_first[by_class[::2]] = True
    return answers.only(is_first), answers.only(~is_first)


def _best_order(answers: LabelledAnswers, outputs: Sequence[str]) -> ClassOrder | None:
    """Return the order that most predictions fit, a usual mistake rather than any other; None if no order fits better."""
    best, most = None, int(answers.is_right.sum())
    for order in (*_usual_orders(answers.class_names, outputs), *_fitted_order(answers)):
        n_right = int((order.meant[answers.predictions] == answers.labels).sum())
        if n_right > most:
            best, most = order, n_right
    return best


def _usual_orders(class_names: Sequence[str], outputs: Sequence[str]) -> Iterator[ClassOrder]:
    code = {name: number for number, name in enumerate(class_names)}
    if len(outputs) != len(class_names) or set(outputs) != set(class_names):
        return
    listed = list(outputs)
    orders = {
        "the outputs are in reverse order": listed[::-1],
        "every output means the class after it": [*listed[1:], listed[0]],
        "every output means the class before it": [listed[-1], *listed[:-1]],
        "the outputs are in alphabetical order": sorted(listed),
        "the outputs are in alphabetical order, capitals like small letters": sorted(
            listed, key=lambda name: (name.casefold(), name)
        ),
        "the outputs are in the order of their numbers": sorted(listed, key=_by_numbers),
        "the outputs are in the order of the data's classes": list(class_names),
    }
    for words, names in orders.items():
        if names != listed:
            meant = np.arange(len(class_names))
            for called, means in zip(listed, names, strict=True):
                meant[code[called]] = code[means]
            yield ClassOrder(meant=meant, words=words, is_usual=True)


def _by_numbers(name: str) -> tuple[tuple[int, int, str], ...]:
    parts = _NUMBERS.split(name)
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)


def _fitted_order(answers: LabelledAnswers) -> Iterator[ClassOrder]:
    """Yield the one-to-one order that most samples fit; what they leave open stays as it is named."""
    from scipy.optimize import linear_sum_assignment

    n_classes = len(answers.class_names)
    if n_classes > _MOST_FITTED_CLASSES:
        return
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (answers.predictions, answers.labels), 1.0)
    _, meant = linear_sum_assignment(counts + 0.5 * np.eye(n_classes) / n_classes, maximize=True)
    names = answers.class_names
    moved = [code for code in np.flatnonzero(meant != np.arange(n_classes)) if counts[code].any()]
    pairs = [f"{names[code]} means {names[meant[code]]}" for code in moved]
    more = f" and {len(pairs) - _MOST_NAMED} more" if len(pairs) > _MOST_NAMED else ""
    yield ClassOrder(meant=np.asarray(meant), words=", ".join(pairs[:_MOST_NAMED]) + more)


def _fit(answers: LabelledAnswers, order: ClassOrder) -> _Fit:
    named = answers.is_right
    meant = order.meant[answers.predictions] == answers.labels
    return _Fit(
        n_samples=len(answers),
        n_named=int(named.sum()),
        n_meant=int(meant.sum()),
        p_value=mcnemar_p(int((meant & ~named).sum()), int((named & ~meant).sum())),
    )


def _is_wrong_order(answers: LabelledAnswers, order: ClassOrder, fit: _Fit) -> bool:
    n_each, named, meant = _per_class(answers, order)
    is_moved = _moved(order) & (n_each > 0)
    n_moved, n_seen = int(is_moved.sum()), int((n_each > 0).sum())
    if n_moved < max(_PAIR, SHARE_MOVED * n_seen) or fit.gain < SMALLEST_GAIN:
        return False
    if n_moved == _PAIR < n_seen and not _are_exchanged(n_each, named, meant, is_moved):
        # Two classes that look alike may be confused more often than not.
        return False
    if _is_learnt(answers.only(answers.is_training), order):
        return True
    gained = (meant - named)[is_moved]
    gains = gained / n_each[is_moved]
    return (
        gained.sum() - gained.max() >= LEAST_ELSEWHERE
        and gains.mean() >= SMALLEST_GAIN
        and (gains < 0).mean() <= SHARE_WORSE
        and all(_gains(answers.only(part), order) for part in _parts(answers))
    )


def _is_learnt(training: LabelledAnswers, order: ClassOrder) -> bool:
    """Return whether training images are right under the order and wrong as named.

    Whatever evaluation looks like, a classifier knows what it was trained on.
    """
    if len(training) < LEAST_IN_A_SPLIT:
        return False
    n_each, named, meant = _per_class(training, order)
    return _are_exchanged(n_each, named, meant, _moved(order) & (n_each > 0))


def _parts(answers: LabelledAnswers) -> Iterator[BoolArray]:
    """Yield training and evaluation samples: a wrong order is wrong in both, another kind of image is not."""
    for part in (answers.is_training, ~answers.is_training):
        if part.sum() >= LEAST_IN_A_SPLIT:
            yield part


def _gains(answers: LabelledAnswers, order: ClassOrder) -> bool:
    fit = _fit(answers, order)
    return fit.n_meant > fit.n_named


def _moved(order: ClassOrder) -> BoolArray:
    """Return which classes, by their true code, are predicted under another name [c]."""
    is_moved = np.zeros(len(order.meant), dtype=np.bool_)
    is_moved[order.meant[order.meant != np.arange(len(order.meant))]] = True
    return is_moved


def _per_class(answers: LabelledAnswers, order: ClassOrder) -> tuple[IntArray, IntArray, IntArray]:
    """Return samples of every class, those right as named, and those right under the order, each [c]."""
    n_classes = len(answers.class_names)
    meant = order.meant[answers.predictions] == answers.labels
    return (
        np.bincount(answers.labels, minlength=n_classes),
        np.bincount(answers.labels[answers.is_right], minlength=n_classes),
        np.bincount(answers.labels[meant], minlength=n_classes),
    )


def _exchanged(answers: LabelledAnswers, order: ClassOrder) -> PreflightCheck | None:
    """Say which few classes look exchanged: worth a look, but a classifier can be that wrong, too."""
    n_each, named, meant = _per_class(answers, order)
    is_moved = _moved(order) & (n_each > 0)
    if not _are_exchanged(n_each, named, meant, is_moved):
        return None
    names = ", ".join(
        answers.class_names[code] for code in np.flatnonzero(is_moved)[: 2 * _MOST_NAMED]
    )
    return PreflightCheck(
        check=CHECK,
        state=CheckState.NOTICE,
        sentence=f"{names} look exchanged: nearly every one is taken for another of them.",
        fix="Compare the order of class_names, and the labels, with those of the training.",
        short=f"{names} look exchanged",
    )


def _are_exchanged(n_each: IntArray, named: IntArray, meant: IntArray, is_moved: BoolArray) -> bool:
    """Return whether nearly every sample of every moved class is taken for the one that the order says."""
    n_moved = n_each[is_moved]
    return bool(
        len(n_moved)
        and n_moved.min() >= LEAST_EXCHANGED
        and (meant[is_moved] >= EXCHANGED_RECALL * n_moved).all()
        and (named[is_moved] <= (1 - EXCHANGED_RECALL) / 2 * n_moved).all()
    )


def _problem(order: ClassOrder, fit: _Fit) -> PreflightCheck:
    as_named, as_meant = percent(fit.n_named / fit.n_samples), percent(fit.n_meant / fit.n_samples)
    return PreflightCheck(
        check=CHECK,
        state=CheckState.PROBLEM,
        sentence=f"The class names are in the wrong order: {as_named} right as named, {as_meant} if {order.words} "
        f"({fit.n_samples:,} samples{'' if order.is_usual else ' that this was not chosen on'}).",
        fix="Name the outputs in their own order.",
        short="class names in the wrong order",
    )


def _fine(answers: LabelledAnswers) -> PreflightCheck:
    return PreflightCheck(
        check=CHECK,
        state=CheckState.OK,
        sentence=f"No other order of the classes fits {len(answers)} labelled images clearly better.",
    )
