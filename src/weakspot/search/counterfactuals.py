"""The same picture with one thing changed: how much more often does the classifier fail?"""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydantic import Field

from weakspot.core.arrays import BoolArray
from weakspot.core.evidence import Interval, Share
from weakspot.core.record import Record
from weakspot.core.statistics import change_interval, mcnemar_p
from weakspot.lexicon.captions import Caption, noun_of, plain_caption

_PREPOSITIONS = re.compile(
    r"(on|in|at|by|under|over|behind|among|with|near|beside|inside|outside|against|between|upon|above|below|without)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"^(it|its|there|the|a|an)\b.*\b(is|are|has|have|lies|sits|stands)\b", re.IGNORECASE)


class CounterfactualRate(Record):
    """How often the classifier fails on pictures of one caption, beside the same pictures without it.

    Args:
        caption: what was asked for; empty for the unchanged pictures.
        prompt: the words the pictures were made from.
        share: failures among the pairs.
        pairs: pictures that passed the gate with and without the change. An unchanged picture that is a near-duplicate of another
            shows the same thing again, and does not count twice.
        gained: pairs that fail only with it.
        lost: pairs that fail only without it.
        change: of the failure rate over the pairs.
        change_interval: of that.
        p_value: exact, two-sided, of the pairs (McNemar).
        p_after_looks: multiplied by the number of different captions that were ever put to this class with this generator.
        wrong_labels: what failures were taken for.
        rejected: pictures that a gate rejected, by gate.
        note: why there is no figure, if there is none.
    """

    caption: str
    prompt: str
    share: Share
    pairs: int = 0
    gained: int = 0
    lost: int = 0
    change: float = 0.0
    change_interval: Interval | None = None
    p_value: float = 1.0
    p_after_looks: float = 1.0
    wrong_labels: dict[str, int] = Field(default_factory=dict)
    rejected: dict[str, int] = Field(default_factory=dict)
    note: str = ""


class CounterfactualSeries(Record):
    """A series of captions on the same pictures.

    Args:
        class_name: what the pictures show.
        criterion: what counts as a failure, in words.
        generator_id: who made the pictures.
        classifier_id: who was asked about them.
        seed: of the series.
        n_each: pictures asked for, for every caption.
        n_looks: different captions that were ever put to this class with this generator.
        baseline: the unchanged pictures.
        rates: one entry a caption, in the order given.
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
    caption: str, prompt: str, before: Sequence[bool | None], after: Sequence[bool | None], *, n_looks: int
) -> CounterfactualRate:
    """Return the rate of a caption beside the same pictures without it.

    Args:
        caption: what was changed.
        prompt: the words.
        before: by place of the series whether the unchanged picture fails; None where there is none.
        after: the same with the change.
        n_looks: how many captions were ever asked about.
    """
    both = [(one, other) for one, other in zip(before, after, strict=True) if one is not None and other is not None]
    first, second = _columns(both)
    gained, lost = int((second & ~first).sum()), int((first & ~second).sum())
    low, high = change_interval(gained, lost, len(both))
    p_value = mcnemar_p(gained, lost)
    return CounterfactualRate(
        caption=caption,
        prompt=prompt,
        share=Share.of(int(second.sum()), len(both)),
        pairs=len(both),
        gained=gained,
        lost=lost,
        change=(gained - lost) / len(both) if both else 0.0,
        change_interval=Interval(low=low, high=high),
        p_value=p_value,
        p_after_looks=min(1.0, p_value * max(n_looks, 1)),
    )


def _columns(pairs: Sequence[tuple[bool, bool]]) -> tuple[BoolArray, BoolArray]:
    table = np.array(pairs, dtype=np.bool_).reshape(len(pairs), 2)
    return table[:, 0], table[:, 1]
