"""What can be generated in a project, what it costs, and the work that does it; images are found by their content hash."""

import hashlib

from pydantic import JsonValue

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError, RefusedPromptError, WeakspotError
from weakspot.core.roles import ChecksPrompts, CostsMoney, ImageGenerator
from weakspot.core.run import StageProgress
from weakspot.generation.counterfactuals import CounterfactualRequest
from weakspot.generation.search.counterfactuals import counterfactual_prompt
from weakspot.generation.search_run import SearchRequest
from weakspot.generation.service.generator_choice import build_generator
from weakspot.media.images import jpeg_of
from weakspot.pipeline.settings import Settings
from weakspot.project.project import Project
from weakspot.store.generated_images import file_of
from weakspot.web.services.generation import results as generation_results
from weakspot.web.services.generation.results import (
    CounterfactualView,
    SearchView,
    counterfactuals,
    searches,
)
from weakspot.web.services.view import View
from weakspot.web.services.work import (
    MOST_BUDGET,
    Arguments,
    CounterfactualArguments,
    SearchArguments,
)
from weakspot.web.services.workspace import Workspace

MOST_STARTS = 100
NONSENSE = "xqzv"


class CaptionStart(View):
    """A caption to start from: the words of a confirmed slice."""

    class_name: str
    title: str
    caption: str


class GenerationSetupView(View):
    """What can be generated here.

    Args:
        class_names: what images can be generated of.
        generator: registered name of the generator.
        why_not: why nothing can be generated; empty if something can.
        can_say: what captions may say, in a sentence; empty if the generator takes any words.
        starts: words of confirmed slices.
        budget: images that a search may generate by default.
        most_budget: most that a page may ask for.
        is_charged: whether images cost money.
    """

    class_names: tuple[str, ...]
    generator: str
    why_not: str
    can_say: str
    starts: tuple[CaptionStart, ...]
    budget: int
    most_budget: int
    is_charged: bool


class GenerationCostView(View):
    """What images cost at most.

    Args:
        n_images: how many.
        is_charged: whether they cost money at all.
        amount: None if it is not known.
        currency: empty if nothing is charged.
        words: the same in a sentence.
    """

    n_images: int
    is_charged: bool
    amount: float | None
    currency: str
    words: str


class PromptView(View):
    """A caption as the generator gets it.

    Args:
        prompt: the whole words.
        refusal: why it cannot be generated, and what can; empty if that is known only when it is tried, or it can.
    """

    prompt: str
    refusal: str


class CounterfactualsView(View):
    """All series that were kept, newest first."""

    results: tuple[CounterfactualView, ...]


class SearchesView(View):
    """All searches that were kept, newest first."""

    results: tuple[SearchView, ...]


def setup(workspace: Workspace) -> GenerationSetupView:
    settings = workspace.project.settings
    generator, why_not = _generator(workspace)
    return GenerationSetupView(
        class_names=tuple(workspace.samples.dataset.class_names),
        generator=settings.generator.name,
        why_not=why_not,
        can_say=_can_say(workspace, generator),
        starts=_starts(workspace),
        budget=min(settings.search.budget, MOST_BUDGET),
        most_budget=MOST_BUDGET,
        is_charged=isinstance(generator, CostsMoney),
    )


def cost(workspace: Workspace, n_images: int) -> GenerationCostView:
    """Return what so many images cost, before any is asked for."""
    generator, _ = _generator(workspace)
    if not isinstance(generator, CostsMoney):
        return GenerationCostView(
            n_images=n_images, is_charged=False, amount=0.0, currency="", words="They cost nothing."
        )
    price = generator.cost_of(n_images)
    if price is None:
        words = "They cost money, and the price is not known: give it in the generator's options."
        return GenerationCostView(
            n_images=n_images, is_charged=True, amount=None, currency="", words=words
        )
    words = (
        f"Up to {n_images:,} images cost up to {price.amount:.2f} {price.currency} ({price.basis})."
    )
    return GenerationCostView(
        n_images=n_images,
        is_charged=True,
        amount=price.amount,
        currency=price.currency,
        words=words,
    )


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
    return CounterfactualsView(results=tuple(counterfactuals(workspace.project.store)))


