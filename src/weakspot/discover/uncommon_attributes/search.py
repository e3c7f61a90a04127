"""One search: which value of an axis every sample of a class is nearest to, and which failures may choose among values.

Values that a language model proposes; its answers are read as data and never trusted to have the right form.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts, Propose
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import WeakspotError
from weakspot.core.failures import ClassProblem, predicted_classes
from weakspot.core.group_tests import group_p
from weakspot.lexicon.captions import Caption, counted, plain_caption
from weakspot.lexicon.uncommon_vocabulary import Axis

LONGEST_VALUE = 60
PATIENCE = 3
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"values": {"type": "array", "items": {"type": "string"}}},
    "required": ["values"],
}
_ARTICLES = ("a", "an", "the")
_READY_TEXT = """
    in on at under behind near beside inside outside with without over by against above below among through between along around
    underwater indoors outdoors surrounded next
"""
_READY = frozenset(_READY_TEXT.split())


@dataclass(kw_only=True)
class Proposer:
    """Asks a language model, until it has failed too often.

    Args:
        propose: the model.
        n_values: how many values are wanted.
        n_failed: how often it gave nothing of use, without an answer in between.
    """

    propose: Propose | None
    n_values: int
    n_failed: int = 0
    last: str = ""

    def values(self, class_name: str, axis: Axis) -> tuple[str, ...]:
        """Return what the model lists; () if it cannot be asked or its answer is of no use."""
        if self.propose is None or self.n_failed >= PATIENCE:
            return ()
        prompt = (
            f"{axis.question_for(class_name)} List {self.n_values} values of {axis.name}, each in the form of {axis.example!r}, "
            f"so that `{axis.caption(plain_caption(class_name).noun, '...').phrase}` makes sense."
        )
        try:
            found = usable_values(self.propose(prompt, SCHEMA), axis)[: self.n_values]
        except WeakspotError as error:
            found, self.last = (), error.what
        else:
            self.last = "" if found else "Its answer lists nothing."
        self.n_failed = 0 if found else self.n_failed + 1
        return found


def usable_values(answer: JsonValue, axis: Axis) -> tuple[str, ...]:
    """Return the values in a language model's answer, in the form that captions need; () if there are none.

    >>> from weakspot.lexicon.uncommon_vocabulary import uncommon_axes
    >>> usable_values({"values": ["Deserts.", "on a Beach", "", 3, "deserts"]}, uncommon_axes()["background"])
    ('in deserts', 'on a beach')
    """
    listed = answer.get("values") if isinstance(answer, dict) else answer
    if not isinstance(listed, list):
        return ()
    texts = [
        " ".join(value.split()).strip(" .,;:!?\"'`*-") for value in listed if isinstance(value, str)
    ]
    return tuple(
        dict.fromkeys(_in_form(text, axis) for text in texts if 0 < len(text) <= LONGEST_VALUE)
    )


def _in_form(text: str, axis: Axis) -> str:
    words = (text if text.isupper() else text.lower()).split()
    if axis.slot != "place":
        return " ".join(words[1:] if words[0] in _ARTICLES and len(words) > 1 else words)
    is_ready = axis.name != "background" or words[0] in _READY
    if is_ready:
        return " ".join(words)
    has_article = words[0] in _ARTICLES
    return f"in {' '.join(words) if has_article else counted(' '.join(words), ' '.join(words))}"


SAME = 1.0 - 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """One class and one axis.

    Args:
        problem: the samples of the class that have an embedding.
        axis: which kind of attribute.
        captions: of the values, and last the plain one, which stands for none of them.
        prototypes: their unit vectors [m, d].
        offsets: [m] subtracted from similarities.
        nearest: which caption every sample of the class is nearest to [n].
        seeds: failures [n] that choose the values.
    """

    problem: ClassProblem
    axis: Axis
    captions: tuple[Caption, ...]
    prototypes: FloatArray
    offsets: tuple[float, ...]
    nearest: IntArray
    seeds: BoolArray

    @property
    def n_values(self) -> int:
        """Return how many values there are, the plain caption not among them."""
        return len(self.captions) - 1

    @property
    def held_out(self) -> BoolArray:
        """Return the failures [n] that had no say in choosing."""
        return np.asarray(self.problem.failed & ~self.seeds)

    def chance(self, place: int) -> float:
        """Return the p-value of a value: failures that had no say against samples that did not fail, groups that had a say left out."""
        problem = self.problem
        looked_at = ~self.seeds
        if problem.groups is not None:
            looked_at &= ~np.isin(problem.groups, problem.groups[self.seeds])
        groups = None if problem.groups is None else problem.groups[looked_at]
        return group_p(self.nearest[looked_at] == place, problem.failed[looked_at], groups)

    def nothing_found(self) -> str:
        n_none = int((self.nearest[self.seeds] == self.n_values).sum())
        return (
            f"No uncommon {self.axis.name} is shared by failures: {n_none} of the {int(self.seeds.sum())} failures looked at show "
            f"none of {self.n_values} values, and no value is shown often enough."
        )


def searched(  # noqa: PLR0913 - what one search needs
    problem: ClassProblem,
    embeddings: FloatArray,
    axis: Axis,
    captions: Sequence[Caption],
    embed: EmbedTexts,
    *,
    centre: bool,
    seeds: BoolArray,
) -> Search:
    """Put every sample to its nearest caption.

    Args:
        problem: the samples of the class that have an embedding.
        embeddings: their unit vectors [n, d].
        axis: which kind of attribute.
        captions: of the values, and last the plain one.
        embed: phrases to embeddings.
        centre: whether each caption's mean similarity is subtracted first.
        seeds: failures [n] that choose.
    """
    embedded = unit_rows(
        np.asarray(embed([caption.phrase for caption in captions]), dtype=np.float32)
    )
    # The plain caption goes first here: a value that the encoder cannot tell from it says nothing.
    kept = np.sort((_different(np.roll(embedded, 1, axis=0)) - 1) % len(captions))
    prototypes = embedded[kept]
    similarities = embeddings @ prototypes.T
    offsets = similarities.mean(axis=0) if centre else np.zeros(len(kept), dtype=np.float32)
    return Search(
        problem=problem,
        axis=axis,
        captions=tuple(captions[place] for place in kept),
        prototypes=prototypes,
        offsets=tuple(float(offset) for offset in offsets) if centre else (),
        nearest=np.asarray(np.argmax(similarities - offsets, axis=1), dtype=np.int64),
        seeds=seeds,
    )


def seed_failures(
    dataset: Dataset, problem: ClassProblem, share: float, draws: np.random.Generator
) -> BoolArray:
    """Return which samples [n] are the failures that choose: a random share, alike in what they were taken for; groups stay whole."""
    failures = np.flatnonzero(problem.failed)
    taken_for = np.zeros(len(failures), dtype=np.int64)
    if dataset.task is Task.SINGLE_LABEL:
        taken_for = predicted_classes(dataset, problem.rows[failures])
    first = np.arange(len(failures))
    units = first
    if problem.groups is not None:
        _, first, units = np.unique(
            problem.groups[failures], return_index=True, return_inverse=True
        )
    order = np.lexsort((draws.random(len(first)), taken_for[first]))
    # Taking every n-th along the sorted strata keeps shares equal within each stratum and over all.
    steps = np.floor(np.arange(len(first) + 1) * share + 0.5)
    chooses = np.zeros(len(first), dtype=np.bool_)
    chooses[order[np.diff(steps) > 0]] = True
    chosen = np.zeros(len(problem.rows), dtype=np.bool_)
    chosen[failures[chooses[units]]] = True
    return chosen


def _different(embeddings: FloatArray) -> IntArray:
    """Return the positions of embeddings [m, d] that are not the same as an earlier one."""
    same = np.triu(embeddings @ embeddings.T >= SAME, k=1)
    return np.flatnonzero(~same.any(axis=0))
