"""Which seeds to draw with, so that every image of a prompt shows another of the user's own objects."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weakspot.core.errors import ModelError, NotEnoughDataError, RefusedPromptError
from weakspot.core.roles import ImageGenerator, KnowsParents

MOST_TRIED = 25
MORE_TRIED = 200


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
    tried = _first(stream, MOST_TRIED * n + MORE_TRIED)
    enough = min(least, n)
    known = {prompt: _parents(image_generator, prompt, tried) for prompt in prompts}
    plain = _different(tried, [known[prompts[0]]], n)
    if len(plain) < enough:
        raise NotEnoughDataError(
            _too_few(class_name, len(plain), enough), where="generator compose", fix=_FIX
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


_FIX = (
    "Give masks (a column `mask`) or more images, or lower [generator] least_parents and judge for yourself; "
    "an image model as generator needs no cut-outs."
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
