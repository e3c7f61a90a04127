"""A table of pictures: CSV, TSV, JSON lines or Parquet."""

from dataclasses import dataclass
from typing import ClassVar

from weakspot.ingest.one_table import OneTableSource


@dataclass(frozen=True, kw_only=True)
class ManifestSource(OneTableSource):
    """Rows that point to pictures or hold them, with labels, splits, predictions, probabilities and free columns."""

    kind: ClassVar[str] = "manifest"
    with_pictures: ClassVar[bool] = True
