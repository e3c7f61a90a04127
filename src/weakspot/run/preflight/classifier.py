"""The classifier on a few labelled images: how often it is right.

And whether another order of classes or another preparation of images fits better.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import ModelError
from weakspot.core.roles import Classifier
from weakspot.core.run import CheckState, PreflightCheck
from weakspot.core.statistics import exact_interval, fisher_p, mcnemar_p
from weakspot.models.preprocessing import Preprocessing
from weakspot.report.wording import percent
from weakspot.run.preflight.source_look import (
    LabelledImage,
    SourceLook,
    fine,
    read_labelled_images,
)
from weakspot.run.settings import PartSettings, Settings, toml_value


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledAnswers:
    """Labels and predictions of one task with one label a sample.

    Args:
        class_names: what the codes mean.
        labels: true class of every sample [n].
        predictions: predicted class of every sample [n].
        is_training: which samples are in the split train [n].
    """

    class_names: tuple[str, ...]
    labels: IntArray
    predictions: IntArray
    is_training: BoolArray

    def __len__(self) -> int:
        return len(self.labels)

    def only(self, chosen: BoolArray) -> "LabelledAnswers":
        return replace(
            self,
            labels=self.labels[chosen],
            predictions=self.predictions[chosen],
            is_training=self.is_training[chosen],
        )

    @property
    def is_right(self) -> BoolArray:
        return np.asarray(self.labels == self.predictions)


def answers_of(dataset: Dataset, splits: tuple[str, ...]) -> LabelledAnswers | None:
    """Return what is known of the training samples and of those that are evaluated; None where the checks do not apply."""
    if dataset.task is not Task.SINGLE_LABEL or dataset.predictions is None:
        return None
    rows = dataset.rows_of(Split.TRAIN, *[Split(name) for name in splits])
    predictions = np.asarray(dataset.predictions)[rows]
    known = (dataset.labels[rows] >= 0) & (predictions >= 0)
    rows, predictions = rows[known], predictions[known]
    return LabelledAnswers(
        class_names=dataset.class_names,
        labels=dataset.labels[rows],
        predictions=predictions,
        is_training=np.isin(rows, dataset.rows_of(Split.TRAIN)),
    )


ACCURACY_CHECK = "accuracy"
MIN_ACCURACY_SAMPLES = 20
MAX_P = 0.001
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
    if min(len(seen), len(held)) < MIN_ACCURACY_SAMPLES:
        return None
    wrong_seen, wrong_held = (int((~part.is_right).sum()) for part in (seen, held))
    gap = wrong_held / len(held) - wrong_seen / len(seen)
    if (
        gap <= -WORSE_IN_TRAINING
        and fisher_p(wrong_seen, len(seen), wrong_held, len(held)) <= MAX_P
    ):
        return PreflightCheck(
            check=ACCURACY_CHECK,
            state=CheckState.NOTICE,
            sentence=f"{said}: train is hardly what the classifier was trained on.",
            fix="Name the split of the samples that it was trained on train, and only that.",
            short="worse in training than in evaluation",
        )
    if (
        gap >= FAR_BETTER_IN_TRAINING
        and fisher_p(wrong_held, len(held), wrong_seen, len(seen)) <= MAX_P
    ):
        return PreflightCheck(
            check=ACCURACY_CHECK,
            state=CheckState.NOTICE,
            sentence=f"{said}: the evaluation images are of another kind, or the classifier learned its training by heart.",
            short=f"{percent(float(seen.is_right.mean()))} right in training, {percent(float(held.is_right.mean()))} in evaluation",
        )
    return None


def _against_guessing(held: LabelledAnswers, said: str) -> PreflightCheck:
    guessed = np.bincount(held.labels).max() / len(held)
    highest = exact_interval(int(held.is_right.sum()), len(held))[1]
    if len(held) >= MIN_ACCURACY_SAMPLES and highest < guessed:
        return PreflightCheck(
            check=ACCURACY_CHECK,
            state=CheckState.NOTICE,
            sentence=f"{said}: always naming the most frequent class would be right on {percent(guessed)}.",
            fix="Make sure that this classifier belongs to these classes and images.",
            short="worse than guessing",
        )
    return fine(ACCURACY_CHECK, f"{said}.")


CLASS_ORDER_CHECK = "class order"

MIN_ORDER_GAIN = 0.2
"""So much more must be right under another order, as a share of the samples that it was not chosen on."""
SHARE_MOVED = 0.5
"""An order of all classes is wrong only if it moves so many of those that have samples; fewer may be confused ones."""
N_USUAL = 7
SHARE_WORSE = 0.2
"""At most so many of the moved classes may be right less often than before."""
MIN_ELSEWHERE = 3
"""So many more must be right outside the class that gains most: one class that fails says nothing of the others."""
MIN_ORDER_SAMPLES = 12
MIN_IN_A_SPLIT = 20
EXCHANGED_RECALL = 0.8
MIN_EXCHANGED = 10
_NUMBERS = re.compile(r"(\d+)")
_PAIR = 2
_MAX_NAMED = 4
_MAX_FITTED_CLASSES = 2000


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
    if len(answers) < MIN_ORDER_SAMPLES:
        return None, None
    chosen_on, tried_on = _halves(answers)
    order = _best_order(chosen_on, outputs)
    if order is None:
        return _fine(answers), None
    # Usual mistakes are few and known beforehand, so that all samples may be asked, with a correction for their number.
    tried_on, n_orders = (answers, N_USUAL) if order.is_usual else (tried_on, 1)
    fit = _fit(tried_on, order)
    if n_orders * fit.p_value > MAX_P or fit.gain <= 0:
        return _fine(answers), None
    if _is_wrong_order(tried_on, order, fit):
        return _order_problem(order, fit), replace(order, accuracy=fit.n_meant / fit.n_samples)
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
    if n_classes > _MAX_FITTED_CLASSES:
        return
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (answers.predictions, answers.labels), 1.0)
    _, meant = linear_sum_assignment(counts + 0.5 * np.eye(n_classes) / n_classes, maximize=True)
    names = answers.class_names
    moved = [code for code in np.flatnonzero(meant != np.arange(n_classes)) if counts[code].any()]
    pairs = [f"{names[code]} means {names[meant[code]]}" for code in moved]
    more = f" and {len(pairs) - _MAX_NAMED} more" if len(pairs) > _MAX_NAMED else ""
    yield ClassOrder(meant=np.asarray(meant), words=", ".join(pairs[:_MAX_NAMED]) + more)


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
    if n_moved < max(_PAIR, SHARE_MOVED * n_seen) or fit.gain < MIN_ORDER_GAIN:
        return False
    if n_moved == _PAIR < n_seen and not _are_exchanged(n_each, named, meant, is_moved):
        # Two classes that look alike may be confused more often than not.
        return False
    if _is_learnt(answers.only(answers.is_training), order):
        return True
    gained = (meant - named)[is_moved]
    gains = gained / n_each[is_moved]
    return (
        gained.sum() - gained.max() >= MIN_ELSEWHERE
        and gains.mean() >= MIN_ORDER_GAIN
        and (gains < 0).mean() <= SHARE_WORSE
        and all(_gains(answers.only(part), order) for part in _parts(answers))
    )


def _is_learnt(training: LabelledAnswers, order: ClassOrder) -> bool:
    """Return whether training images are right under the order and wrong as named.

    Whatever evaluation looks like, a classifier knows what it was trained on.
    """
    if len(training) < MIN_IN_A_SPLIT:
        return False
    n_each, named, meant = _per_class(training, order)
    return _are_exchanged(n_each, named, meant, _moved(order) & (n_each > 0))


def _parts(answers: LabelledAnswers) -> Iterator[BoolArray]:
    """Yield training and evaluation samples: a wrong order is wrong in both, another kind of image is not."""
    for part in (answers.is_training, ~answers.is_training):
        if part.sum() >= MIN_IN_A_SPLIT:
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
        answers.class_names[code] for code in np.flatnonzero(is_moved)[: 2 * _MAX_NAMED]
    )
    return PreflightCheck(
        check=CLASS_ORDER_CHECK,
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
        and n_moved.min() >= MIN_EXCHANGED
        and (meant[is_moved] >= EXCHANGED_RECALL * n_moved).all()
        and (named[is_moved] <= (1 - EXCHANGED_RECALL) / 2 * n_moved).all()
    )


def _order_problem(order: ClassOrder, fit: _Fit) -> PreflightCheck:
    as_named, as_meant = percent(fit.n_named / fit.n_samples), percent(fit.n_meant / fit.n_samples)
    return PreflightCheck(
        check=CLASS_ORDER_CHECK,
        state=CheckState.PROBLEM,
        sentence=f"The class names are in the wrong order: {as_named} right as named, {as_meant} if {order.words} "
        f"({fit.n_samples:,} samples{'' if order.is_usual else ' that this was not chosen on'}).",
        fix="Name the outputs in their own order.",
        short="class names in the wrong order",
    )


def _fine(answers: LabelledAnswers) -> PreflightCheck:
    return fine(
        CLASS_ORDER_CHECK,
        f"No other order of the classes fits {len(answers)} labelled images clearly better.",
    )


PREPROCESSING_CHECK = "preprocessing"
N_CHOSEN_ON = 40
MIN_IMAGES = 24

MIN_PREPROCESSING_GAIN = 0.1
GOOD_ENOUGH = 0.9
"""With so many right for certain, no other way can be clearly better, and none is tried."""
WORTH_A_CHANGE = 2.0
"""So many more right answers, of those that a way is chosen on, are worth one more change."""
BATCH = 16
CROP_RATIO = 256 / 224

NORMALISATIONS: Mapping[str, tuple[float, tuple[float, ...], tuple[float, ...]]] = {
    "pixels from 0 to 1": (1 / 255, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "pixels from 0 to 255": (1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "mean and std of ImageNet": (1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "pixels from -1 to 1": (1 / 255, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "mean and std of CLIP": (
        1 / 255,
        (0.48145466, 0.4578275, 0.40821073),
        (0.26862954, 0.26130258, 0.27577711),
    ),
}
CAFFE = (1.0, (103.939, 116.779, 123.68), (1.0, 1.0, 1.0))


BetterWay = tuple[dict[str, Any], float]
"""What to change in the classifier's options, and the share of images that are right then."""
Right = Callable[[Preprocessing, slice], BoolArray]
"""Which of some images are classified rightly when they are prepared in a way."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Variant:
    """Another way to prepare images.

    Args:
        words: what is different, in words.
        preprocessing: all of it.
        n_changes: how many of channels, numbers and crop are different.
        others: ways that did as well where this one was chosen, in words.
    """

    words: str
    preprocessing: Preprocessing
    n_changes: int = 1
    others: tuple[str, ...] = ()

    def changes(self, given: Preprocessing) -> dict[str, Any]:
        """Return the settings that differ from those given."""
        before, after = given.as_settings(), self.preprocessing.as_settings()
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in after.items()
            if value != before[name]
        }


def preprocessing_of(classifier: Classifier | None) -> Preprocessing | None:
    """Return how a classifier's images are prepared, if weakspot prepares them."""
    known = getattr(classifier, "preprocessing", None)
    return known if isinstance(known, Preprocessing) else None


