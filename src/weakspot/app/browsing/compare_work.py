"""Comparing this project's classifier with another's, as work of its own."""

from pydantic import JsonValue

from weakspot.app.browsing.comparison_view import keep_comparison, place_of
from weakspot.app.browsing.work import Arguments
from weakspot.app.comparing import compare_projects
from weakspot.app.project import Project
from weakspot.core.errors import ConfigError
from weakspot.core.run import StageProgress

PATIENCE_SECONDS = 60.0


def compare(project: Project, arguments: Arguments, progress: StageProgress) -> dict[str, JsonValue]:
    """Compare with the project that is named by `other`, and keep what came out.

    Raises:
        ConfigError: if no project is named, or it is called like this one.
        DataError: if there is none of that name, or the two share no samples or classes.
    """
    other = arguments.get("other")
    if not isinstance(other, str) or not other:
        raise ConfigError("It is not said which project to compare with.", where="other")
    place = place_of(project.store, other)
    own = project.folder.resolve()
    if own.name == place.name:
        raise ConfigError("Two projects of the same name cannot be told apart.", given=other, fix="Rename one of the folders.")
    comparison = compare_projects([own, place], progress=progress)
    with project.store.writing(patience=PATIENCE_SECONDS):
        keep_comparison(project.store, other, comparison)
    return {"other": other, "n_samples": comparison.n_samples, "n_slices": len({one.slice_id for one in comparison.slices})}
