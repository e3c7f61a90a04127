"""Retraining with generated samples that show what the slices are about."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import IntArray
from weakspot.core.bounds import Count, Positive
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import Side
from weakspot.core.heads import RepairMaterial, TrainingSelection, with_mean_one
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.repair.strategies.strategy import Strategy
from weakspot.words.captions import content_words, plain_caption
from weakspot.words.wordnet import lemma

PROMPT = "prompt"
CARRIES = frozenset({"photo", "image", "picture"})


@dataclass(frozen=True, kw_only=True)
class SyntheticRepairer(Strategy):
    """Adds a weighted loss on generated samples to the loss on the training samples.

    The loss is `L(training) + debug_weight * L(generated)`, both means over their samples, so that it does not matter how many
    images were generated. Used are those of classes that have a slice, and only from prompts with one of the commonest names of
    the slices of their class; where no prompts are known, all of the class. After *Identifying and Mitigating Model Failures
    through Few-shot CLIP-aided Diffusion Generation*.

    Args:
        debug_weight: how much all generated samples together count beside all training samples together.
        n_names: how many names of a class are used, those with most failures first.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> SyntheticRepairer().select(slices, material).note
    '42 generated samples are added to 404 training samples; together they count 0.5 times as much.'
    """

    debug_weight: Positive = 0.5
    n_names: Count = 3

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return all labelled training rows and the generated ones that fit; the seed has no influence."""
        trained = material.labelled
        if not slices:
            return TrainingSelection(
                rows=trained,
                weights=np.ones(len(trained)),
                note="There is no slice to add images for.",
            )
        added, remark = self._add(slices, material)
        weights = np.concatenate(
            [
                np.full(len(trained), 1.0 / max(len(trained), 1)),
                np.full(len(added), self.debug_weight / len(added)),
            ]
        )
        note = (
            f"{len(added)} generated samples are added to {len(trained)} training samples; "
            f"together they count {self.debug_weight:g} times as much.{remark}"
        )
        return TrainingSelection(
            rows=np.concatenate([trained, added]), weights=with_mean_one(weights), note=note
        )

    def _add(
        self, slices: Sequence[FailureSlice], material: RepairMaterial
    ) -> tuple[IntArray, str]:
        given = material.synthetic
        if given is None or not len(given):
            raise NotEnoughDataError(
                "There are no generated samples to repair with.",
                fix="Give a folder of generated images, one sub-folder a class.",
            )
        prompts = _prompts(given)
        rows: list[IntArray] = []
        without: list[str] = []
        for own in by_class(slices):
            names = commonest_names(own, material.evidence)
            fitting = _fitting(own, given, prompts, names, self.n_names)
            rows.append(fitting)
            without += [] if len(fitting) else [own[0].class_name]
        added = np.unique(np.concatenate(rows))
        if not len(added):
            wanted = slice_prompts(slices, material.evidence, n_names=self.n_names)
            raise NotEnoughDataError(
                f"None of {len(given)} generated samples is of a class with a slice and shows what a slice is about.",
                given=sorted({prompt for prompt in prompts.values() if prompt})[:5],
                fix=f"Generate images from such prompts: {wanted}."
                if wanted
                else "Generate images of their classes.",
            )
        listed = ", ".join(f"“{name}”" for name in dict.fromkeys(without))
        return added, f" There are none for {listed}." if without else ""


def by_class(slices: Sequence[FailureSlice]) -> Iterator[tuple[FailureSlice, ...]]:
    """Yield the slices of every class and side, in the order given."""
    for key in dict.fromkeys((found.class_name, found.side) for found in slices):
        yield tuple(found for found in slices if (found.class_name, found.side) == key)


