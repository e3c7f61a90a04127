"""What every arm lets the generator generate: as many images of every class, from other words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from weakspot.core.errors import DataError, ModelError, NotEnoughDataError, RefusedPromptError
from weakspot.core.seeding import generator
from weakspot.lab.refine.names import by_class_and_kind
from weakspot.lab.refine.records import NamedFailures
from weakspot.lab.refine.request import Images, Prompt, RefineRequest, Wanted
from weakspot.lab.refine.subjects import Subject
from weakspot.lexicon.captions import noun_of
from weakspot.lexicon.uncommon_vocabulary import uncommon_axes
from weakspot.pipeline.settings import DiscoverSettings
from weakspot.pipeline.wiring import build_describer, build_discoverers
from weakspot.repair.methods.synthetic import class_prompt, slice_prompts

METHOD = "directions"
MOST_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class PossiblePrompts:
    """Prompts that a generator can generate.

    Args:
        groups: of every group given, the first ones that it can generate.
        refused: those that it was asked for and cannot.
    """

    groups: tuple[tuple[Prompt, ...], ...]
    refused: Mapping[Prompt, RefusedPromptError]


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
            return PossiblePrompts(groups=groups, refused=refused)
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
            given=[f"{one.class_name}: {one.value}" for one in names][:MOST_SHOWN],
            fix="Ask for other kinds of attribute (--kinds), or configure a language model ([language]).",
        )
    ranked = [
        tuple(Prompt(one.class_name, sentence(one.phrase)) for one in own)
        for own in by_class_and_kind(telling)
    ]
    found = possible_prompts(ranked, request.n_names, images)
    if not any(found.groups):
        first = next(iter(found.refused.values()))
        raise RefusedPromptError(
            f"The image generator can generate none of the {len(found.refused)} values that failures show.",
            given=[prompt.text for prompt in found.refused][:MOST_SHOWN],
            fix=first.fix or first.what,
        )
    counts = {Prompt(one.class_name, sentence(one.phrase)): one.excess for one in telling}
    chosen = dict.fromkeys(prompt for group in found.groups for prompt in group)
    wanted = [
        Wanted(
            prompt=prompt, n_images=request.n_images(ceil(counts[prompt])), weight=counts[prompt]
        )
        for prompt in chosen
    ]
    return tuple(wanted), _refusal_notes(telling, chosen, found.refused)


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
    values = {kind: uncommon_axes()[kind].values for kind in request.kinds} | dict(
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
    found = possible_prompts(ranked, request.n_names, images)
    texts = {
        name: [one.text for group in found.groups for one in group if one.class_name == name]
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
    groups = possible_prompts(ranked, n_names, images).groups
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
