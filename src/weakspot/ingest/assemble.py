"""Examined samples to the final table: classes, splits, ids, duplicates, and the predictions that came with them.

Two passes over the parts: one to see which classes there are and what is wrong, one to write rows. Between them only a hash and a
few small numbers a sample are in memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.dataset import METADATA_PREFIX, NO_LABEL, Task
from weakspot.core.errors import NotEnoughDataError
from weakspot.ingest.assembly_settings import AssemblySettings
from weakspot.ingest.duplicates import Copies, duplicates_table, find_copies
from weakspot.ingest.examined_survey import NO_SPLIT, SURVEY_COLUMNS, UNLABELLED, ExaminedSurvey, survey
from weakspot.ingest.generated import put_apart, refuse_verifying
from weakspot.ingest.given_outcomes import class_codes, given_outcomes
from weakspot.ingest.split_choice import choose_splits

ReadParts = Callable[[Sequence[str] | None], Iterator[pa.Table]]
"""Yields the parts from the first on, with the named columns."""

MOVED_NOTE = "put-into-synthetic"
QUARANTINE_COLUMNS = ("key", "location", "reason", "detail")


@dataclass(frozen=True, kw_only=True, eq=False)
class AssembledBatch:
    """Some rows of the final table, in order.

    Args:
        samples: as `Dataset.table`, with one more column `notes`.
        outcomes: `predictions`, `predicted_matrix` and `probabilities` as far as they were given, as in `Dataset`.
    """

    samples: pa.Table
    outcomes: Mapping[str, AnyArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Assembly:
    """A data set ready to be written.

    Args:
        settings: how it was put together.
        class_names: the classes.
        task: single-label or multi-label.
        splits: split of every sample, as position in `SPLIT_ORDER` [n].
        is_labelled: which samples have a true label [n].
        is_renamed: which samples were put into `synthetic` although their source names another split [n].
        copies: which samples have the same content.
        seen: what the first pass saw.
        read_parts: yields the parts again.
    """

    settings: AssemblySettings
    class_names: tuple[str, ...]
    task: Task
    splits: AnyArray
    is_labelled: BoolArray
    is_renamed: BoolArray
    copies: Copies
    seen: ExaminedSurvey
    read_parts: ReadParts

    @property
    def n_samples(self) -> int:
        """Return the number of samples."""
        return len(self.splits)

    def batches(self) -> Iterator[AssembledBatch]:
        """Yield the rows of the final table, part by part."""
        start = 0
        for part in self.read_parts(None):
            examined = part.filter(pc.is_null(part.column("reason"))).combine_chunks()
            rows = np.arange(start, start + examined.num_rows)
            start += len(rows)
            if len(rows):
                yield AssembledBatch(
                    samples=self._table(examined, rows), outcomes=given_outcomes(examined, self.class_names, self.seen, self.task)
                )

    def quarantine(self) -> Iterator[pa.Table]:
        """Yield the samples that were set aside: key, location, reason, detail."""
        for part in self.read_parts(QUARANTINE_COLUMNS):
            yield part.filter(pc.is_valid(part.column("reason"))).select(list(QUARANTINE_COLUMNS))

    def duplicates(self) -> pa.Table:
        """Return the contents that occur more than once; see `duplicates_table`."""
        parts = (
            part.filter(pc.is_null(part.column("reason"))) for part in self.read_parts(("key", "content_hash", "labels", "reason"))
        )
        return duplicates_table(parts, self.copies, self.splits)

    def _table(self, part: pa.Table, rows: IntArray) -> pa.Table:
        columns: dict[str, pa.Array | pa.ChunkedArray] = {
            "sample_id": self.copies.sample_ids(part.column("content_hash").chunk(0), rows),
            "content_hash": part.column("content_hash"),
            "location": part.column("location"),
            "key": part.column("key"),
            "split": pa.array(self.splits[rows], pa.int8()),
            **self._labels(part.column("labels").chunk(0)),
            "width": part.column("width"),
            "height": part.column("height"),
            "notes": self._notes(part.column("notes"), rows),
        }
        for name, values in self.seen.metadata.columns(part.column("metadata")).items():
            columns[METADATA_PREFIX + name] = values
        return pa.table(columns)

    def _notes(self, notes: pa.ChunkedArray, rows: IntArray) -> pa.Array | pa.ChunkedArray:
        renamed = self.is_renamed[rows]
        if not renamed.any():
            return notes
        added = [[*own, MOVED_NOTE] if moved else own for own, moved in zip(notes.to_pylist(), renamed.tolist(), strict=True)]
        return pa.array(added, notes.type)

    def _labels(self, labels: pa.Array) -> dict[str, pa.Array]:
        owners, codes = class_codes(labels, self.class_names)
        if self.task is Task.SINGLE_LABEL:
            label = np.full(len(labels), NO_LABEL, dtype=np.int32)
            label[owners] = codes
            return {"label": pa.array(label)}
        counts = np.bincount(owners, minlength=len(labels))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        unknown = np.zeros(len(labels), dtype=np.bool_) if self.settings.unlabelled_is_negative else counts == 0
        return {"labels": pa.ListArray.from_arrays(offsets, pa.array(codes, pa.int32()), mask=pa.array(unknown))}


def assemble(read_parts: ReadParts, settings: AssemblySettings, *, where: str) -> Assembly:
    """Look at all examined samples and decide classes, task, splits and ids.

    Args:
        read_parts: yields tables of the `EXAMINED_SCHEMA`, as often as asked.
        settings: how to decide.
        where: the source, for messages.

    Raises:
        NotEnoughDataError: if every sample was set aside, with the reasons.
        DataError: listing everything that is wrong with labels, splits and predictions, or generated samples to be verified on.
    """
    seen = survey(read_parts(SURVEY_COLUMNS))
    if not seen.n_samples:
        raise _nothing_left(seen, where)
    seen.check(settings, where=where)
    copies = find_copies(seen.hashes)
    strata, named = _joined(seen.strata), _joined(seen.splits)
    given, is_wrong = put_apart(named, _joined(seen.generated), copies.first_rows)
    refuse_verifying(is_wrong, _keys(read_parts), where=where)
    splits = choose_splits(given, strata, copies.first_rows, settings)
    task = seen.task(settings)
    is_labelled = np.ones(len(strata), dtype=np.bool_) if settings.unlabelled_is_negative else strata != UNLABELLED
    return Assembly(
        settings=settings,
        class_names=seen.class_names(settings),
        task=task,
        splits=splits,
        is_labelled=is_labelled,
        is_renamed=(given != named) & (named != NO_SPLIT),
        copies=copies,
        seen=seen,
        read_parts=read_parts,
    )


def _joined(parts: list[AnyArray]) -> AnyArray:
    """Return the parts in one piece; the list is emptied, because memory counts here."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _keys(read_parts: ReadParts) -> Iterator[str]:
    for part in read_parts(("key", "reason")):
        yield from part.filter(pc.is_null(part.column("reason"))).column("key").to_pylist()


def _nothing_left(seen: ExaminedSurvey, where: str) -> NotEnoughDataError:
    if not seen.reasons:
        return NotEnoughDataError("The source has no samples.", where=where, fix="Check the path and the kind of the source.")
    counted = ", ".join(f"{count} {reason}" for reason, count in seen.reasons.most_common())
    return NotEnoughDataError(
        f"Not one of {seen.reasons.total()} samples can be used: {counted}.",
        where=where,
        fix="Look at one of the files by hand; if paths are relative, check what they are relative to.",
    )
