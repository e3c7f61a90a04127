"""Whether the classifier is clearly more often right when images are prepared in another usual way.

A way is chosen on some images and tried on others, so that trying a dozen ways costs no trust.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.preprocessing import Preprocessing
from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.errors import ModelError
from weakspot.core.preflight import CheckState, PreflightCheck
from weakspot.core.roles import Classifier
from weakspot.core.statistics import exact_interval, mcnemar_p
from weakspot.report.wording import percent

CHECK = "preprocessing"
N_CHOSEN_ON = 40
LEAST_IMAGES = 24
LARGEST_P = 0.001
SMALLEST_GAIN = 0.1
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


@dataclass(frozen=True, kw_only=True, eq=False)
class BetterWay:
    """A clearly better way to prepare images.

    Args:
        options: what to change in the classifier's options.
        accuracy: share of images that are right then.
    """

    options: dict[str, Any]
    accuracy: float


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
    if given is None or len(images) < LEAST_IMAGES:
        return None, None
    trial = _Trial(classifier=classifier, images=images, labels=labels, codes=codes)
    chosen_on = slice(0, min(N_CHOSEN_ON, len(images) // 2))
    tried_on = slice(chosen_on.stop, None)
    now = np.asarray(predictions == labels)
    lowest = exact_interval(int(now.sum()), len(now))[0]
    if lowest >= GOOD_ENOUGH:
        said = f"{percent(float(now.mean()))} of {len(now)} images are right as they are prepared."
        return PreflightCheck(check=CHECK, state=CheckState.OK, sentence=said), None
    best, most, n_tried = _best(trial, given, chosen_on, int(now[chosen_on].sum()))
    if best is not None and most / chosen_on.stop >= now[chosen_on].mean() + SMALLEST_GAIN / 2:
        then = trial.right(best.preprocessing, tried_on)
        before = now[tried_on]
        p_value = mcnemar_p(int((then & ~before).sum()), int((before & ~then).sum()))
        if p_value <= LARGEST_P and then.mean() - before.mean() >= SMALLEST_GAIN:
            way = BetterWay(options=best.changes(given), accuracy=float(then.mean()))
            return _problem(best, before, then), way
    said = f"None of {n_tried} other usual ways to prepare images is clearly better."
    return PreflightCheck(check=CHECK, state=CheckState.OK, sentence=said), None


def _best(
    trial: "_Trial", given: Preprocessing, where: slice, least: int
) -> tuple[Variant | None, int, int]:
    """Return the variant with most right answers, how many those are, and how many variants were tried."""
    tried = [
        (trial.n_right(variant.preprocessing, where), variant) for variant in colour_variants(given)
    ]
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
    tried += [(trial.n_right(variant.preprocessing, where), variant) for variant in ways]
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Trial:
    classifier: Classifier
    images: Sequence[Image.Image]
    labels: IntArray
    codes: IntArray

    def n_right(self, preprocessing: Preprocessing, where: slice) -> int:
        return int(self.right(preprocessing, where).sum())

    def right(self, preprocessing: Preprocessing, where: slice) -> BoolArray:
        """Return which of the images are classified rightly when they are prepared like this.

        None is if the classifier has no answer, as it may be with numbers it was not made for.
        """
        labels = self.labels[where]
        try:
            outputs = self._outputs(preprocessing, self.images[where])
        except ModelError:
            return np.zeros(len(labels), dtype=np.bool_)
        return np.asarray(self.codes[outputs] == labels)

    def _outputs(self, preprocessing: Preprocessing, images: Sequence[Image.Image]) -> IntArray:
        waiting = iter(images)
        found: list[IntArray] = []
        while batch := list(islice(waiting, BATCH)):
            answer = self.classifier.classify([preprocessing.apply(image) for image in batch])
            found.append(np.argmax(answer.probabilities, axis=1))
        return np.concatenate(found)


def _problem(best: Variant, before: BoolArray, then: BoolArray) -> PreflightCheck:
    now, better = percent(float(before.mean())), percent(float(then.mean()))
    others = f"; as good: {', '.join(best.others)}" if best.others else ""
    return PreflightCheck(
        check=CHECK,
        state=CheckState.PROBLEM,
        sentence=f"Images are prepared in another way than the classifier expects: {now} right as set, {better} with {best.words} "
        f"({len(then)} images that this was not chosen on{others}).",
        fix="Prepare images as in the training.",
        short=f"{better} instead of {now} right with {best.words}",
    )
