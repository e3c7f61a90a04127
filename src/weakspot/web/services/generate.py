"""Generated images: what can be asked for, what it costs, the work that makes them, and what was found on them.

Images are named and found by their content hash only.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, JsonValue, ValidationError

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError, RefusedPromptError, WeakspotError
from weakspot.core.roles import ChecksPrompts, CostsMoney, ImageGenerator
from weakspot.core.run import StageProgress
from weakspot.data.images import jpeg_of
from weakspot.generate.counterfactuals import (
    CounterfactualRate,
    CounterfactualRequest,
    CounterfactualResult,
    CounterfactualSeries,
    ShownImage,
    counterfactual_prompt,
    explanation,
    sentence,
)
from weakspot.generate.project_generator import build_generator
from weakspot.generate.search.series import CaptionTrial
from weakspot.generate.search_run import (
    SearchRecord,
    SearchRequest,
    finding_sentence,
    headline,
    phrase_of,
    what_it_means,
)
from weakspot.project.project import Project
from weakspot.run.settings import Settings
from weakspot.store import atomic
from weakspot.store.generated_images import file_of
from weakspot.store.project import ProjectStore
from weakspot.web.services.view import View
from weakspot.web.services.work import (
    MAX_BUDGET,
    MAX_EACH,
    AgreedCost,
    Captions,
    ClassName,
)
from weakspot.web.services.workspace import Workspace

FOLDER = "generation-results"
MAX_KEPT = 40
MAX_IMAGES = 24

Kind = Literal["counterfactuals", "searches"]


class GeneratedImageView(View):
    """One generated image.

    Args:
        digest: its content hash; the image is at `/api/generation/images/{digest}`.
        answer: what the classifier says of it.
        fails: whether that is a failure.
    """

    digest: str
    answer: str
    fails: bool


class CounterfactualRateView(CounterfactualRate, View):
    """One caption beside the unchanged images, in figures and words.

    Args:
        words: the same in a sentence; empty for the unchanged images.
        images: the first ones, in the order of the series.
    """

    words: str
    images: tuple[GeneratedImageView, ...]


class CounterfactualView(CounterfactualSeries, View):
    """A series of captions on the same images; all images are generated."""

    result_id: str
    created: str
    classifier_id: str = ""
    seed: int = 0
    baseline: CounterfactualRateView
    rates: tuple[CounterfactualRateView, ...]
    explanation: tuple[str, ...]


class CaptionTrialView(CaptionTrial, View):
    """One caption of a search, in figures and words.

    Args:
        phrase: the caption as a phrase for real images.
        words: the finding in a sentence; empty if it is none.
        digests: generated images that failed.
    """

    phrase: str
    words: str
    digests: tuple[str, ...]


class SearchView(View):
    """A search for failing captions; all images are generated."""

    result_id: str
    created: str
    class_name: str
    target: str | None
    generator: str
    headline: str
    n_images: int
    baseline: CaptionTrialView
    findings: tuple[CaptionTrialView, ...]
    trials: tuple[CaptionTrialView, ...]
    meaning: tuple[str, ...]
    notes: tuple[str, ...]


Result = TypeVar("Result", CounterfactualView, SearchView)


def keep_counterfactual(store: ProjectStore, result: CounterfactualResult) -> CounterfactualView:
    series = result.series
    views = [
        _rate_view(rate, row)
        for rate, row in zip((series.baseline, *series.rates), result.rows, strict=True)
    ]
    view = CounterfactualView(
        **{**dict(series), "baseline": views[0], "rates": tuple(views[1:])},
        result_id=_result_id(
            [series.class_name, series.generator_id, *(rate.caption for rate in series.rates)]
        ),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        explanation=tuple(explanation(series)),
    )
    _write(store, "counterfactuals", view.result_id, view)
    return view


def keep_search(store: ProjectStore, record: SearchRecord) -> SearchView:
    result = record.result
    view = SearchView(
        result_id=_result_id([result.class_name, result.target or "", record.started]),
        created=record.finished,
        class_name=result.class_name,
        target=result.target,
        generator=record.inputs.get("generator", ""),
        headline=headline(result),
        n_images=result.n_images,
        baseline=_trial_view(result.baseline, result.example_keys),
        findings=tuple(
            _trial_view(found.trial, found.example_keys, words=finding_sentence(found))
            for found in result.findings
        ),
        trials=tuple(_trial_view(trial, ()) for trial in result.trials),
        meaning=tuple(what_it_means(result, record.inputs))[:2],
        notes=result.notes,
    )
    _write(store, "searches", view.result_id, view)
    return view


def _kept(store: ProjectStore, kind: Kind, model: type[Result]) -> list[Result]:
    """Return results of a kind, newest first; files of another version of the program are left out."""
    found = []
    for path in _files(store, kind):
        try:
            found.append(model.model_validate_json(path.read_bytes()))
        except (OSError, ValidationError):
            continue
    return sorted(found, key=lambda one: (one.created, one.result_id), reverse=True)


def _files(store: ProjectStore, kind: Kind) -> list[Path]:
    return sorted((store.data / FOLDER / kind).glob("*.json"))


def _write(store: ProjectStore, kind: Kind, result_id: str, view: View) -> None:
    folder = store.data / FOLDER / kind
    with store.writing(patience=30.0):
        folder.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(folder / f"{result_id}.json", view.model_dump_json().encode())
        by_age = sorted(_files(store, kind), key=lambda path: path.stat().st_mtime)
        for path in by_age[: max(0, len(by_age) - MAX_KEPT)]:
            path.unlink(missing_ok=True)


def _rate_view(rate: CounterfactualRate, row: Sequence[ShownImage]) -> CounterfactualRateView:
    shown = [
        GeneratedImageView(digest=one.key, answer=one.answer, fails=one.fails)
        for one in row
        if one.key and one.fails is not None
    ]
    return CounterfactualRateView(
        **dict(rate),
        words=sentence(rate) if rate.caption else "",
        images=tuple(shown[:MAX_IMAGES]),
    )


def _trial_view(trial: CaptionTrial, keys: Sequence[str], *, words: str = "") -> CaptionTrialView:
    return CaptionTrialView(
        **dict(trial),
        phrase=phrase_of(trial.caption),
        words=words,
        digests=tuple(keys[:MAX_IMAGES]),
    )


def _result_id(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


MAX_STARTS = 100
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


def setup(workspace: Workspace) -> GenerationSetupView:
    settings = workspace.project.settings
    generator, why_not = _generator(workspace)
    return GenerationSetupView(
        class_names=tuple(workspace.samples.dataset.class_names),
        generator=settings.generator.name,
        why_not=why_not,
        can_say=_can_say(workspace, generator),
        starts=_starts(workspace),
        budget=min(settings.search.budget, MAX_BUDGET),
        most_budget=MAX_BUDGET,
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


def kept_counterfactuals(workspace: Workspace) -> list[CounterfactualView]:
    """Return all series that were kept, newest first."""
    return _kept(workspace.project.store, "counterfactuals", CounterfactualView)


def kept_searches(workspace: Workspace) -> list[SearchView]:
    """Return all searches that were kept, newest first."""
    return _kept(workspace.project.store, "searches", SearchView)


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
    return tuple(found[:MAX_STARTS])


def counterfactual(
    project: Project,
    progress: StageProgress,
    *,
    class_name: ClassName,
    captions: Annotated[Captions, Field(min_length=1)],
    n_each: Annotated[int, Field(ge=1, le=MAX_EACH)] = 24,
    agreed_cost: AgreedCost = 0.0,
) -> dict[str, JsonValue]:
    """Generate images of a class with one thing changed, measure them, and keep the result for the page.

    Args:
        project: the project.
        progress: called with the stage.
        class_name: what the images show.
        captions: what is changed in them.
        n_each: images for every caption.
        agreed_cost: what the person agreed to pay at most.
    """
    opened = Project(project.folder, _agreed(project.settings, agreed_cost), progress=progress)
    progress("draw", 0, None)
    request = CounterfactualRequest(class_name=class_name, captions=captions, n_each=n_each)
    kept = keep_counterfactual(opened.store, opened.counterfactual(request))
    return {"result_id": kept.result_id, "class_name": class_name, "n_captions": len(kept.rates)}


def search(
    project: Project,
    progress: StageProgress,
    *,
    class_name: ClassName,
    target: Annotated[str, Field(max_length=500)] = "",
    captions: Captions = (),
    budget: Annotated[int, Field(ge=16, le=MAX_BUDGET)] | None = None,
    agreed_cost: AgreedCost = 0.0,
) -> dict[str, JsonValue]:
    """Search for captions on whose images the classifier fails more often, and keep the result for the page.

    Args:
        project: the project.
        progress: called with the stage.
        class_name: whose failures.
        target: count only failures that are taken for this class; any if empty.
        captions: a person's own captions, measured first.
        budget: most images in all.
        agreed_cost: what the person agreed to pay at most.
    """
    settings = _agreed(project.settings, agreed_cost)
    if budget is not None:
        settings = settings.model_copy(
            update={"search": settings.search.model_copy(update={"budget": budget})}
        )
    opened = Project(project.folder, settings, progress=progress)
    progress("search", 0, None)
    request = SearchRequest(class_name=class_name, target=target, captions=captions)
    kept = keep_search(opened.store, opened.search(request).record)
    return {
        "result_id": kept.result_id,
        "class_name": class_name,
        "n_findings": len(kept.findings),
    }


def _agreed(settings: Settings, cost: float) -> Settings:
    if cost <= settings.generator.max_cost:
        return settings
    return settings.model_copy(
        update={"generator": settings.generator.model_copy(update={"max_cost": cost})}
    )
