"""What manifests and prediction tables share: one table file whose rows are samples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from weakspot.core.dataset import RawSample, Split
from weakspot.ingest.class_list import class_list_beside
from weakspot.ingest.fingerprints import fingerprint_of_files
from weakspot.ingest.table_source import TablePart, TableSamples, open_table


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
    """

    kind: ClassVar[str]
    with_pictures: ClassVar[bool]
    location: str
    columns: Mapping[str, str] = field(default_factory=dict)
    default_split: Split | None = None
    class_names: tuple[str, ...] | None = None

    def fingerprint(self) -> str:
        """Return a hash over the table, not over the pictures it points to."""
        settings = (self.kind, dict(self.columns), self.default_split, self.table.class_names)
        found = fingerprint_of_files([self.location], *settings)
        if self.__dict__.setdefault("_known_as", found) != found:
            # What was seen of the table before it changed is of no use any more.
            self.__dict__.update(_known_as=found)
            self.__dict__.pop("table", None)
        return found

    def count(self) -> int:
        """Return the number of rows."""
        return self.table.n_samples

    def read(self, start: int = 0) -> Iterator[RawSample]:
        """Yield samples from position `start` on."""
        return self.table.read(start)

    @cached_property
    def table(self) -> TableSamples:
        """Return the rows as samples."""
        return TableSamples(
            where=self.location,
            parts=(TablePart(table=open_table(self.location)),),
            columns=self.columns,
            default_split=self.default_split,
            class_names=self.class_names or class_list_beside(self.location),
            with_pictures=self.with_pictures,
        )
