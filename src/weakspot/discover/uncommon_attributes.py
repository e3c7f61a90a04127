"""Uncommon attributes: which backgrounds, colours, sizes or poses that a class is rarely seen with do its failures show.

After *Identifying and Mitigating Model Failures through Few-shot CLIP-aided Diffusion Generation* (2024).
`docs/explanation/methods.md` says where this departs from the paper and why.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import NO_ASSISTANTS, Assistants, EmbedTexts, Propose
from weakspot.core.bounds import Bounds, Count, check_bounds
from weakspot.core.dataset import Dataset, Task
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.errors import WeakspotError
from weakspot.core.failures import (
    ClassProblem,
    FailureCriterion,
    Side,
    predicted_classes,
)
from weakspot.core.group_tests import group_p
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.rules import NearestRule
from weakspot.core.samples import Need, SampleSet
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.words.captions import Axis, Caption, counted, plain_caption, uncommon_axes

MAX_VALUE_LENGTH = 60
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

    >>> from weakspot.words.captions import uncommon_axes
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
        dict.fromkeys(_in_form(text, axis) for text in texts if 0 < len(text) <= MAX_VALUE_LENGTH)
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


def searched(
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


MAX_BUILT_IN = 32
NO_TEXT_SIDE = "The embeddings called {space!r} have no text side, so attributes cannot be compared with samples."


@dataclass(frozen=True, kw_only=True)
class UncommonAttributesDiscoverer(ClassDiscoverer):
    """Finds the uncommon attributes that most failures of a class show, and makes a slice of each.

    After *Identifying and Mitigating Model Failures through Few-shot CLIP-aided Diffusion Generation* (2024).

    Args:
        axes: kinds of attribute, in the order they are looked at: background, colour, size, pose, viewpoint, lighting, company,
            material, look.
        n_values: how many values a language model is asked for, per class and axis.
        top_k: at most so many values per class and axis become slices.
        held_out_share: share of the failures that take no part in choosing values, and tell whether the choice holds.
        min_seeds: fewest failures that must show a value for it to be chosen.
        centre: whether each caption's usual similarity to samples of the class is subtracted first.
        space: which embeddings are read.
        min_failures: classes with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.
        values: pairs of a kind of attribute and its values; no language model is asked for these, and no built-in ones are taken.

    >>> from weakspot.testing.examples import ASSISTANTS, CRITERION, discovery_samples
    >>> method = UncommonAttributesDiscoverer(axes=("colour",))
    >>> found = method.discover(discovery_samples(), CRITERION, seed=0, assistants=ASSISTANTS)
    >>> found.slices[0].title, found.slices[0].n_found
    ('disc: green', 13)
    """

    method = "uncommon-attributes"
    needs = (Need.EMBEDDINGS,)
    axes: tuple[str, ...] = ("background",)
    n_values: Count = 10
    top_k: Count = 3
    held_out_share: Annotated[float, Bounds(ge=0, lt=1)] = 0.5
    min_seeds: Count = 2
    centre: bool = False
    space: str = "clip"
    min_failures: Count = 2
    min_right: Count = 1
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        unknown = sorted(set(self.axes) - set(uncommon_axes()))
        fits = self.axes and not unknown
        problem = f"The setting axes must name kinds of attribute, not {unknown}; choose from {list(uncommon_axes())}."
        check_bounds(self, problems=[] if fits else [problem])

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return slices of the values that most seed failures show, class by class, and a note for every class without."""
        # A model that fails with one class is asked less often about the next.
        proposer = Proposer(propose=assistants.propose, n_values=self.n_values)
        classes = self.classes(samples, criterion, seed=seed, assistants=assistants)
        return self.gathered(self._look(of, proposer) for of in classes)

    def _look(self, of: ClassSamples, proposer: Proposer) -> Discovery:
        embed = of.assistants.text_side(self.space)
        if embed is None:
            return of.noted(NO_TEXT_SIDE.format(space=self.space))
        if of.obstacle:
            return of.noted(of.obstacle)
        slices: list[FailureSlice] = []
        notes: list[str] = []
        n_considered = 0
        for name in self.axes:
            axis = uncommon_axes()[name]
            captions, note = self._captions(of.problem, axis, proposer)
            draws = self.random(of, axis.name)
            seeds = seed_failures(of.samples.dataset, of.problem, 1.0 - self.held_out_share, draws)
            search = searched(
                of.problem,
                unit_rows(of.embeddings),
                axis,
                captions,
                embed,
                centre=self.centre,
                seeds=seeds,
            )
            more = self._slices(of, search)
            n_considered += search.n_values
            slices += more
            notes += [*note, *([] if more else [search.nothing_found()])]
        return replace(of.noted(*notes, n_considered=n_considered), slices=tuple(slices))

    def _captions(
        self, problem: ClassProblem, axis: Axis, proposer: Proposer
    ) -> tuple[tuple[Caption, ...], list[str]]:
        """Return the captions of values, the plain one last, and a note if the language model was of no use."""
        is_absent = problem.side is Side.ABSENT
        plain = plain_caption(problem.class_name, is_absent=is_absent)
        given = dict(self.values).get(axis.name, ())
        values = given or (() if is_absent else proposer.values(problem.class_name, axis))
        note: list[str] = []
        if not values:
            values = axis.values_for(None if is_absent else problem.class_name, most=MAX_BUILT_IN)
            if proposer.propose is not None and not is_absent:
                note = [
                    f"The language model could not be used, so built-in values of {axis.name!r} were tried. {proposer.last}"
                ]
        return (*(axis.caption(plain.noun, value) for value in values), plain), note

    def _slices(self, of: ClassSamples, search: Search) -> list[FailureSlice]:
        n_values = search.n_values
        counts = np.bincount(search.nearest[search.seeds], minlength=n_values + 1)[:n_values]
        order = sorted(range(n_values), key=lambda place: (-counts[place], place))
        chosen = [place for place in order[: self.top_k] if counts[place] >= self.min_seeds]
        held_out = search.nearest[search.held_out]
        share = float(np.isin(held_out, chosen).mean()) if len(held_out) else None
        return [self._slice(of, search, place, share) for place in chosen]

    def _slice(
        self, of: ClassSamples, search: Search, place: int, held_out_share: float | None
    ) -> FailureSlice:
        shows, caption = search.nearest == place, search.captions[place]
        rule = NearestRule(
            space=self.space,
            encoder_id=of.encoder_id,
            prototypes=PackedArray.of(search.prototypes),
            chosen=place,
            offsets=search.offsets,
        )
        n_seed, n_seed_shown = int(search.seeds.sum()), int((shows & search.seeds).sum())
        strength = n_seed_shown / n_seed
        name = SliceName(
            phrase=caption.phrase,
            contrast=caption.contrast,
            score=strength,
            describer=self.method,
        )
        return self.slice_of(
            of,
            rule,
            strength=strength,
            # Held-out failures against samples that did not fail: neither had a say in choosing the value.
            strength_p=search.chance(place),
            names=(name,),
            more={
                "values_given": {name: list(own) for name, own in self.values},
                "axis": search.axis.name,
                "value": caption.contrast,
                "values": [each.contrast for each in search.captions[:-1]],
                "n_seed": n_seed,
                "n_heldout": int(search.held_out.sum()),
                "n_seed_shown": n_seed_shown,
                "n_heldout_shown": int((shows & search.held_out).sum()),
                "heldout_share_of_top": held_out_share,
            },
        )
