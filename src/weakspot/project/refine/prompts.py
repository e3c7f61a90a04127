"""What the seed failures of every class show, counted, and what every arm lets the generator generate from it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import ceil

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import generator
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError, RefusedPromptError
from weakspot.core.evidence import Share
from weakspot.core.failures import Side, class_problems
from weakspot.core.record import Record
from weakspot.core.roles import Discoverer
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.project.collective import Family
from weakspot.project.refine.training import (
    Images,
    NamedFailures,
    Prompt,
    RefineRequest,
    Subject,
    Wanted,
)
from weakspot.repair.strategies.synthetic import class_prompt, slice_prompts
from weakspot.run.settings import DiscoverSettings
from weakspot.run.wiring import build_describer, build_discoverers, build_part
from weakspot.words.captions import noun_of, uncommon_axes

EVERY = 10_000
LOOKED_AT, SHOWN = ("n_seed", "n_right"), ("n_failures", "n_right_shown")


def seed_names(
    subject: Subject, request: RefineRequest, images: Images | None = None
) -> tuple[tuple[NamedFailures, ...], list[str]]:
    """Propose values for every class, and put each failure of the discovery half to the nearest caption.

    Returns every value that at least one of them shows, within class and kind those first that set failures apart; and notes on
    classes of which nothing is said.

    Values come from the language model of the project, or from the built-in list; of the latter only those that the generator says
    it can draw, so that a failure is never put to a value that nothing can be trained on. A failure that is nearer to the plain
    caption of its class shows none of them. Nothing but the discovery half is looked at.
    """
    options: dict[str, JsonValue] = {
        "axes": [*request.kinds],
        "n_values": request.n_values,
        "top_k": EVERY,
        "held_out_share": 0.0,
        "min_seeds": 1,
        "min_failures": 1,
    }
    assistants = subject.bench.prepared.assistants
    if images is not None and assistants.propose is None:
        options["values"] = [
            [kind, [*values]]
            for kind in request.kinds
            if (values := _drawable(kind, subject, images))
        ]
    discoverer: Discoverer = build_part(
        "discoverers", "uncommon-attributes", options, where="refine"
    )
    bench = subject.bench
    found = discoverer.discover(
        subject.seed, bench.criterion, seed=bench.settings.seed, assistants=assistants
    )
    n_right = {
        problem.class_name: problem.n_right
        for problem in class_problems(subject.dataset, subject.seed.rows, bench.criterion)
        if problem.side is not Side.ABSENT
    }
    names = [
        _named(one, n_right[one.class_name]) for one in found.slices if one.side is not Side.ABSENT
    ]
    notes = [f"{note.class_name}: {note.note}" for note in found.notes]
    return tuple(pooled_names([names])), list(dict.fromkeys(notes))


def _drawable(kind: str, subject: Subject, images: Images) -> tuple[str, ...]:
    """Return the built-in values of a kind that the generator can draw of some class; none if it cannot say without drawing."""
    cannot_draw = getattr(images, "cannot_draw", None)
    if cannot_draw is None:
        return ()
    axis = uncommon_axes()[kind]
    found: dict[str, None] = {}
    for name in subject.dataset.class_names:
        prompts = {
            value: Prompt(name, axis.caption(noun_of(name), value).phrase)
            for value in axis.values_for(name, most=EVERY)
        }
        refused = cannot_draw(list(prompts.values()))
        found |= dict.fromkeys(value for value, one in prompts.items() if one not in refused)
    return tuple(found)


def pooled_names(models: Iterable[Sequence[NamedFailures]]) -> list[NamedFailures]:
    """Return the values of several models with their failures added up.

    Within class and kind those come first that most failures show beyond what right samples of the class would lead one to
    expect: a value that all samples of the class show explains nothing. What was looked at is added up over all models, also over
    those none of whose failures shows the value.
    """
    given = list(models)
    looked_at: Counter[tuple[str, str, str]] = Counter()
    for names in given:
        for own in by_class_and_kind(names):
            for count in LOOKED_AT:
                looked_at[(own[0].class_name, own[0].kind, count)] += getattr(own[0], count)
    total: dict[tuple[str, str, str], NamedFailures] = {}
    for one in chain.from_iterable(given):
        key = (one.class_name, one.kind, one.value)
        shown = (
            {count: getattr(total[key], count) + getattr(one, count) for count in SHOWN}
            if key in total
            else {}
        )
        every = {count: looked_at[(one.class_name, one.kind, count)] for count in LOOKED_AT}
        total[key] = one.model_copy(update=shown | every)
    return sorted(
        total.values(), key=lambda one: (one.class_name, one.kind, -one.excess, one.value)
    )


def by_class_and_kind(names: Sequence[NamedFailures]) -> list[tuple[NamedFailures, ...]]:
    """Return the values of every class and kind; best first if names are in the order of `pooled_names`."""
    found: dict[tuple[str, str], list[NamedFailures]] = {}
    for one in names:
        found.setdefault((one.class_name, one.kind), []).append(one)
    return [tuple(own) for own in found.values()]


def _named(found: FailureSlice, n_right: int) -> NamedFailures:
    parameters, n_failures = found.parameters, int(str(found.parameters["n_seed_shown"]))
    return NamedFailures(
        class_name=found.class_name,
        kind=str(parameters["axis"]),
        value=str(parameters["value"]),
        phrase=found.names[0].phrase,
        n_failures=n_failures,
        n_seed=int(str(parameters["n_seed"])),
        n_right=n_right,
        n_right_shown=found.n_found - n_failures,
    )


class SharedValue(Record):
    """A value that shared failures show, over all classes.

    Args:
        kind: kind of attribute.
        value: the value, for example `in the snow`.
        share: of the shared failures, those that show it.
    """

    kind: str
    value: str
    share: Share


class SharedFailures(Record):
    """Failures that all models share.

    Args:
        test: of the test samples that any model fails on, those that all fail on.
        n_seed: samples of the discovery half that all models fail on.
        values: what these show, commonest first within a kind.
    """

    test: Share
    n_seed: int
    values: tuple[SharedValue, ...]


def shared_failures(
    family: Family, subjects: Sequence[Subject], request: RefineRequest
) -> SharedFailures:
    """Return what all models of a family fail on, before any refinement; values are told on the discovery half alone."""
    shared = set.intersection(*[_failed_ids(subject, subject.seed) for subject in subjects])
    return SharedFailures(
        test=family.common(), n_seed=len(shared), values=_values(subjects[0], shared, request)
    )


def _failed_ids(subject: Subject, samples: SampleSet) -> set[str]:
    problems = class_problems(subject.dataset, samples.rows, subject.bench.criterion)
    return {
        sample_id
        for problem in problems
        for sample_id in subject.dataset.sample_ids(problem.rows[problem.failed])
    }


def _values(subject: Subject, shared: set[str], request: RefineRequest) -> tuple[SharedValue, ...]:
    """Return the values of shared failures, told among the samples that are right or shared failures."""
    if not shared:
        return ()
    seed = subject.seed
    left_out = _failed_ids(subject, seed) - shared
    is_kept = [name not in left_out for name in subject.dataset.sample_ids(seed.rows)]
    only = replace(subject, seed=seed.only(seed.rows[np.array(is_kept, dtype=np.bool_)]))
    counted: Counter[tuple[str, str]] = Counter()
    for one in seed_names(only, request)[0]:
        counted[(one.kind, one.value)] += one.n_failures
    order = sorted(counted, key=lambda key: (key[0], -counted[key], key[1]))
    return tuple(
        SharedValue(kind=kind, value=value, share=Share.of(counted[(kind, value)], len(shared)))
        for kind, value in order
    )


METHOD = "directions"
MAX_SHOWN = 5


PossiblePrompts = tuple[tuple[tuple[Prompt, ...], ...], dict[Prompt, RefusedPromptError]]
"""Of every group of prompts the first ones that a generator can generate, and those that it was asked for and cannot."""


def possible_prompts(
    ranked: Sequence[Sequence[Prompt]], n_each: int, images: Images
) -> PossiblePrompts:
    """Return the first prompts of every group that the generator can generate; where one is refused, the next takes its place.

    Args:
        ranked: groups of prompts, best first.
        n_each: how many are wanted of a group.
        images: the generator.
    """
    refused: dict[Prompt, RefusedPromptError] = {}
    asked: set[Prompt] = set()
    while True:
        groups = tuple(
            tuple([one for one in group if one not in refused][:n_each]) for group in ranked
        )
        new = list(dict.fromkeys(one for group in groups for one in group if one not in asked))
        if not new:
            return groups, refused
        asked.update(new)
        refused.update(images.refusals(new))


def refine_prompts(
    names: Sequence[NamedFailures], request: RefineRequest, images: Images
) -> tuple[tuple[Wanted, ...], list[str]]:
    """Return images of the values that set seed failures of a class apart, and notes on what cannot be generated.

    Args:
        names: in the order of `pooled_names`.
        request: how many values and images.
        images: the generator.

    Raises:
        NotEnoughDataError: if no failure shows any value, or none that is not as common among right samples.
        RefusedPromptError: if the generator can generate none of them; the fix names what it can.
    """
    if not names:
        raise NotEnoughDataError(
            "No failure of the discovery half shows any of the proposed values, so there is nothing to generate.",
            fix="Ask for other kinds of attribute (--kinds), or configure a language model ([language]).",
        )
    telling = [one for one in names if one.excess > 0]
    if not telling:
        raise NotEnoughDataError(
            "Every value that failures show is as common among right samples, so there is nothing to generate.",
            given=[f"{one.class_name}: {one.value}" for one in names][:MAX_SHOWN],
            fix="Ask for other kinds of attribute (--kinds), or configure a language model ([language]).",
        )
    ranked = [
        tuple(Prompt(one.class_name, sentence(one.phrase)) for one in own)
        for own in by_class_and_kind(telling)
    ]
    groups, refused = possible_prompts(ranked, request.n_names, images)
    if not any(groups):
        first = next(iter(refused.values()))
        raise RefusedPromptError(
            f"The image generator can generate none of the {len(refused)} values that failures show.",
            given=[prompt.text for prompt in refused][:MAX_SHOWN],
            fix=first.fix or first.what,
        )
    counts = {Prompt(one.class_name, sentence(one.phrase)): one.excess for one in telling}
    chosen = dict.fromkeys(prompt for group in groups for prompt in group)
    wanted = [
        Wanted(
            prompt=prompt, n_images=request.n_images(ceil(counts[prompt])), weight=counts[prompt]
        )
        for prompt in chosen
    ]
    return tuple(wanted), _refusal_notes(telling, chosen, refused)


def sentence(phrase: str) -> str:
    """Return a caption as a prompt.

    >>> sentence("a photo of a green disc")
    'A photo of a green disc'
    """
    return phrase[:1].upper() + phrase[1:]


def instead(wanted: Iterable[Wanted], prompts: Mapping[str, Sequence[str]]) -> tuple[Wanted, ...]:
    """Return as many images of every class, that count as much, from other prompts.

    A class's images are shared out among its prompts as evenly as can be; a class without any gets its mere name.
    """
    totals: dict[str, tuple[int, float]] = {}
    for one in wanted:
        n_before, weight = totals.get(one.prompt.class_name, (0, 0.0))
        totals[one.prompt.class_name] = (n_before + one.n_images, weight + one.weight)
    found = []
    for class_name, (n_images, weight) in totals.items():
        texts = list(dict.fromkeys(prompts.get(class_name, ())))[:n_images] or [
            class_prompt(class_name)
        ]
        for place, text in enumerate(texts):
            n_own = n_images // len(texts) + (place < n_images % len(texts))
            found.append(
                Wanted(
                    prompt=Prompt(class_name, text),
                    n_images=n_own,
                    weight=weight * n_own / n_images,
                )
            )
    return tuple(found)


def random_prompts(wanted: Sequence[Wanted], images: Images) -> tuple[Wanted, ...]:
    """Return as many images from the mere names of the classes.

    Raises:
        RefusedPromptError: if the generator cannot generate one of them.
    """
    found = instead(wanted, {})
    for refused in images.refusals([one.prompt for one in found]).values():
        raise refused
    return found


def predefined_prompts(
    wanted: Sequence[Wanted], request: RefineRequest, images: Images, *, seed: int
) -> tuple[tuple[Wanted, ...], list[str]]:
    """Return as many images from values of a fixed list, generated by lot for every class and kind; failures have no say."""
    values = {kind: tuple(uncommon_axes()[kind].values) for kind in request.kinds} | dict(
        request.predefined
    )
    classes = list(dict.fromkeys(one.prompt.class_name for one in wanted))
    ranked = []
    for class_name in classes:
        for kind in request.kinds:
            order = generator(seed, "refine", "predefined", class_name, kind).permutation(
                len(values[kind])
            )
            captions = [
                uncommon_axes()[kind].caption(noun_of(class_name), values[kind][place])
                for place in order
            ]
            ranked.append([Prompt(class_name, sentence(caption.phrase)) for caption in captions])
    groups, _ = possible_prompts(ranked, request.n_names, images)
    texts = {
        name: [one.text for group in groups for one in group if one.class_name == name]
        for name in classes
    }
    return instead(wanted, texts), _bare_note(texts)


def directions_prompts(
    wanted: Sequence[Wanted],
    request: RefineRequest,
    images: Images,
    subject: Subject,
    *,
    is_easy: bool = False,
) -> tuple[tuple[Wanted, ...], list[str]]:
    """Return as many images from the captions of slices that the method `directions` finds on the discovery half.

    Captions are those of the hard ends of directions, or of the easy ones, on which the classifier is right.

    Raises:
        DataError: if it cannot work here.
        NotEnoughDataError: if it names no slice of a class.
    """
    bench, seeds = subject.bench, subject.seed
    settings = bench.settings.model_copy(update={"discover": DiscoverSettings(methods=(METHOD,))})
    assistants = bench.prepared.assistants
    found = build_discoverers(settings)[METHOD].discover(
        seeds, bench.criterion, seed=settings.seed, assistants=assistants
    )
    named = build_describer(settings).describe(found.slices, seeds, bench.criterion, assistants)
    n_names = request.n_names * len(request.kinds)
    captions = slice_prompts(named, {}, n_names=n_names)
    if is_easy:
        ends = [one.model_copy(update={"names": one.easy_names}) for one in named]
        # What is hard by one direction of the class is not easy by another.
        captions = {
            name: tuple(text for text in own if text not in captions.get(name, ()))
            for name, own in slice_prompts(ends, {}, n_names=n_names).items()
        }
    classes = list(dict.fromkeys(one.prompt.class_name for one in wanted))
    ranked = [[Prompt(name, text) for text in captions.get(name, ())] for name in classes]
    if not any(ranked):
        raise NotEnoughDataError(
            "The method directions names no slice of these classes.", given=classes
        )
    groups, _ = possible_prompts(ranked, n_names, images)
    texts = {name: [one.text for one in group] for name, group in zip(classes, groups, strict=True)}
    return instead(wanted, texts), _bare_note(texts)


ARM_OBSTACLES = (DataError, ModelError, NotEnoughDataError)
"""What may keep an arm beside the refinement from being measured, without ending the run."""


def _bare_note(texts: Mapping[str, Sequence[str]]) -> list[str]:
    bare = [name for name, own in texts.items() if not own]
    return [f"Generated from their mere names: {', '.join(bare)}."] if bare else []


def _refusal_notes(
    names: Sequence[NamedFailures],
    chosen: Iterable[Prompt],
    refused: Mapping[Prompt, RefusedPromptError],
) -> list[str]:
    if not refused:
        return []
    there = {prompt.class_name for prompt in chosen}
    skipped = [name for name in dict.fromkeys(one.class_name for one in names) if name not in there]
    notes = [
        f"The generator cannot generate {len(refused)} of the values, for example “{next(iter(refused)).text}”."
    ]
    return notes + [
        f"{name} is left out: the generator can generate none of the values that its failures show."
        for name in skipped
    ]
