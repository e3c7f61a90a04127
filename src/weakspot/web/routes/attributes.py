"""Attributes: values by result, editing, combinations."""

from typing import Annotated

from fastapi import APIRouter, Body, Query

from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Owner, Parts, ProjectReader
from weakspot.web.services.attributes import (
    MAX_CHOSEN,
    AttributesView,
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
from weakspot.web.services.samples import ShownSamples
from weakspot.web.services.slice_editing import ChangedSlice
from weakspot.words.editing import MAX_ID_LENGTH, MAX_NAME_LENGTH, Identifier

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
Ids = Annotated[list[Identifier], Query(max_length=MAX_CHOSEN)]


NewName = Annotated[str, Body(embed=True, min_length=1, max_length=MAX_NAME_LENGTH)]
ProvenClass = Annotated[str, Body(max_length=MAX_ID_LENGTH)]
ProvenValues = Annotated[dict[Identifier, Identifier], Body(min_length=1, max_length=MAX_CHOSEN)]
"""Ids of one to three attributes, and of the value of each."""
ChosenIds = Annotated[list[Identifier], Query(min_length=1, max_length=MAX_CHOSEN)]


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
    _person: ProjectReader,
    parts: Parts,
    attributes: ChosenIds,
    values: ChosenIds,
    title: Title = None,
    result: Result | None = None,
    offset: Annotated[int, Query(ge=0, le=MAX_ROW)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_SAMPLES)] = 100,
) -> ShownSamples:
    """Return a page of the samples of the discovery half that have the value of every attribute, named in the same order."""
    if len(attributes) != len(values) or len(set(attributes)) < len(attributes):
        raise RefusedError(422, "Give one value of each attribute.", where="values")
    chosen = dict(zip(attributes, values, strict=True))
    return attribute_samples(
        parts.workspace, chosen, title=title, result=result, offset=offset, limit=limit
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
def propose(name: NewName, _person: Owner, parts: Parts) -> ProposedValuesView:
    """Return values for an attribute, from whoever can be asked."""
    return propose_values(parts.workspace, name)


@router.post("/proofs")
def prove(title: ProvenClass, values: ProvenValues, person: Owner, parts: Parts) -> ChangedSlice:
    """Make a slice of a combination and prove it on the confirmation half, together with all others of the run."""
    return prove_combination(parts.workspace, title, values, by=person.name)
