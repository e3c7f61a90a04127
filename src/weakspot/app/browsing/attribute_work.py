"""Assigning attributes as work that pages start."""

from pydantic import JsonValue

from weakspot.app.attributing import with_attributes
from weakspot.app.browsing.work import Arguments
from weakspot.app.project import Project
from weakspot.app.wiring import build_engine
from weakspot.core.attributes import marked_attributes
from weakspot.core.run import StageProgress


def assign(project: Project, arguments: Arguments, progress: StageProgress) -> dict[str, JsonValue]:
    """Assign attributes to all samples; what was assigned before is taken, and of what people edited only what is new is told."""
    del arguments
    opened = Project(project.folder, project.settings, progress=progress)
    progress("prepare", 0, None)
    prepared = opened.prepared()
    samples, notes = with_attributes(
        prepared.samples,
        assistants=prepared.assistants,
        settings=opened.settings,
        store=opened.store,
        engine=build_engine(opened.settings),
        progress=opened.told("attributes"),
    )
    return {"n_attributes": len(marked_attributes(samples.dataset.table) or ()), "n_notes": len(notes)}
