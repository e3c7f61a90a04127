"""Which seeds to generate with, so that every image of a prompt shows another of the user's own objects."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from weakspot.core.errors import ModelError, NotEnoughDataError, RefusedPromptError
from weakspot.core.roles import HasViews, ImageGenerator, KnowsParents

MAX_TRIED = 25
MORE_TRIED = 200
MANY_TRIED = 1500
MAX_VIEWS = 5
"""How many images of one prompt may show the same object, each time in another view."""


@dataclass(frozen=True, kw_only=True)
class ParentSeeds:
    """Seeds for a series of prompts.

    Args:
        seeds: at most as many as were asked for.
        prompts: those that are drawn with them.
        short: prompts that are not, with why, in a sentence.
        is_complete: whether there were as many different objects as were asked for.
    """

    seeds: tuple[int, ...]
    prompts: tuple[str, ...]
    short: Mapping[str, str] = field(default_factory=dict)
    is_complete: bool = True


def parent_seeds(
    image_generator: ImageGenerator,
    prompts: Sequence[str],
    candidates: Iterable[int],
    *,
    n: int,
    least: int,
    class_name: str,
) -> ParentSeeds:
    """Return seeds with which every prompt shows the same object, and every seed another one.

    A generator that composes from nobody's images, or cannot say from which, gets the first candidates. A prompt that shares too
    few objects with the first one is left out, with why.

    Args:
        image_generator: who draws.
        prompts: the plain one first.
        candidates: seeds to choose from, without end or nearly so.
        n: how many are wanted.
        least: fewest different objects; fewer than were asked for is enough if so many were not asked for.
        class_name: for messages.

    Raises:
        NotEnoughDataError: if even the first prompt has fewer objects than that.
        RefusedPromptError: if the generator cannot draw the first prompt.
    """
    stream = iter(candidates)
    if not isinstance(image_generator, KnowsParents):
        return ParentSeeds(seeds=_first(stream, n), prompts=tuple(prompts))
    tried = _first(stream, MAX_TRIED * n + MORE_TRIED)
    enough = min(least, n)
    known = {prompt: _parents(image_generator, prompt, tried) for prompt in prompts}
    plain = _different(tried, [known[prompts[0]]], n)
    if len(plain) < enough:
        raise NotEnoughDataError(
            _too_few(class_name, len(plain), enough), where="[generator] least_parents", fix=_FIX
        )
    short = {
        prompt: f"{_too_few(class_name, len(found), enough)} {_FIX}"
        for prompt in prompts[1:]
        if len(found := _different(tried, [known[prompts[0]], known[prompt]], n)) < enough
    }
    kept = [prompt for prompt in prompts if prompt not in short]
    seeds = _different(tried, [known[prompt] for prompt in kept], n)
    while len(seeds) < enough:
        # Together they share too few objects: the prompt with the fewest of its own is left out.
        rarest = min(kept[1:], key=lambda prompt: len(_different(tried, [known[prompt]], n)))
        short[rarest] = f"{_too_few(class_name, len(seeds), enough)} Ask for it alone."
        kept.remove(rarest)
        seeds = _different(tried, [known[prompt] for prompt in kept], n)
    return ParentSeeds(seeds=seeds, prompts=tuple(kept), short=short, is_complete=len(seeds) == n)


def with_views(image_generator: ImageGenerator, chosen: ParentSeeds, n: int) -> ParentSeeds:
    """Return seeds that show the objects again in other views, once all of them were shown, until there are as many as wanted."""
    if chosen.is_complete or not isinstance(image_generator, HasViews):
        return chosen
    seeds = seeds_of_views(image_generator, chosen.seeds)[:n]
    return replace(chosen, seeds=seeds, is_complete=len(seeds) == n)


def seeds_of_views(image_generator: HasViews, seeds: Sequence[int]) -> tuple[int, ...]:
    """Return seeds of different objects, then those of further views of them, so that all are shown once before one is shown again."""
    return tuple(
        image_generator.seed_of_view(seed, number) for number in range(MAX_VIEWS) for seed in seeds
    )


def different_seeds(
    image_generator: KnowsParents,
    prompt: str,
    candidates: Iterable[int],
    *,
    least: int,
    class_name: str,
) -> tuple[int, ...]:
    """Return seeds of all different objects that a prompt can show, as far as some thousand candidates tell.

    Raises:
        RefusedPromptError: if the generator cannot draw the prompt, or with fewer objects than `least`.
    """
    tried = _first(iter(candidates), MANY_TRIED)
    image_generator.parents_of(prompt, tried[0])
    found = _different(tried, [_parents(image_generator, prompt, tried)], len(tried))
    if len(found) < least:
        raise RefusedPromptError(
            _too_few(class_name, len(found), least), where="generator compose", fix=_FIX
        )
    return found


class SeedSeries:
    """The seeds of every prompt in order: those of different objects first, then of further views of them, and then no more.

    A generator that composes from nobody's images, or cannot say from which, has a seed for every place.

    Args:
        image_generator: who draws; None: nobody knows.
        seed_at: class, prompt and place to a seed.
        least: a prompt that can show fewer different objects is refused.
    """

    def __init__(
        self,
        image_generator: ImageGenerator | None,
        seed_at: Callable[[str, str, int], int],
        *,
        least: int = 1,
    ) -> None:
        drawer: object = image_generator
        self._composer = drawer if isinstance(drawer, KnowsParents) else None
        self._viewer = drawer if isinstance(drawer, HasViews) else None
        self._seed_at = seed_at
        self._least = least
        self._known: dict[tuple[str, str], tuple[int, ...]] = {}

    def places(self, class_name: str, prompt: str, *, first: int, n: int) -> tuple[int, ...]:
        """Return the seeds of places `first` to `first + n`; fewer where the series ends.

        Raises:
            RefusedPromptError: if the generator cannot draw the prompt, or from too few different objects.
        """
        composer, viewer = self._composer, self._viewer
        if composer is None or viewer is None:
            return tuple(self._seed_at(class_name, prompt, one) for one in range(first, first + n))
        key = (class_name, prompt)
        if key not in self._known:
            candidates = (self._seed_at(class_name, prompt, place) for place in count())
            found = different_seeds(
                composer, prompt, candidates, least=self._least, class_name=class_name
            )
            self._known[key] = seeds_of_views(viewer, found)
        return self._known[key][first : first + n]


_FIX = (
    "Give more images or masks of their objects (a column `mask`), or lower [generator] least_parents and judge for yourself; "
    "a text-to-image model as generator needs none."
)


def _too_few(class_name: str, n_found: int, enough: int) -> str:
    return (
        f"Only {n_found} different objects of the class {class_name!r} can be used for this, "
        f"fewer than the {enough} that a figure needs."
    )


def _first(candidates: Iterator[int], n: int) -> tuple[int, ...]:
    return tuple(seed for _, seed in zip(range(n), candidates, strict=False))


def _parents(
    image_generator: KnowsParents, prompt: str, seeds: Sequence[int]
) -> dict[int, tuple[str, ...]] | None:
    """Return the objects that a prompt shows by seed; None if the prompt is refused, which is then said when it is drawn."""
    try:
        return {seed: image_generator.parents_of(prompt, seed) for seed in seeds}
    except RefusedPromptError:
        return None
    except ModelError:
        return {}


def _different(
    seeds: Sequence[int], known: Sequence[Mapping[int, tuple[str, ...]] | None], n: int
) -> tuple[int, ...]:
    """Return the first seeds with which all prompts show the same object, each another one."""
    told = [one for one in known if one is not None]
    seen: set[str] = set()
    chosen: list[int] = []
    for seed in seeds:
        shown = {next(iter(one.get(seed, ())), "") for one in told}
        if len(shown) != 1 or "" in shown or shown & seen:
            continue
        seen |= shown
        chosen.append(seed)
        if len(chosen) == n:
            break
    return tuple(chosen) if told else tuple(seeds[:n])
