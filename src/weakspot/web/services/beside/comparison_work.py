"""Comparing with another project as work that pages start."""

from pydantic import JsonValue

from weakspot.compare.projects import SharedPredictions, compare_projects
from weakspot.core.errors import ConfigError
from weakspot.core.run import StageProgress
from weakspot.project.project import Project
from weakspot.web.services.beside.two_models import keep_failures
from weakspot.web.services.slices.comparison import keep_comparison, place_of
from weakspot.web.services.work import Arguments

PATIENCE_SECONDS = 60.0


def compare(
    project: Project, arguments: Arguments, progress: StageProgress
) -> dict[str, JsonValue]:
    """Compare with the project that is named by `other`, and keep what came out.

    Raises:
        ConfigError: if no project is named, or it is called like this one.
        DataError: if there is none of that name, or the two share no samples or classes.
    """
    other = arguments.get("other")
    if not isinstance(other, str) or not other:
        raise ConfigError("No project to compare with is named.", where="other")
    place = place_of(project.store, other)
    own = project.folder.resolve()
    if own.name == place.name:
        raise ConfigError(
            "Two projects of the same name cannot be distinguished.",
            given=other,
            fix="Rename one of the folders.",
        )
    seen: list[SharedPredictions] = []
    comparison = compare_projects([own, place], progress=progress, watch=seen.append)
    shared = seen[0]
    failed = shared.failed[own.name], shared.failed[place.name]
    with project.store.writing(patience=PATIENCE_SECONDS):
        keep_comparison(project.store, other, comparison)
        keep_failures(project.store, other, shared.sample_ids, failed, shared.answers[place.name])
    return {
        "other": other,
        "n_samples": comparison.n_samples,
        "n_slices": len({one.slice_id for one in comparison.slices}),
    }
