"""Measured properties of images as columns of words."""

from collections.abc import Iterator

import numpy as np

from weakspot.assign.bins import binned, words_column
from weakspot.assign.columns import AssignedColumn, LeftOut
from weakspot.assign.properties import (
    COLOUR_COLUMN,
    COLOUR_NAMES,
    DOMINANT_COLOUR,
    DOMINANT_SHARE,
    MIXED,
    NUMBER_PROPERTIES,
    SHARE_COLUMN,
    SIZE_PROPERTIES,
    NumberProperty,
)
from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray
from weakspot.core.attributes import Attribute, AttributeValue

PIXELS_IN_MEGAPIXEL = 1e6


def property_columns(
    measures: FloatArray, reference_rows: IntArray
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield a column for each measured property, from measures [n, 7] of `ImageProperties`; NaN where there was no image."""
    for place, found in enumerate(NUMBER_PROPERTIES):
        yield _numbers(found, np.asarray(measures[:, place], dtype=np.float64), reference_rows)
    yield _dominant(np.asarray(measures[:, COLOUR_COLUMN]), np.asarray(measures[:, SHARE_COLUMN]))


def size_columns(
    widths: AnyArray, heights: AnyArray, reference_rows: IntArray
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield columns for the size and the aspect of images, from their pixels [n]; 0 where there is no image."""
    across, down = (
        np.where(np.asarray(side) > 0, np.asarray(side, dtype=np.float64), np.nan)
        for side in (widths, heights)
    )
    for found, numbers in zip(
        SIZE_PROPERTIES, (across * down / PIXELS_IN_MEGAPIXEL, across / down), strict=True
    ):
        yield _numbers(found, numbers, reference_rows)


def _numbers(
    found: NumberProperty, numbers: DoubleArray, reference_rows: IntArray
) -> AssignedColumn | LeftOut:
    bins = binned(numbers, reference_rows, found.words)
    if bins is None:
        return LeftOut(name=found.name, why="all images are alike in it")
    attribute = Attribute(
        name=found.name,
        column=found.name,
        source="property",
        values=bins.values,
        cut_points=bins.cut_points,
        missing_share=bins.missing_share,
    )
    return AssignedColumn(attribute=attribute, column=bins.column)


def _dominant(codes: FloatArray, shares: FloatArray) -> AssignedColumn | LeftOut:
    names = (*COLOUR_NAMES, MIXED)
    known = np.isfinite(codes)
    named = np.where(shares >= DOMINANT_SHARE, np.nan_to_num(codes), names.index(MIXED)).astype(
        np.int64
    )
    counts = np.bincount(named[known], minlength=len(names))
    if (counts > 0).sum() < 2:  # noqa: PLR2004 - two values to tell apart
        return LeftOut(name=DOMINANT_COLOUR, why="all images are alike in it")
    values = tuple(
        AttributeValue(value=name, share=round(float(count) / len(codes), 6))
        for name, count in zip(names, counts, strict=True)
        if count
    )
    missing = round(1.0 - float(known.mean()), 6)
    attribute = Attribute(
        name=DOMINANT_COLOUR,
        column=DOMINANT_COLOUR,
        source="property",
        values=values,
        missing_share=missing,
    )
    return AssignedColumn(
        attribute=attribute, column=words_column(np.where(known, named, -1), names)
    )
