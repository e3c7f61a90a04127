"""The same image with one thing changed: how much more often does the classifier fail?"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from pydantic import Field

from weakspot.core.arrays import BoolArray
from weakspot.core.evidence import Interval, Share
from weakspot.core.record import Record
from weakspot.generation.search.sequential import rate_interval
from weakspot.generation.search.sequential.paired import (
    change_p,
    first_pairs,
    sequential_change_interval,
)
from weakspot.lexicon.captions import Caption, noun_of, plain_caption

_PREPOSITIONS = re.compile(
    r"(on|in|at|by|under|over|behind|among|with|near|beside|inside|outside|against|between|upon|above|below|without)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"^(it|its|there|the|a|an)\b.*\b(is|are|has|have|lies|sits|stands)\b", re.IGNORECASE
)


class CounterfactualRate(Record):
    """How often the classifier fails on images of one caption, beside the same images without it.

    Args:
        caption: what was asked for; empty for the unchanged images.
        prompt: the words the images were made from.
        share: failures among the pairs.
        pairs: images that passed the quality check with and without the change. An unchanged image that is a near-duplicate of another
            shows the same thing again, and does not count twice.
        gained: pairs that fail only with it.
        lost: pairs that fail only without it.
        change: of the failure rate over the pairs.
        parents: different objects among the pairs; each counts once in intervals and p-values.
        change_interval: of that; it holds however often more images are asked for.
        p_value: two-sided, that there is no change; it holds however often more images are asked for.
        p_after_looks: multiplied by what this caption costs among all that were ever put to this class with this generator.
        wrong_labels: what failures were taken for.
        rejected: images that a quality check rejected, by quality check.
        note: why there is no figure, if there is none.
    """

    caption: str
    prompt: str
    share: Share
    pairs: int = 0
    gained: int = 0
    lost: int = 0
    change: float = 0.0
    parents: int = 0
    change_interval: Interval | None = None
    p_value: float = 1.0
    p_after_looks: float = 1.0
    wrong_labels: dict[str, int] = Field(default_factory=dict)
    rejected: dict[str, int] = Field(default_factory=dict)
    note: str = ""


class CounterfactualSeries(Record):
    """A series of captions on the same images.

    Args:
        class_name: what the images show.
        criterion: what counts as a failure, in words.
        generator_id: who made the images.
        classifier_id: who was asked about them.
        seed: of the series.
        n_each: images asked for, for every caption.
        n_looks: different captions that were ever put to this class with this generator.
        baseline: the unchanged images.
        rates: one entry a caption, in the request given.
        notes: what to know about it.
    """

    class_name: str
    criterion: str
    generator_id: str
    classifier_id: str
    seed: int
    n_each: int
    n_looks: int
    baseline: CounterfactualRate
    rates: tuple[CounterfactualRate, ...]
    notes: tuple[str, ...] = ()


def counterfactual_prompt(class_name: str, words: str) -> str:
    """Return the prompt that shows a class as some words say: a place, a property, a sentence, or a whole prompt.

    >>> [counterfactual_prompt("apple", words) for words in ("on grass", "green", "it is dark", "an apple in a box")]
    ['a photo of an apple on grass', 'a photo of a green apple', 'a photo of an apple. it is dark.', 'an apple in a box']
    """
    plain, said = plain_caption(class_name), words.strip().rstrip(".")
    if not said:
        return plain.phrase
    if re.search(rf"\b{re.escape(noun_of(class_name))}", said, re.IGNORECASE):
        return said
    if _PREPOSITIONS.match(said):
        return replace(plain, place=said).phrase
    if _SENTENCE.match(said):
        return f"{plain.phrase}. {said}."
    return Caption(noun=plain.noun, adjective=said).phrase


def paired_rate(
    caption: str,
    prompt: str,
    before: Sequence[bool | None],
    after: Sequence[bool | None],
    *,
    price: float = 1.0,
    parents: Sequence[Hashable] | None = None,
) -> CounterfactualRate:
    """Return the rate of a caption beside the same images without it.

    Args:
        caption: what was changed.
        prompt: the words.
        before: by place of the series whether the unchanged image fails; None where there is none.
        after: the same with the change.
        price: what the p-value is multiplied by for all captions that were ever asked about.
        parents: the object at every place; None if each shows another.
    """
    first, second = _columns(first_pairs(before, after))
    own_first, own_second = _columns(first_pairs(before, after, parents))
    gained, lost = int((second & ~first).sum()), int((first & ~second).sum())
    own_gained, own_lost = (
        int((own_second & ~own_first).sum()),
        int((own_first & ~own_second).sum()),
    )
    change = (gained - lost) / len(first) if len(first) else 0.0
    low, high = sequential_change_interval(own_gained, own_lost, len(own_first))
    p_value = change_p(own_gained, own_lost, len(own_first))
    return CounterfactualRate(
        caption=caption,
        prompt=prompt,
        share=_share(second, own_second),
        pairs=len(first),
        parents=len(own_first),
        gained=gained,
        lost=lost,
        change=change,
        change_interval=Interval(low=min(low, change), high=max(high, change)),
        p_value=p_value,
        p_after_looks=min(1.0, p_value * price),
    )


def _share(failed: BoolArray, own_failed: BoolArray) -> Share:
    """Return the share of failures with an interval that counts every object once and holds at all times."""
    found = Share.of(int(failed.sum()), len(failed))
    low, high = rate_interval(int(own_failed.sum()), len(own_failed))
    interval = Interval(low=min(low, found.value), high=max(high, found.value))
    return found.model_copy(update={"interval": interval}) if len(failed) else found


def _columns(pairs: Sequence[tuple[bool, bool]]) -> tuple[BoolArray, BoolArray]:
    table = np.array(pairs, dtype=np.bool_).reshape(len(pairs), 2)
    return table[:, 0], table[:, 1]