def kept_searches(workspace: Workspace) -> SearchesView:
    return SearchesView(results=tuple(searches(workspace.project.store)))


def generated_image(workspace: Workspace, digest: str, *, side: int) -> bytes | None:
    """Return a generated image as a JPEG file, None if there is none whose content has this hash.

    Args:
        workspace: the project.
        digest: 64 hexadecimal digits; anything else names nothing, and what is found must have this very content.
        side: longest side in pixels.
    """
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):  # noqa: PLR2004 - sha256
        return None
    try:
        content = (workspace.project.store.generated / file_of(digest)).read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != digest:
        return None
    return jpeg_of(content, side)


def _generator(workspace: Workspace) -> tuple[object, str]:
    """Return the generator, whatever it can do, or None and why nothing can be generated with it; built once."""
    return workspace.once("generator", lambda: _build(workspace))


def _build(workspace: Workspace) -> tuple[ImageGenerator | None, str]:
    project, prepared = workspace.project, workspace.prepared
    try:
        if prepared.classifier is None:
            raise ConfigError(
                "The project has only predictions: without the classifier new images cannot be classified.",
                fix="Name it under [classifier] in weakspot.toml.",
            )
        if prepared.samples.dataset.task is Task.MULTI_LABEL:
            raise DataError("Images are generated for classifiers with one label an image only.")
        return build_generator(
            project.settings,
            project.folder,
            prepared,
            purpose="measure",
            store=project.store,
        ), ""
    except WeakspotError as error:
        return None, f"{error.what} {error.fix or ''}".strip()


def _can_say(workspace: Workspace, generator: object) -> str:
    """Return which words a generator takes that knows what it can generate; others take any words."""
    if not isinstance(generator, ChecksPrompts):
        return ""
    return workspace.once("words of the generator", lambda: _allowed_words(generator))


def _allowed_words(generator: ChecksPrompts) -> str:
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
        CaptionStart(class_name=one.class_name, title=one.title, caption=one.name.contrast)
        for one, _ in record.published()
        if one.name is not None and one.name.contrast
    ]
    return tuple(found[:MOST_STARTS])


def counterfactual(
    project: Project, arguments: Arguments, progress: StageProgress
) -> dict[str, JsonValue]:
    """Generate images of a class with one thing changed, measure them, and keep the result for the page."""
    asked = CounterfactualArguments.model_validate(arguments)
    opened = Project(
        project.folder, _agreed(project.settings, asked.agreed_cost), progress=progress
    )
    progress("draw", 0, None)
    request = CounterfactualRequest(
        class_name=asked.class_name, captions=asked.captions, n_each=asked.n_each
    )
    kept = generation_results.keep_counterfactual(opened.store, opened.counterfactual(request))
    return {
        "result_id": kept.result_id,
        "class_name": asked.class_name,
        "n_captions": len(kept.rates),
    }


def search(project: Project, arguments: Arguments, progress: StageProgress) -> dict[str, JsonValue]:
    """Search for captions on whose images the classifier fails more often, and keep the result for the page."""
    asked = SearchArguments.model_validate(arguments)
    settings = _agreed(project.settings, asked.agreed_cost)
    if asked.budget is not None:
        settings = settings.model_copy(
            update={"search": settings.search.model_copy(update={"budget": asked.budget})}
        )
    opened = Project(project.folder, settings, progress=progress)
    progress("search", 0, None)
    call = SearchRequest(class_name=asked.class_name, target=asked.target, captions=asked.captions)
    kept = generation_results.keep_search(opened.store, opened.search(call).record)
    return {
        "result_id": kept.result_id,
        "class_name": asked.class_name,
        "n_findings": len(kept.findings),
    }


def _agreed(settings: Settings, cost: float) -> Settings:
    if cost <= settings.generator.max_cost:
        return settings
    return settings.model_copy(
        update={"generator": settings.generator.model_copy(update={"max_cost": cost})}
    )
