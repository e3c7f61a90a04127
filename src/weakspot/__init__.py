"""weakspot finds, names, proves and repairs the systematic failures of image classifiers.

Public names are loaded on first use, so that importing the package costs little. Requests go in and end with `Request`; what comes
back ends with `Result`.
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
    from weakspot.data.arrays import ArraySource
    from weakspot.data.open_source import open_source
    from weakspot.generate.counterfactuals import CounterfactualRequest, CounterfactualResult
    from weakspot.generate.generated_folder import GenerateRequest, GenerateResult
    from weakspot.generate.search_run import SearchRequest, SearchResult
    from weakspot.project.findings import Findings, FoundSlice, find
    from weakspot.project.nearest import NearestRequest, NearestResult
    from weakspot.project.project import Project
    from weakspot.repair.stage import RepairRequest
    from weakspot.run.ingestion import IngestResult
    from weakspot.run.phrase_questions import AskResult
    from weakspot.run.preparation import EmbedResult
    from weakspot.run.settings import Settings

__version__ = "0.2.0"

__all__ = [
    "ArraySource",
    "AskResult",
    "CounterfactualRequest",
    "CounterfactualResult",
    "Dataset",
    "EmbedResult",
    "Evidence",
    "FailureCriterion",
    "FailureSlice",
    "Findings",
    "FoundSlice",
    "GenerateRequest",
    "GenerateResult",
    "Head",
    "IngestResult",
    "NearestRequest",
    "NearestResult",
    "Project",
    "RepairPlan",
    "RepairRequest",
    "RepairResult",
    "RunRecord",
    "SampleSet",
    "SearchRequest",
    "SearchResult",
    "Settings",
    "Split",
    "Task",
    "Verdict",
    "WeakspotError",
    "__version__",
    "find",
    "open_source",
]

_HOMES = {
    "ArraySource": "weakspot.data.arrays",
    "AskResult": "weakspot.run.phrase_questions",
    "CounterfactualRequest": "weakspot.generate.counterfactuals",
    "CounterfactualResult": "weakspot.generate.counterfactuals",
    "Dataset": "weakspot.core.dataset",
    "EmbedResult": "weakspot.run.preparation",
    "Evidence": "weakspot.core.evidence",
    "FailureCriterion": "weakspot.core.failures",
    "FailureSlice": "weakspot.core.slices",
    "Findings": "weakspot.project.findings",
    "FoundSlice": "weakspot.project.findings",
    "GenerateRequest": "weakspot.generate.generated_folder",
    "GenerateResult": "weakspot.generate.generated_folder",
    "Head": "weakspot.core.heads",
    "IngestResult": "weakspot.run.ingestion",
    "NearestRequest": "weakspot.project.nearest",
    "NearestResult": "weakspot.project.nearest",
    "Project": "weakspot.project.project",
    "RepairPlan": "weakspot.core.repairs",
    "RepairRequest": "weakspot.repair.stage",
    "RepairResult": "weakspot.core.repairs",
    "RunRecord": "weakspot.core.run",
    "SampleSet": "weakspot.core.samples",
    "SearchRequest": "weakspot.generate.search_run",
    "SearchResult": "weakspot.generate.search_run",
    "Settings": "weakspot.run.settings",
    "Split": "weakspot.core.dataset",
    "Task": "weakspot.core.dataset",
    "Verdict": "weakspot.core.evidence",
    "WeakspotError": "weakspot.core.errors",
    "find": "weakspot.project.findings",
    "open_source": "weakspot.data.open_source",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'weakspot' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
