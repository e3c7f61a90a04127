"""A table of labels and predictions alone: no pictures and no model."""

from dataclasses import dataclass
from typing import ClassVar

from weakspot.ingest.one_table import OneTableSource


@dataclass(frozen=True, kw_only=True)
class PredictionsSource(OneTableSource):
    """Rows with a label, a prediction or probabilities, and free columns."""

    kind: ClassVar[str] = "predictions"
    with_pictures: ClassVar[bool] = False
