"""Attributes: values by result, editing, combinations."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Owner, Parts, ProjectReader
from weakspot.web.services.attributes import (
    MAX_CHOSEN,
    MAX_ID_LENGTH,
    MAX_NAME_LENGTH,
    AttributeSamples,
    AttributesView,
    ChosenValue,
    EditRequest,
    EditResult,
    EditsView,
    ProposedValuesView,
    Result,
    attribute_histograms,
    attribute_samples,
    edit_attributes,
    edits_of,
    propose_values,
)
from weakspot.web.services.combinations import (
    MAX_SHOWN,
    MIN_SUPPORT,
    CombinationsView,
    combinations,
    prove_combination,
)
from weakspot.web.services.slice_editing import ChangedSlice
from weakspot.web.services.view import View

router = APIRouter(prefix="/api/attributes", tags=["attributes"])

MAX_ROW = 2**31 - 1
MAX_SAMPLES = 200

Title = Annotated[
    str | None,
    Query(
        max_length=MAX_ID_LENGTH,
        description="A class, as people read it; all classes if not given.",
    ),
]
Ids = Annotated[list[Annotated[str, Field(max_length=MAX_ID_LENGTH)]], Query(max_length=MAX_CHOSEN)]


class SamplesQuery(View):
    """Which samples are wanted.

    Args:
        attributes: ids of one to three attributes.
        values: ids of their values, in the same order.
        title: a class; all if not given.
        result: only right or only wrong ones.
        offset: place of the first sample wanted.
        limit: how many, at most.
    """

    attributes: list[Annotated[str, Field(max_length=MAX_ID_LENGTH)]] = Field(
        min_length=1, max_length=MAX_CHOSEN
    )
    values: list[Annotated[str, Field(max_length=MAX_ID_LENGTH)]] = Field(
        min_length=1, max_length=MAX_CHOSEN
    )
    title: str | None = Field(default=None, max_length=MAX_ID_LENGTH)
    result: Result | None = None
    offset: int = Field(default=0, ge=0, le=MAX_ROW)
    limit: int = Field(default=100, ge=1, le=MAX_SAMPLES)


class NameRequest(View):
    """The name of an attribute that values are wanted for."""

    name: str = Field(min_length=1, max_length=MAX_NAME_LENGTH)


class ProofRequest(View):
    """A combination that somebody stands by.

    Args:
        title: the class.
        values: one value each of one to three attributes.
    """

    title: str = Field(max_length=MAX_ID_LENGTH)
    values: list[ChosenValue] = Field(min_length=1, max_length=MAX_CHOSEN)


@router.get("")
def histograms(_person: ProjectReader, parts: Parts, title: Title = None) -> AttributesView:
    """Return all attributes with right and wrong samples of every value, on the discovery half."""
    return attribute_histograms(parts.workspace, title)


@router.get("/combinations")
def combined(
    _person: ProjectReader,
    parts: Parts,
    attributes: Ids = [],  # noqa: B006 - the framework copies it
    title: Title = None,
    min_support: Annotated[int, Query(ge=MIN_SUPPORT, le=MAX_ROW)] = 10,
    limit: Annotated[int, Query(ge=1, le=MAX_SHOWN)] = 100,
) -> CombinationsView:
    """Return all combinations of up to three chosen attributes, or the worst over all attributes if none is chosen."""
    return combinations(
        parts.workspace, title=title, chosen=attributes, min_support=min_support, limit=limit
    )


@router.get("/samples")
def samples(
    _person: ProjectReader, parts: Parts, paging: Annotated[SamplesQuery, Query()]
) -> AttributeSamples:
    """Return a page of the samples of the discovery half that have all the values."""
    if len(paging.attributes) != len(paging.values):
        raise RefusedError(422, "Give as many values as attributes.", where="values")
    chosen = [
        ChosenValue(attribute=attribute, value=value)
        for attribute, value in zip(paging.attributes, paging.values, strict=True)
    ]
    return attribute_samples(
        parts.workspace,
        chosen,
        title=paging.title,
        result=paging.result,
        offset=paging.offset,
        limit=paging.limit,
    )


@router.get("/edits")
def edits(_person: ProjectReader, parts: Parts) -> EditsView:
    """Return all edits, newest first."""
    return edits_of(parts.workspace)


@router.post("/edits")
def edit(request: EditRequest, person: Owner, parts: Parts) -> EditResult:
    """Change the attributes; refused with 409 if somebody else has edited since the version that was seen."""
    return edit_attributes(parts.workspace, request, by=person.name)


@router.post("/proposals")
def propose(request: NameRequest, _person: Owner, parts: Parts) -> ProposedValuesView:
    """Return values for an attribute, from whoever can be asked."""
    return propose_values(parts.workspace, request.name)


@router.post("/proofs")
def prove(request: ProofRequest, person: Owner, parts: Parts) -> ChangedSlice:
    """Make a slice of a combination and prove it on the confirmation half, together with all others of the run."""
    return prove_combination(parts.workspace, request.title, request.values, by=person.name)
