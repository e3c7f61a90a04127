"""Drawing as work that pages start: measure captions, and search for captions that make the classifier fail."""

from pydantic import JsonValue

from weakspot.app.browsing import drawing_results
from weakspot.app.browsing.drawing_arguments import CounterfactualArguments, SearchArguments
from weakspot.app.browsing.work import Arguments
from weakspot.app.config import Settings
from weakspot.app.counterfactuals import CounterfactualRequest
from weakspot.app.project import Project
from weakspot.app.searching import SearchCall
from weakspot.core.run import StageProgress


def counterfactual(project: Project, arguments: Arguments, progress: StageProgress) -> dict[str, JsonValue]:
    """Draw pictures of a class with one thing changed, measure them, and keep the result for the page."""
    asked = CounterfactualArguments.model_validate(arguments)
    opened = Project(project.folder, _agreed(project.settings, asked.agreed_cost), progress=progress)
    progress("draw", 0, None)
    request = CounterfactualRequest(class_name=asked.class_name, captions=asked.captions, n_each=asked.n_each)
    kept = drawing_results.keep_counterfactual(opened.store, opened.counterfactual(request))
    return {"result_id": kept.result_id, "class_name": asked.class_name, "n_captions": len(kept.rates)}


def search(project: Project, arguments: Arguments, progress: StageProgress) -> dict[str, JsonValue]:
    """Search for captions on whose pictures the classifier fails more often, and keep the result for the page."""
    asked = SearchArguments.model_validate(arguments)
    settings = _agreed(project.settings, asked.agreed_cost)
    if asked.budget is not None:
        settings = settings.model_copy(update={"search": settings.search.model_copy(update={"budget": asked.budget})})
    opened = Project(project.folder, settings, progress=progress)
    progress("search", 0, None)
    call = SearchCall(class_name=asked.class_name, target=asked.target, captions=asked.captions)
    kept = drawing_results.keep_search(opened.store, opened.search(call).record)
    return {"result_id": kept.result_id, "class_name": asked.class_name, "n_findings": len(kept.findings)}


def _agreed(settings: Settings, cost: float) -> Settings:
    """Return settings that allow what a person agreed to pay for this work, on top of nothing else."""
    if cost <= settings.generator.max_cost:
        return settings
    return settings.model_copy(update={"generator": settings.generator.model_copy(update={"max_cost": cost})})
