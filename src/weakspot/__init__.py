"""weakspot finds, names, proves and repairs the systematic failures of image classifiers.

Public names are loaded on first use, so that importing the package costs little.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weakspot.core.dataset import Dataset, Split, Task
    from weakspot.core.errors import WeakspotError
    from weakspot.core.evidence import Evidence, Verdict
    from weakspot.core.failures import FailureCriterion
    from weakspot.core.heads import Head
    from weakspot.core.repairs import RepairPlan, RepairResult
    from weakspot.core.run import RunRecord
    from weakspot.core.samples import SampleSet
    from weakspot.core.slices import FailureSlice
    from weakspot.generation.counterfactuals import CounterfactualRequest
    from weakspot.generation.search_run import SearchCall
    from weakspot.ingest.arrays import ArraySource
    from weakspot.ingest.open_source import open_source
    from weakspot.pipeline.settings import Settings
    from weakspot.project.project import Project

__version__ = "0.2.0"

__all__ = [
    "ArraySource",
    "CounterfactualRequest",
    "Dataset",
    "Evidence",
    "FailureCriterion",
    "FailureSlice",
    "Head",
    "Project",
    "RepairPlan",
    "RepairResult",
    "RunRecord",
    "SampleSet",
    "SearchCall",
    "Settings",
    "Split",
    "Task",
    "Verdict",
    "WeakspotError",
    "__version__",
    "open_source",
]

_HOMES = {
    "ArraySource": "weakspot.ingest.arrays",
    "CounterfactualRequest": "weakspot.generation.counterfactuals",
    "Dataset": "weakspot.core.dataset",
    "Evidence": "weakspot.core.evidence",
    "FailureCriterion": "weakspot.core.failures",
    "FailureSlice": "weakspot.core.slices",
    "Head": "weakspot.core.heads",
    "Project": "weakspot.project.project",
    "RepairResult": "weakspot.core.repairs",
    "RepairPlan": "weakspot.core.repairs",
    "RunRecord": "weakspot.core.run",
    "SampleSet": "weakspot.core.samples",
    "SearchCall": "weakspot.generation.search_run",
    "Settings": "weakspot.pipeline.settings",
    "Split": "weakspot.core.dataset",
    "Task": "weakspot.core.dataset",
    "Verdict": "weakspot.core.evidence",
    "WeakspotError": "weakspot.core.errors",
    "open_source": "weakspot.ingest.open_source",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'weakspot' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
