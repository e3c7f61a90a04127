"""What manifests and prediction tables share: one table file whose rows are samples.

A table of images: CSV, TSV, JSON lines or Parquet.

A table of labels and predictions alone: no images and no model.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from weakspot.core.dataset import RawSample, Split
from weakspot.core.errors import DataError
from weakspot.ingest.source import fingerprint_of_files
from weakspot.ingest.table_source import TablePart, TableSamples, open_table
from weakspot.media.listing import is_there
from weakspot.media.locations import (
    is_local,
    join_location,
    local_path,
    parent_location,
    read_location,
)

CLASS_LIST_NAME = "classes.txt"


def class_list_beside(location: str) -> tuple[str, ...] | None:
    """Return the class names written beside a local file, or None when there is no such list."""
    path = join_location(parent_location(location), CLASS_LIST_NAME)
    if not is_local(path) or not is_there(path):
        return None
    try:
        lines = read_location(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(
            "The list of classes is not UTF-8 text.",
            where=path,
            fix="Save it with the encoding UTF-8.",
        ) from error
    names = tuple(line.strip() for line in lines if line.strip())
    if len(set(names)) < len(names) or not names:
        raise DataError(
            "The list of classes is empty or names a class twice.",
            where=str(local_path(path)),
            fix="One class a line.",
        )
    return names


@dataclass(frozen=True, kw_only=True)
class OneTableSource:
    """One table file as a source.

    Args:
        location: the table file.
        columns: role (`path`, `bytes`, `label`, `labels`, `split`, `prediction`, `predictions`, `probabilities`, `key`) to column
            name, where the names do not tell.
        default_split: split of rows that name none.
        class_names: names of the classes in the order of codes and listed probabilities; a file `classes.txt` beside the table
            is read when there is one.
        note: what was found out when it was opened, for people.
    """

    kind: ClassVar[str]
    with_images: ClassVar[bool]
    location: str
    columns: Mapping[str, str] = field(default_factory=dict)
    default_split: Split | None = None
    class_names: tuple[str, ...] | None = None
    note: str = ""

    def fingerprint(self) -> str:
        settings = (self.kind, dict(self.columns), self.default_split, self.table.class_names)
        found = fingerprint_of_files([self.location], *settings)
        if self.__dict__.setdefault("_known_as", found) != found:
            # What was seen of the table before it changed is of no use any more.
            self.__dict__.update(_known_as=found)
            self.__dict__.pop("table", None)
        return found

    def count(self) -> int:
        return self.table.n_samples

    def read(self, start: int = 0) -> Iterator[RawSample]:
        return self.table.read(start)

    @cached_property
    def table(self) -> TableSamples:
        return TableSamples(
            where=self.location,
            parts=(TablePart(table=open_table(self.location)),),
            columns=self.columns,
            default_split=self.default_split,
            class_names=self.class_names or class_list_beside(self.location),
            with_images=self.with_images,
        )


@dataclass(frozen=True, kw_only=True)
class ManifestSource(OneTableSource):
    """Rows that point to images or hold them, with labels, splits, predictions, probabilities and free columns."""

    kind: ClassVar[str] = "manifest"
    with_images: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class PredictionsSource(OneTableSource):
    """Rows with a label, a prediction or probabilities, and free columns."""

    kind: ClassVar[str] = "predictions"
    with_images: ClassVar[bool] = False

    def read_examined(self, start: int = 0) -> Iterator[pa.Table]:
        return self.table.read_examined(start)