def commonest_names(
    slices: Sequence[FailureSlice], evidence: Mapping[str, Evidence]
) -> tuple[SliceName, ...]:
    """Return the names of the slices of one class, those with most failures first; no contrast twice.

    Words that are not sure are left out. The failures of a slice are counted for its best name. Second names follow after all best
    names, third ones after those.
    """
    failures: Counter[str] = Counter()
    ranked: dict[str, tuple[int, SliceName]] = {}
    for found in slices:
        counted = (
            evidence[found.slice_id].failures_inside
            if found.slice_id in evidence
            else found.n_found
        )
        for rank, name in enumerate(name for name in found.names if not name.is_unsure):
            key = name.contrast.strip().lower()
            failures[key] += counted if rank == 0 else 0
            ranked[key] = min(ranked.get(key, (rank, name)), (rank, name), key=lambda one: one[0])
    order = sorted(ranked, key=lambda key: (ranked[key][0], -failures[key]))
    return tuple(ranked[key][1] for key in order)


def slice_prompts(
    slices: Sequence[FailureSlice], evidence: Mapping[str, Evidence], *, n_names: int = 3
) -> dict[str, tuple[str, ...]]:
    """Return the prompts that images are generated from, by class: the commonest names of its slices.

    Of samples that lack a label there is nothing to draw, so such slices have no prompts. A name that does not say the class is no
    prompt either: what it would show is anybody's guess.
    """
    prompts: dict[str, tuple[str, ...]] = {}
    for own in by_class(slices):
        said = _lemmas(plain_caption(own[0].class_name).phrase)
        names = [
            name
            for name in commonest_names(own, evidence)
            if said <= _lemmas(name.phrase) | CARRIES
        ][:n_names]
        if names and own[0].side is not Side.ABSENT:
            prompts[own[0].class_name] = tuple(_sentence(name.phrase) for name in names)
    return prompts


def _lemmas(phrase: str) -> set[str]:
    return {lemma(word) for word in content_words(phrase, with_carriers=True)}


def class_prompt(class_name: str) -> str:
    """Return the prompt that names only the class.

    >>> class_prompt("Apple")
    'A photo of an apple'
    """
    return _sentence(plain_caption(class_name).phrase)


def _sentence(phrase: str) -> str:
    return phrase[:1].upper() + phrase[1:]


def _prompts(samples: SampleSet) -> dict[int, str]:
    """Return the prompt of every row; empty where none is known."""
    dataset = samples.dataset
    if PROMPT not in dataset.metadata_names:
        return dict.fromkeys(samples.rows.tolist(), "")
    own_prompts = dataset.metadata(PROMPT).take(pa.array(samples.rows)).to_pylist()
    return {
        row: str(prompt or "").strip().lower()
        for row, prompt in zip(samples.rows.tolist(), own_prompts, strict=True)
    }


def _is_used(prompt: str, names: Sequence[SliceName], n_used: int) -> bool:
    """Return whether the name that fits a prompt best is among the first: the very phrase, else the one of which it has most words."""
    exact = [place for place, name in enumerate(names) if name.phrase.strip().lower() == prompt]
    words = set(content_words(prompt, with_carriers=True))
    meant = [set(content_words(name.contrast, with_carriers=True)) for name in names]
    shared = sorted((-len(own), place) for place, own in enumerate(meant) if own and own <= words)
    fitting = exact or [place for _, place in shared]
    return bool(fitting) and fitting[0] < n_used


def _fitting(
    own: Sequence[FailureSlice],
    samples: SampleSet,
    prompts: Mapping[int, str],
    names: Sequence[SliceName],
    n_used: int,
) -> IntArray:
    """Return the generated rows of a class whose prompt belongs to one of the first names; all of them where no prompt is known.

    If the slices have no name, every prompt that says more than the class will do.
    """
    rows = own[0].class_rows(samples)
    own_prompts = [prompts[row] for row in rows.tolist()]
    if not any(own_prompts):
        return rows
    plain = {"", class_prompt(own[0].class_name).lower()}
    is_wanted = {
        prompt: _is_used(prompt, names, n_used) if names else prompt not in plain
        for prompt in set(own_prompts)
    }
    return rows[[is_wanted[prompt] for prompt in own_prompts]]
