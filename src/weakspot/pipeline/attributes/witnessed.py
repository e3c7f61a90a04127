"""Attributes that witnesses give: text in the image, object, kind of place, colour and size of the object.

They are not told from embeddings, so they can bear witness to words that were.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from weakspot.assign.bins import words_column
from weakspot.assign.columns import AssignedColumn, LeftOut
from weakspot.core.attributes import Attribute, AttributeValue
from weakspot.core.dataset import Dataset
from weakspot.pipeline.models.witnesses.seeing import Seeing
from weakspot.pipeline.models.witnesses.tagging import tag_values
from weakspot.pipeline.witness_settings import WitnessSettings

LEAST_SAMPLES = 3
MOST_VALUES = 40


def witnessed_columns(
    seeing: Seeing, dataset: Dataset, settings: WitnessSettings, notes: list[str]
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield a column for every attribute of the witnesses; a value that few samples have is kept, one that hardly any has is not."""
    if settings.on == "asked" and len(dataset) > settings.most_images:
        notes.append(
            f"Witnesses were not asked about all {len(dataset)} images, more than witnesses.most_images; "
            'set [witnesses] on = "all" to ask them.'
        )
        return
    for name, values in tag_values(seeing, np.arange(len(dataset))).items():
        yield _column(name, values)
    notes += seeing.notes()


def _column(name: str, values: Sequence[str]) -> AssignedColumn | LeftOut:
    counts = Counter(value for value in values if value)
    kept = tuple(
        value for value, count in counts.most_common(MOST_VALUES) if count >= LEAST_SAMPLES
    )
    if len(kept) < 2:  # noqa: PLR2004 - two values to tell apart
        return LeftOut(name=name, why="hardly any image has a second value of it")
    codes = {value: code for code, value in enumerate(kept)}
    attribute = Attribute(
        name=name,
        column=name,
        source="property",
        values=tuple(
            AttributeValue(value=value, share=round(counts[value] / len(values), 6))
            for value in kept
        ),
        missing_share=round(sum(value not in codes for value in values) / len(values), 6),
    )
    return AssignedColumn(
        attribute=attribute,
        column=words_column(np.array([codes.get(value, -1) for value in values]), kept),
    )
