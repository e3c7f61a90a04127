"""What every kind of work can be told, and nothing else: unknown keys are refused before a process is started."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from weakspot.app.browsing.drawing_arguments import CounterfactualArguments, SearchArguments
from weakspot.app.browsing.view import View

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
"""Ids of runs and slices."""
PartName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]*$", max_length=200)]
"""Registered names of methods; those of other packages have a stroke in them."""


class RunArguments(View):
    """How failures are looked for.

    Args:
        methods: registered discoverers, or `all`; those of weakspot.toml if empty.
    """

    methods: tuple[PartName, ...] = Field(default=(), max_length=50)


class RepairArguments(View):
    """What is repaired, and how.

    Args:
        run: the newest if none is named.
        slice_ids: confirmed slices; all of them that no other explains if empty.
        strategy: a registered repairer; the one of weakspot.toml if none is named.
        is_comparison: run every strategy that the samples allow.
        budget: samples that may be taken from the pool; as in weakspot.toml if None.
    """

    run: Identifier | None = None
    slice_ids: tuple[Identifier, ...] = Field(default=(), max_length=200)
    strategy: PartName | None = None
    is_comparison: bool = False
    budget: int | None = Field(default=None, ge=0, le=10_000_000)


class ReportArguments(View):
    """Which run is reported on: the newest if none is named."""

    run: Identifier | None = None


class StudyRepairsArguments(View):
    """Which study's phrases are repaired by; which ones was written down before."""

    study: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class AttributesArguments(View):
    """Nothing: attributes are assigned as they were planned."""


class MapArguments(View):
    """Which layout of the map is made."""

    layout: Literal["umap"] = "umap"


class CompareArguments(View):
    """Which project is compared with, by name; `serve` was told where it is."""

    other: Annotated[str, StringConstraints(min_length=1, max_length=255)]


ARGUMENTS: dict[str, type[View]] = {
    "attributes": AttributesArguments,
    "map": MapArguments,
    "compare": CompareArguments,
    "run": RunArguments,
    "repair": RepairArguments,
    "report": ReportArguments,
    "search": SearchArguments,
    "counterfactual": CounterfactualArguments,
    "study-repairs": StudyRepairsArguments,
}
