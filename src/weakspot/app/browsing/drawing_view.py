"""What can be drawn in a project, what it costs, and generated pictures by content hash; nothing is drawn here."""

import hashlib
from typing import cast

from weakspot.app.browsing.drawing_arguments import MOST_BUDGET
from weakspot.app.browsing.drawing_results import CounterfactualView, SearchView, counterfactuals, searches
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.generator_choice import build_generator
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError, RefusedPromptError, WeakspotError
from weakspot.core.roles import ChecksPrompts, CostsMoney, ImageGenerator
from weakspot.media.thumbnails import jpeg_of
from weakspot.search.counterfactuals import counterfactual_prompt
from weakspot.store.drawings import file_of

MOST_STARTS = 100
NONSENSE = "xqzv"


class CaptionStart(View):
    """A caption to start from: the words of a confirmed slice."""

    class_name: str
    title: str
    caption: str


class DrawingSetupView(View):
    """What can be drawn here.

    Args:
        class_names: what pictures can be drawn of.
        generator: registered name of the generator.
        why_not: why nothing can be drawn; empty if something can.
        can_say: what captions may say, in a sentence; empty if the generator takes any words.
        starts: words of confirmed slices.
        budget: pictures that a search may draw unless told otherwise.
        most_budget: most that a page may ask for.
        is_charged: whether pictures cost money.
    """

    class_names: tuple[str, ...]
    generator: str
    why_not: str
    can_say: str
    starts: tuple[CaptionStart, ...]
    budget: int
    most_budget: int
    is_charged: bool


class DrawingCostView(View):
    """What pictures cost at most.

    Args:
        n_pictures: how many.
        is_charged: whether they cost money at all.
        amount: None if it is not known.
        currency: empty if nothing is charged.
        words: the same in a sentence.
    """

    n_pictures: int
    is_charged: bool
    amount: float | None
    currency: str
    words: str


class PromptView(View):
    """A caption as the generator gets it.

    Args:
        prompt: the whole words.
        refusal: why it cannot be drawn, and what can; empty if that is known only when it is tried, or it can.
    """

    prompt: str
    refusal: str


class CounterfactualsView(View):
    """All series that were kept, newest first."""

    results: tuple[CounterfactualView, ...]


class SearchesView(View):
    """All searches that were kept, newest first."""

    results: tuple[SearchView, ...]


def setup(workspace: Workspace) -> DrawingSetupView:
    """Return what can be drawn."""
    settings = workspace.project.settings
    generator, why_not = _generator(workspace)
    return DrawingSetupView(
        class_names=tuple(workspace.samples.dataset.class_names),
        generator=settings.generator.name,
        why_not=why_not,
        can_say=_can_say(workspace, generator),
        starts=_starts(workspace),
        budget=min(settings.search.budget, MOST_BUDGET),
        most_budget=MOST_BUDGET,
        is_charged=isinstance(generator, CostsMoney),
    )


def cost(workspace: Workspace, n_pictures: int) -> DrawingCostView:
    """Return what so many pictures cost, before any is asked for."""
    generator, _ = _generator(workspace)
    if not isinstance(generator, CostsMoney):
        return DrawingCostView(n_pictures=n_pictures, is_charged=False, amount=0.0, currency="", words="They cost nothing.")
    price = generator.cost_of(n_pictures)
    if price is None:
        words = "They cost money, and the price is not known: give it in the generator's options."
        return DrawingCostView(n_pictures=n_pictures, is_charged=True, amount=None, currency="", words=words)
    words = f"Up to {n_pictures:,} pictures cost up to {price.amount:.2f} {price.currency} ({price.basis})."
    return DrawingCostView(n_pictures=n_pictures, is_charged=True, amount=price.amount, currency=price.currency, words=words)


def prompt_of(workspace: Workspace, class_name: str, caption: str) -> PromptView:
    """Return the prompt of a caption, and whether the generator is known to refuse it.

    Raises:
        DataError: if there is no such class.
    """
    workspace.samples.dataset.class_code(class_name)
    prompt = counterfactual_prompt(class_name, caption)
    generator, why_not = _generator(workspace)
    if not isinstance(generator, ChecksPrompts):
        return PromptView(prompt=prompt, refusal=why_not)
    try:
        generator.check_prompt(prompt)
    except RefusedPromptError as error:
        return PromptView(prompt=prompt, refusal=error.what)
    return PromptView(prompt=prompt, refusal="")


def kept_counterfactuals(workspace: Workspace) -> CounterfactualsView:
    """Return what captions did."""
    return CounterfactualsView(results=tuple(counterfactuals(workspace.project.store)))


def kept_searches(workspace: Workspace) -> SearchesView:
    """Return what searches found."""
    return SearchesView(results=tuple(searches(workspace.project.store)))


def drawn_picture(workspace: Workspace, digest: str, *, side: int) -> bytes | None:
    """Return a generated picture as a JPEG file, None if there is none whose content has this hash.

    Args:
        workspace: the project.
        digest: 64 hexadecimal digits; anything else names nothing, and what is found must have this very content.
        side: longest side in pixels.
    """
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):  # noqa: PLR2004 - sha256
        return None
    try:
        content = (workspace.project.store.drawn / file_of(digest)).read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != digest:
        return None
    return jpeg_of(content, side)


def _generator(workspace: Workspace) -> tuple[object, str]:
    """Return the generator, whatever it can do, or None and why nothing can be drawn with it; built once."""
    generator, why_not = cast(tuple[object, str], workspace.once("generator", lambda: _built(workspace)))
    return generator, why_not


def _built(workspace: Workspace) -> tuple[ImageGenerator | None, str]:
    project, prepared = workspace.project, workspace.prepared
    try:
        if prepared.classifier is None:
            raise ConfigError(
                "The project has only predictions: without the classifier nothing can be said of new pictures.",
                fix="Name it under [classifier] in weakspot.toml.",
            )
        if prepared.samples.dataset.task is Task.MULTI_LABEL:
            raise DataError("Pictures are drawn for classifiers with one label a picture only.")
        return build_generator(project.settings, project.folder, prepared, purpose="measure"), ""
    except WeakspotError as error:
        return None, f"{error.what} {error.fix or ''}".strip()


def _can_say(workspace: Workspace, generator: object) -> str:
    """Return what may be said to a generator that knows what it can draw; others take any words."""
    if not isinstance(generator, ChecksPrompts):
        return ""
    return str(workspace.once("what can be said", lambda: _said(generator)))


def _said(generator: ChecksPrompts) -> str:
    """Return what a generator answers to words that mean nothing: what it can draw."""
    try:
        generator.check_prompt(NONSENSE)
    except RefusedPromptError as error:
        return error.fix or ""
    except WeakspotError:
        return ""
    return ""


def _starts(workspace: Workspace) -> tuple[CaptionStart, ...]:
    record = workspace.record()
    if record is None:
        return ()
    found = [
        CaptionStart(class_name=one.class_name, title=one.title, caption=name.contrast)
        for one, _ in record.published()
        for name in one.names[:1]
        if name.contrast
    ]
    return tuple(found[:MOST_STARTS])