def colour_variants(given: Preprocessing) -> Iterator[Variant]:
    """Yield other orders and scales of colours, those with fewest changes first."""
    other_colour = {"rgb": "bgr", "bgr": "rgb"}.get(given.colour)
    if other_colour is not None:
        words = f"channels in the order {other_colour.upper()}"
        yield Variant(words=words, preprocessing=replace(given, colour=other_colour))
    if given.dtype == "uint8":
        return
    known = (given.scale, given.mean, given.std)
    others = {words: numbers for words, numbers in NORMALISATIONS.items() if numbers != known}
    for words, (scale, mean, std) in others.items():
        yield Variant(words=words, preprocessing=replace(given, scale=scale, mean=mean, std=std))
    if other_colour is None:
        return
    for words, (scale, mean, std) in others.items():
        changed = replace(given, scale=scale, mean=mean, std=std, colour=other_colour)
        said = f"{words}, {other_colour.upper()}"
        yield Variant(words=said, preprocessing=changed, n_changes=2)
    if known != CAFFE:
        scale, mean, std = CAFFE
        changed = replace(given, scale=scale, mean=mean, std=std, colour="bgr")
        yield Variant(words="BGR from 0 to 255 less the mean, as in Caffe", preprocessing=changed)


def crop_variants(given: Preprocessing) -> Iterator[Variant]:
    """Yield other ways from an image to the size that the network takes."""
    whole = max(given.height, given.width)
    side = round(CROP_RATIO * whole)
    ways = {
        "whole images squeezed": replace(given, crop="none"),
        "the centre cut out": replace(given, crop="centre", resize_side=whole),
        f"the centre cut out of images of {side} pixels": replace(
            given, crop="centre", resize_side=side
        ),
    }
    for words, changed in ways.items():
        if _fit_of(changed) != _fit_of(given):
            yield Variant(words=words, preprocessing=changed)


