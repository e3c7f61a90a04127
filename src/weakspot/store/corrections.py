"""Labels that people corrected: a table beside weakspot.toml, because nothing can make it anew, laid over what the source gives."""

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.dataset import Dataset, Names, corrected, names_at
from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store.csv_tables import csv_text, plain_cell

CORRECTIONS_FILE = "corrected_labels.csv"
COLUMNS = ("sample_id", "file", "before", "label", "by", "time")
BETWEEN = "|"
UNUSABLE = "(unusable)"
NO_CLASS = "(none)"


@dataclass(frozen=True, kw_only=True)
class Correction:
    """A label that a person corrected.

    Args:
        sample_id: which sample.
        file: its file name, for people.
        before: the classes that it had; None if it had no label.
        label: the right ones; None if the sample is of no use.
        by: who applied it.
        time: when; ISO 8601, UTC.
    """

    sample_id: str
    file: str
    before: Names
    label: Names
    by: str
    time: str


@dataclass(frozen=True, kw_only=True)
class Corrections:
    """All corrections of a project.

    Args:
        entries: one a sample.
        mark: differs whenever they do; empty if there are none.
    """

    entries: tuple[Correction, ...] = ()
    mark: str = ""

    def by_sample(self) -> dict[str, Correction]:
        return {one.sample_id: one for one in self.entries}

    def apply(self, dataset: Dataset) -> Dataset:
        """Return a data set under the corrected labels.

        A correction of a sample that is gone, that names a class that is gone, or whose sample the source now gives another label
        than it had, is left alone: the source was corrected since.
        """
        labels = dict(self._that_hold(dataset))
        return corrected(dataset, labels) if labels else dataset

    def _that_hold(self, dataset: Dataset) -> Iterable[tuple[int, Names]]:
        if not self.entries:
            return
        ids = pa.array([one.sample_id for one in self.entries], pa.string())
        found = pc.index_in(dataset.table.column("sample_id"), value_set=ids)
        rows = np.flatnonzero(np.asarray(found.is_valid()))
        places = np.asarray(found.take(pa.array(rows))).tolist()
        for row, place in zip(rows.tolist(), places, strict=True):
            one = self.entries[place]
            is_known = set(one.label or ()) <= set(dataset.class_names)
            if is_known and set(names_at(dataset, row) or ()) == set(one.before or ()):
                yield row, one.label


@dataclass(eq=False)
class CorrectionFile:
    """The corrections on disk; whoever writes holds the project's lock.

    Args:
        root: the project folder.
    """

    root: Path
    _known: tuple[tuple[int, int, int], Corrections] | None = field(default=None, repr=False)

    @property
    def path(self) -> Path:
        return self.root / CORRECTIONS_FILE

    def read(self) -> Corrections:
        """Return all corrections; the file is read again only when it was written.

        Raises:
            StoreError: if the file cannot be read.
        """
        try:
            facts = self.path.stat()
        except OSError:
            return Corrections()
        state = facts.st_mtime_ns, facts.st_size, facts.st_ino
        if self._known is None or self._known[0] != state:
            self._known = state, self._parse()
        return self._known[1]

    def write(self, entries: Iterable[Correction]) -> Corrections:
        """Put these in the place of all; without any, the file is removed."""
        kept = sorted(
            {one.sample_id: one for one in entries}.values(), key=lambda one: one.sample_id
        )
        if not kept:
            self.path.unlink(missing_ok=True)
            return Corrections()
        rows = [
            [
                one.sample_id,
                one.file,
                _cell(one.before or ()),
                UNUSABLE if one.label is None else _cell(one.label),
                one.by,
                one.time,
            ]
            for one in kept
        ]
        atomic.write_bytes(self.path, csv_text(COLUMNS, rows).encode())
        return self.read()

    def _parse(self) -> Corrections:
        try:
            content = self.path.read_bytes()
            lines = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
            entries = tuple(
                _correction({name: plain_cell(cell or "") for name, cell in line.items()})
                for line in lines
            )
        except (OSError, UnicodeDecodeError, csv.Error, KeyError) as error:
            raise StoreError(
                f"The corrected labels in {CORRECTIONS_FILE} cannot be read.",
                where=str(self.path),
                given=str(error),
                fix=f"It needs the columns {', '.join(COLUMNS[:4])}; mend it, or put an earlier version in its place.",
            ) from error
        said = "\n".join(f"{one.sample_id} {one.before} {one.label}" for one in entries)
        mark = hashlib.sha256(said.encode()).hexdigest()[:8] if entries else ""
        return Corrections(entries=entries, mark=mark)


def _cell(names: tuple[str, ...]) -> str:
    return BETWEEN.join(names) if names else NO_CLASS


def _names(cell: str) -> tuple[str, ...]:
    return () if cell in ("", NO_CLASS) else tuple(cell.split(BETWEEN))


def _correction(line: Mapping[str, str]) -> Correction:
    label = (line["label"] or "").strip()
    return Correction(
        sample_id=line["sample_id"].strip(),
        file=line.get("file") or "",
        before=_names((line["before"] or "").strip()),
        label=None if label in ("", UNUSABLE) else _names(label),
        by=line.get("by") or "",
        time=line.get("time") or "",
    )
