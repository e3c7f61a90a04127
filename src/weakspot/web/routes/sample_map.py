"""Map: samples in two dimensions, and what a lasso holds."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Body, Path, Query
from pydantic import Field

from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Parts, ProjectReader
from weakspot.web.services import map_colours, sample_map
from weakspot.web.services import map_colours as map_selection
from weakspot.web.services.images import ListedImage
from weakspot.web.services.map_colours import MapColouringsView, MapColoursView, MapSelectionView
from weakspot.web.services.sample_map import LayoutName, MapView

router = APIRouter(prefix="/api", tags=["map"])

MAX_ROW = (1 << 31) - 1
Row = Annotated[int, Field(ge=0, le=MAX_ROW)]
Rows = Annotated[list[Row], Body(max_length=sample_map.MAX_POINTS)]
Title = Annotated[
    str | None,
    Body(max_length=1000, description="The class; the one with most selected samples by default."),
]


@router.get("/map")
def places(_person: ProjectReader, parts: Parts, layout: LayoutName = "pca") -> MapView:
    """Return where samples are."""
    return sample_map.map_view(parts.workspace, layout)


@router.get("/map/colourings")
def colourings(_person: ProjectReader, parts: Parts) -> MapColouringsView:
    """Return what the map can be coloured by."""
    return map_colours.colourings(parts.workspace)


@router.get("/map/colours")
def colours(
    _person: ProjectReader, parts: Parts, by: Annotated[str, Query(min_length=1, max_length=1200)]
) -> MapColoursView:
    """Return what every point has."""
    return map_colours.colours(parts.workspace, by)


@router.get("/map/samples/{row}")
def sample(
    _person: ProjectReader, parts: Parts, row: Annotated[int, Path(ge=0, le=MAX_ROW)]
) -> ListedImage:
    """Return a sample of the map in words."""
    found = sample_map.map_sample(parts.workspace, row)
    if found is None:
        raise RefusedError(404, "There is no such sample on the map.")
    return found


@router.post("/map/selection")
def selection(
    _person: ProjectReader, parts: Parts, rows: Rows, title: Title = None
) -> MapSelectionView:
    """Return what selected samples have in common; nothing is changed or tested."""
    return map_selection.selection(parts.workspace, np.array(rows, dtype=np.int64), title)