def _fit_of(given: Preprocessing) -> tuple[str, int]:
    side = given.resize_side or max(given.height, given.width)
    return given.crop, 0 if given.crop == "none" else side


def check_preprocessing(
    classifier: Classifier,
    images: Sequence[Image.Image],
    labels: IntArray,
    codes: IntArray,
    predictions: IntArray,
) -> tuple[PreflightCheck | None, BetterWay | None]:
    """Return what is to be said of how images are prepared, and the way that is better; None if it cannot be told.

    Args:
        classifier: the model.
        images: decoded, in random order.
        labels: their true classes [n].
        codes: what every output of the classifier means [c].
        predictions: what it said of the images as they are prepared now [n].
    """
    given = preprocessing_of(classifier)
    if given is None or len(images) < MIN_IMAGES:
        return None, None
    right = partial(_right, classifier, images, labels, codes)
    chosen_on = slice(0, min(N_CHOSEN_ON, len(images) // 2))
    tried_on = slice(chosen_on.stop, None)
    now = np.asarray(predictions == labels)
    lowest = exact_interval(int(now.sum()), len(now))[0]
    if lowest >= GOOD_ENOUGH:
        said = f"{percent(float(now.mean()))} of {len(now)} images are right as they are prepared."
        return fine(PREPROCESSING_CHECK, said), None
    best, most, n_tried = _best(right, given, chosen_on, int(now[chosen_on].sum()))
    if (
        best is not None
        and most / chosen_on.stop >= now[chosen_on].mean() + MIN_PREPROCESSING_GAIN / 2
    ):
        then = right(best.preprocessing, tried_on)
        before = now[tried_on]
        p_value = mcnemar_p(int((then & ~before).sum()), int((before & ~then).sum()))
        if p_value <= MAX_P and then.mean() - before.mean() >= MIN_PREPROCESSING_GAIN:
            way = best.changes(given), float(then.mean())
            return _preprocessing_problem(best, before, then), way
    said = f"None of {n_tried} other usual ways to prepare images is clearly better."
    return fine(PREPROCESSING_CHECK, said), None


def _best(
    right: Right, given: Preprocessing, where: slice, least: int
) -> tuple[Variant | None, int, int]:
    """Return the variant with most right answers, how many those are, and how many variants were tried."""

    def tried_with(variants: Iterable[Variant]) -> list[tuple[int, Variant]]:
        return [(int(right(one.preprocessing, where).sum()), one) for one in variants]

    tried = tried_with(colour_variants(given))
    ways = list(crop_variants(given))
    if tried:
        first = max(tried, key=_score)[1]
        ways += [
            Variant(
                words=f"{first.words}, {way.words}",
                preprocessing=way.preprocessing,
                n_changes=first.n_changes + 1,
            )
            for way in crop_variants(first.preprocessing)
        ]
    tried += tried_with(ways)
    n_right, best = max(tried, key=_score)
    if n_right <= least:
        return None, least, len(tried)
    alike = [
        variant.words
        for n_others, variant in tried
        if variant is not best and variant.n_changes == best.n_changes and n_others >= n_right - 1
    ]
    return replace(best, others=tuple(alike)), n_right, len(tried)


def _score(tried: tuple[int, Variant]) -> float:
    """Return how good a variant is: of two that are about as often right, the one with fewer changes is better."""
    n_right, variant = tried
    return n_right - WORTH_A_CHANGE * variant.n_changes


def _right(
    classifier: Classifier,
    images: Sequence[Image.Image],
    labels: IntArray,
    codes: IntArray,
    preprocessing: Preprocessing,
    where: slice,
) -> BoolArray:
    """Return which of the images are classified rightly when they are prepared like this.

    None is if the classifier has no answer, as it may be with numbers it was not made for.
    """
    try:
        outputs = np.argmax(_probabilities(classifier, images[where], preprocessing.apply), axis=1)
    except ModelError:
        return np.zeros(len(labels[where]), dtype=np.bool_)
    return np.asarray(codes[outputs] == labels[where])


def _probabilities(
    classifier: Classifier,
    images: Sequence[Image.Image],
    prepare: Callable[[Image.Image], AnyArray],
) -> FloatArray:
    """Return what a classifier says of images [n, c], a few at a time."""
    parts = [images[start : start + BATCH] for start in range(0, len(images), BATCH)]
    answers = [classifier.classify([prepare(image) for image in part]) for part in parts]
    return np.concatenate([np.asarray(answer.probabilities) for answer in answers])


def _preprocessing_problem(best: Variant, before: BoolArray, then: BoolArray) -> PreflightCheck:
    now, better = percent(float(before.mean())), percent(float(then.mean()))
    others = f"; as good: {', '.join(best.others)}" if best.others else ""
    return PreflightCheck(
        check=PREPROCESSING_CHECK,
        state=CheckState.PROBLEM,
        sentence=f"Images are prepared in another way than the classifier expects: {now} right as set, {better} with {best.words} "
        f"({len(then)} images that this was not chosen on{others}).",
        fix="Prepare images as in the training.",
        short=f"{better} instead of {now} right with {best.words}",
    )


AS_GOOD = 0.05
_NUMBER = re.compile(r"-?\d+")


def check_classifier(
    look: SourceLook, classifier: Classifier, settings: Settings
) -> tuple[PreflightCheck, ...]:
    """Return what a few labelled images say of class names, preprocessing and accuracy; nothing where they can say nothing."""
    if classifier.task is not Task.SINGLE_LABEL or not look.samples:
        return ()
    drawn = read_labelled_images(
        look, default_split=settings.data.default_split, image_side=classifier.image_side
    )
    answers, outputs = _answers(drawn, classifier, settings)
    if answers is None:
        return ()
    images = [image for image, _, _ in drawn]
    order_check, order = check_class_order(answers, outputs)
    code = {name: number for number, name in enumerate(answers.class_names)}
    codes = np.array([code[name] for name in outputs])
    prepared_check, way = check_preprocessing(
        classifier, images, answers.labels, codes, answers.predictions
    )
    if order is not None and way is not None and way[1] > order.accuracy - AS_GOOD:
        # Wrongly prepared images can be taken for one another class by class; what explains more is said.
        order_check = order = None
    elif order is not None:
        prepared_check, way = check_preprocessing(
            classifier,
            images,
            answers.labels,
            order.meant[codes],
            order.meant[answers.predictions],
        )
    if order_check is not None and order is not None:
        order_check = with_right_names(order_check, order, outputs, answers.class_names, settings)
    if prepared_check is not None and way is not None:
        prepared_check = _with_line(prepared_check, options_line(settings.classifier, way[0]))
    found = (order_check, prepared_check, check_accuracy(answers))
    return tuple(check for check in found if check is not None)


def with_right_names(
    check: PreflightCheck,
    order: ClassOrder,
    outputs: Sequence[str],
    class_names: Sequence[str],
    settings: Settings,
) -> PreflightCheck:
    """Return a check of the class order with the remedy: the right names of the outputs."""
    if check.state is not CheckState.PROBLEM:
        return check
    if not settings.classifier.name:
        fix = "Name the predictions anew, or hand the classifier over with its class_names in the order of its outputs."
        return check.model_copy(update={"fix": fix})
    names = list(named_outputs(order, outputs, class_names))
    return _with_line(check, options_line(settings.classifier, {"class_names": names}))


def options_line(part: PartSettings, changes: dict[str, Any]) -> str:
    """Return the options of a part with some of them changed, as they stand in weakspot.toml; empty if it is not configured."""
    return f"options = {toml_value({**part.options, **changes})}" if part.name else ""


def _with_line(check: PreflightCheck, line: str) -> PreflightCheck:
    fix = (
        f"{check.fix.rstrip('.')}: under [classifier] in weakspot.toml write" if line else check.fix
    )
    return check.model_copy(update={"fix": fix, "settings_line": line})


def _answers(
    drawn: Sequence[LabelledImage], classifier: Classifier, settings: Settings
) -> tuple[LabelledAnswers | None, tuple[str, ...]]:
    """Return what the classifier says, and the names of its outputs; None if names and outputs do not fit together."""
    labels = [label for _, label, _ in drawn]
    labelled = settings.data.class_names or _in_order(set(labels))
    outputs = classifier.class_names or labelled
    if not drawn or not set(labels) <= set(outputs) or len(set(outputs)) < len(outputs):
        return None, outputs
    predicted = _probabilities(classifier, [image for image, _, _ in drawn], classifier.prepare)
    if predicted.shape[1] != len(outputs):
        return None, outputs
    ordered = [name for name in labelled if name in outputs]
    names = tuple(dict.fromkeys([*ordered, *outputs]))
    code = {name: number for number, name in enumerate(names)}
    return LabelledAnswers(
        class_names=names,
        labels=np.array([code[label] for label in labels]),
        predictions=np.array([code[name] for name in outputs])[np.argmax(predicted, axis=1)],
        is_training=np.array([is_training for _, _, is_training in drawn], dtype=np.bool_),
    ), outputs


def _in_order(labels: set[str]) -> tuple[str, ...]:
    """Return labels as an ingest orders them: numbers by their value."""
    if all(_NUMBER.fullmatch(label) for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))
