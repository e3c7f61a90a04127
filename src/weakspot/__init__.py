"""weakspot finds, names, proves and repairs the systematic failures of image classifiers.

Public names are loaded on first use, so that importing the package costs little. Requests go in and end with `Request`; what comes
back ends with `Result`. Names that are deprecated say so when they are used, and go no sooner than two minor versions later.
"""

import warnings
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
    from weakspot.findings.find import find
    from weakspot.findings.findings import Findings
    from weakspot.findings.found import FoundSlice
    from weakspot.generation.counterfactuals import CounterfactualRequest, CounterfactualResult
    from weakspot.generation.generate import GenerateRequest, GenerateResult
    from weakspot.generation.search_run import SearchRequest, SearchResult
    from weakspot.ingest.arrays import ArraySource
    from weakspot.ingest.open_source import open_source
    from weakspot.nearest.images import NearestRequest, NearestResult
    from weakspot.pipeline.ingestion import IngestResult
    from weakspot.pipeline.phrase_answers import AskResult
    from weakspot.pipeline.preparation import EmbedResult
    from weakspot.pipeline.settings import Settings
    from weakspot.project.project import Project
    from weakspot.repair.stage import RepairRequest

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
    "ArraySource": "weakspot.ingest.arrays",
    "AskResult": "weakspot.pipeline.phrase_answers",
    "CounterfactualRequest": "weakspot.generation.counterfactuals",
    "CounterfactualResult": "weakspot.generation.counterfactuals",
    "Dataset": "weakspot.core.dataset",
    "EmbedResult": "weakspot.pipeline.preparation",
    "Evidence": "weakspot.core.evidence",
    "FailureCriterion": "weakspot.core.failures",
    "FailureSlice": "weakspot.core.slices",
    "Findings": "weakspot.findings.findings",
    "FoundSlice": "weakspot.findings.found",
    "GenerateRequest": "weakspot.generation.generate",
    "GenerateResult": "weakspot.generation.generate",
    "Head": "weakspot.core.heads",
    "IngestResult": "weakspot.pipeline.ingestion",
    "NearestRequest": "weakspot.nearest.images",
    "NearestResult": "weakspot.nearest.images",
    "Project": "weakspot.project.project",
    "RepairPlan": "weakspot.core.repairs",
    "RepairRequest": "weakspot.repair.stage",
    "RepairResult": "weakspot.core.repairs",
    "RunRecord": "weakspot.core.run",
    "SampleSet": "weakspot.core.samples",
    "SearchRequest": "weakspot.generation.search_run",
    "SearchResult": "weakspot.generation.search_run",
    "Settings": "weakspot.pipeline.settings",
    "Split": "weakspot.core.dataset",
    "Task": "weakspot.core.dataset",
    "Verdict": "weakspot.core.evidence",
    "WeakspotError": "weakspot.core.errors",
    "find": "weakspot.findings.find",
    "open_source": "weakspot.ingest.open_source",
}
_RENAMED = {"SearchCall": "SearchRequest"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        message = f"weakspot.{name} is called weakspot.{_RENAMED[name]} now."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    if name not in _HOMES:
        message = f"module 'weakspot' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
