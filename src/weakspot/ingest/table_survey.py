"""A first look at all rows of a table, without its images, so that everything wrong is said before any work begins."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from weakspot.ingest.cells import (
    CellError,
    is_whole_number,
    label_cell,
    label_kind,
    metadata_kind,
    probability_items,
    wider_kind,
)
from weakspot.ingest.problems import MAX_SHOWN, Problems
from weakspot.ingest.rows import RowLayout, samples_of
from weakspot.ingest.sample_columns import parse_columns
from weakspot.ingest.tables import TableBatch, TableHeader


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What the first look found.

    Args:
        n_rows: rows of every file, in order.
        metadata_kinds: kind of every free column.
        probability_names: classes in the order of listed probabilities; None when there are none.
    """

    n_rows: tuple[int, ...]
    metadata_kinds: Mapping[str, str | None]
    probability_names: tuple[str, ...] | None


@dataclass
class Surveyor:
    """Looks at batch after batch and remembers only what is needed.

    Args:
        header: the columns.
        class_names: known names of the classes, in the order of listed probabilities.
        problems: takes what is wrong.
    """

    header: TableHeader
    class_names: tuple[str, ...] | None
    problems: Problems
    n_rows: list[int] = field(default_factory=list)
    _kinds: dict[str, str | None] = field(default_factory=dict)
    _label_kinds: dict[str, str] = field(default_factory=dict)
    _has_only_codes: bool = True
    _largest_code: int = -1
    _n_listed: int | None = None
    _classes: frozenset[str] | None = None
    _keys: "array[int]" = field(default_factory=lambda: array("q"))

    def begin_file(self) -> None:
        self.n_rows.append(0)

    def look(self, batch: TableBatch, layout: RowLayout) -> None:
        self.n_rows[-1] = batch.first_row + batch.n_rows
        self._look_at_metadata(batch, layout)
        self._look_at_labels(batch, layout)
        self._look_at_probabilities(batch, layout)
        keys = self._check_cells(batch, replace(layout, metadata_kinds={}))
        if layout.roles.key is not None:
            self._keys.extend(map(hash, keys))

    def _check_cells(self, batch: TableBatch, layout: RowLayout) -> list[str]:
        if layout.roles.image is None:
            return parse_columns(batch, layout, self.problems).keys
        return [sample.key for sample in samples_of(batch, layout, self.problems)]

    def finish(self) -> Survey:
        """Return what was found; problems of whole columns are noted now."""
        if len(self._label_kinds) > 1:
            listed = " and ".join(
                f"{kind}s ({row})" for kind, row in sorted(self._label_kinds.items())
            )
            self.problems.add(f"Labels are of mixed types: {listed}.")
        return Survey(
            n_rows=tuple(self.n_rows),
            metadata_kinds=self._kinds,
            probability_names=self._listed_names(),
        )

    def _look_at_metadata(self, batch: TableBatch, layout: RowLayout) -> None:
        for name in layout.roles.metadata:
            kind = self._kinds.setdefault(name, None)
            if kind == "str":
                continue
            for value in batch.distinct(name).values:
                kind = wider_kind(kind, metadata_kind(value, is_text=self.header.is_text))
            self._kinds[name] = kind

    def _look_at_labels(self, batch: TableBatch, layout: RowLayout) -> None:
        if layout.roles.labels is None:
            return
        values, codes = batch.distinct(layout.roles.labels)
        # Codes are numbered in the order in which they appear.
        _, places = np.unique(codes, return_index=True)
        for place, value in zip(places.tolist(), values, strict=True):
            kind = label_kind(value)
            if kind is not None and kind not in self._label_kinds:
                self._label_kinds[kind] = layout.row_name(batch.first_row + place)
            if self._has_only_codes:
                self._look_at_codes(value, many=layout.roles.labels_are_many)

    def _look_at_codes(self, value: object, *, many: bool) -> None:
        try:
            labels = label_cell(value, many=many)
        except CellError:
            return
        self._has_only_codes = all(is_whole_number(label) and int(label) >= 0 for label in labels)
        if self._has_only_codes and labels:
            self._largest_code = max(self._largest_code, *(int(label) for label in labels))

    def _look_at_probabilities(self, batch: TableBatch, layout: RowLayout) -> None:
        name = layout.roles.probabilities
        for place, value in enumerate(batch.columns.get(name, ()) if name is not None else ()):
            try:
                items = probability_items(value)
            except CellError:
                continue
            row = layout.row_name(batch.first_row + place)
            if isinstance(items, list):
                self._n_listed = len(items) if self._n_listed is None else self._n_listed
                if len(items) != self._n_listed:
                    self.problems.add(
                        f"Probabilities are ragged: {len(items)} where the first row has {self._n_listed}.",
                        row=row,
                    )
            elif items is not None:
                self._classes = frozenset(items) if self._classes is None else self._classes
                if items.keys() != self._classes:
                    self.problems.add(
                        "Probabilities are ragged: other classes than in the first row.", row=row
                    )

    def repeated_hashes(self) -> frozenset[int]:
        """Return hashes that several keys have, at most as many as are of use; the keys themselves were not kept."""
        ordered = np.sort(np.frombuffer(self._keys, dtype=np.int64))
        repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        return frozenset(repeated[:MAX_SHOWN].tolist())

    def _listed_names(self) -> tuple[str, ...] | None:
        if self._n_listed is None:
            return None
        if self._classes is not None:
            self.problems.add("Probabilities are lists in some rows and objects in others.")
        if self.class_names is not None:
            if len(self.class_names) != self._n_listed:
                self.problems.add(
                    f"Lists of {self._n_listed} probabilities do not fit {len(self.class_names)} classes."
                )
            return self.class_names
        if self._has_only_codes and 0 <= self._largest_code < self._n_listed:
            return tuple(str(code) for code in range(self._n_listed))
        self.problems.add(
            f"Lists of {self._n_listed} probabilities do not say which class is which: use an object, columns prob_<class>, "
            "or a file classes.txt beside the table with one class a line."
        )
        return None
