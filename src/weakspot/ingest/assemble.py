"""Examined samples to the final table: classes, splits, ids, duplicates, and the predictions that came with them.

Two passes over the parts: one to see which classes there are and what is wrong, one to write rows. Between them only a hash and a
few small numbers a sample are in memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.dataset import GROUP, METADATA_PREFIX, NO_LABEL, SPLIT_ORDER, Split, Task
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.ingest.assembly_settings import AssemblySettings
from weakspot.ingest.duplicates import Copies, duplicates_table, find_copies
from weakspot.ingest.examined_survey import (
    NO_SPLIT,
    SURVEY_COLUMNS,
    UNLABELLED,
    ExaminedSurvey,
    survey,
)
from weakspot.ingest.generated import put_apart, refuse_verifying
from weakspot.ingest.group_names import NONE, GroupChoice, NamedGroups, named_groups
from weakspot.ingest.moments import burst_sentence, find_bursts
from weakspot.ingest.prediction_columns import likeliest_classes
from weakspot.ingest.split_choice import choose_splits


def class_codes(names: pa.Array, class_names: Sequence[str]) -> tuple[IntArray, IntArray]:
    owners = np.asarray(pc.list_parent_indices(names)).astype(np.int64)
    codes = pc.index_in(pc.list_flatten(names), value_set=pa.array(list(class_names), pa.string()))
    return owners, np.asarray(codes).astype(np.int64)


def given_predictions(
    part: pa.Table, class_names: Sequence[str], seen: ExaminedSurvey, task: Task
) -> dict[str, AnyArray]:
    """Return what the samples of a part say of predictions; the same names for every part of a source."""
    columns: dict[str, AnyArray] = {}
    probabilities = (
        _probabilities(part.column("probabilities").chunk(0), class_names)
        if seen.n_probable
        else None
    )
    predictions = part.column("predictions").chunk(0)
    if probabilities is not None:
        columns["probabilities"] = probabilities
    if task is Task.SINGLE_LABEL and (seen.n_predicted or probabilities is not None):
        columns["predictions"] = _predicted_classes(predictions, probabilities, class_names)
    if task is Task.MULTI_LABEL and seen.n_predicted:
        columns["predicted_matrix"] = _predicted_matrix(predictions, class_names)
    return columns


def _probabilities(given: pa.Array, class_names: Sequence[str]) -> FloatArray:
    matrix = np.full((len(given), len(class_names)), np.nan, dtype=np.float32)
    rows = np.flatnonzero(np.asarray(pc.is_valid(given)))
    valid = given.drop_null()
    if len(valid):
        owners = np.repeat(rows, np.diff(np.asarray(valid.offsets)))
        codes = np.asarray(
            pc.index_in(valid.keys, value_set=pa.array(list(class_names), pa.string()))
        ).astype(np.int64)
        matrix[owners, codes] = np.asarray(valid.items)
    return matrix


def _predicted_classes(
    given: pa.Array, probabilities: FloatArray | None, class_names: Sequence[str]
) -> IntArray:
    classes = np.full(len(given), NO_LABEL, dtype=np.int64)
    if probabilities is not None:
        classes = likeliest_classes(probabilities)
    owners, codes = class_codes(given, class_names)
    classes[owners] = codes
    return classes


def _predicted_matrix(given: pa.Array, class_names: Sequence[str]) -> BoolArray:
    matrix = np.zeros((len(given), len(class_names)), dtype=np.bool_)
    owners, codes = class_codes(given, class_names)
    matrix[owners, codes] = True
    return matrix


ReadParts = Callable[[Sequence[str] | None], Iterator[pa.Table]]
"""Yields the parts from the first on, with the named columns as far as they have them."""

EVALUATED = [SPLIT_ORDER.index(one) for one in (Split.VALIDATION, Split.TEST)]
MOVED_NOTE = "put-into-synthetic"
QUARANTINE_COLUMNS = ("key", "location", "reason", "detail")


@dataclass(frozen=True, kw_only=True, eq=False)
class AssembledBatch:
    """Some rows of the final table, in order.

    Args:
        samples: as `Dataset.table`, with one more column `notes`.
        predictions: `predictions`, `predicted_matrix` and `probabilities` as far as they were given, as in `Dataset`.
    """

    samples: pa.Table
    predictions: Mapping[str, AnyArray]


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
        n_dealt: labelled samples that name no split and were dealt out by the fractions.
        copies: which samples have the same content.
        groups: which samples belong together; None if no sample names a group.
        group_note: why a column of groups was not taken; empty if there is nothing to say.
        burst_note: that images taken within seconds may belong together; empty if there is nothing to say.
        seen: what the first pass saw.
        read_parts: yields the parts again.
    """

    settings: AssemblySettings
    class_names: tuple[str, ...]
    task: Task
    splits: AnyArray
    is_labelled: BoolArray
    is_renamed: BoolArray
    n_dealt: int
    copies: Copies
    groups: NamedGroups | None
    group_note: str
    burst_note: str
    seen: ExaminedSurvey
    read_parts: ReadParts

    @property
    def n_samples(self) -> int:
        return len(self.splits)

    def batches(self) -> Iterator[AssembledBatch]:
        start = 0
        for part in self.read_parts(None):
            examined = part.filter(pc.is_null(part.column("reason"))).combine_chunks()
            rows = np.arange(start, start + examined.num_rows)
            start += len(rows)
            if len(rows):
                yield AssembledBatch(
                    samples=self._table(examined, rows),
                    predictions=given_predictions(examined, self.class_names, self.seen, self.task),
                )

    def quarantine(self) -> Iterator[pa.Table]:
        """Yield the samples that were set aside: key, location, reason, detail."""
        for part in self.read_parts(QUARANTINE_COLUMNS):
            yield part.filter(pc.is_valid(part.column("reason"))).select(list(QUARANTINE_COLUMNS))

    def duplicates(self) -> pa.Table:
        """Return the contents that occur more than once; see `duplicates_table`."""
        parts = (
            part.filter(pc.is_null(part.column("reason")))
            for part in self.read_parts(("key", "content_hash", "labels", "reason"))
        )
        return duplicates_table(parts, self.copies, self.splits)

    def _table(self, part: pa.Table, rows: IntArray) -> pa.Table:
        columns: dict[str, pa.Array | pa.ChunkedArray] = {
            "sample_id": self.copies.sample_ids(part.column("content_hash").chunk(0), rows),
            "content_hash": part.column("content_hash"),
            "location": part.column("location"),
            "key": part.column("key"),
            **({} if self.groups is None else {GROUP: self.groups.column(rows)}),
            "split": pa.array(self.splits[rows], pa.int8()),
            **self._labels(part.column("labels").chunk(0)),
            "width": part.column("width"),
            "height": part.column("height"),
            "notes": self._notes(part.column("notes"), rows),
        }
        for name, values in self.seen.metadata.columns(part).items():
            columns[METADATA_PREFIX + name] = values
        return pa.table(columns)

    def _notes(self, notes: pa.ChunkedArray, rows: IntArray) -> pa.Array | pa.ChunkedArray:
        renamed = self.is_renamed[rows]
        if not renamed.any():
            return notes
        added = [
            [*own, MOVED_NOTE] if moved else own
            for own, moved in zip(notes.to_pylist(), renamed.tolist(), strict=True)
        ]
        return pa.array(added, notes.type)

    def _labels(self, labels: pa.Array) -> dict[str, pa.Array]:
        owners, codes = class_codes(labels, self.class_names)
        if self.task is Task.SINGLE_LABEL:
            label = np.full(len(labels), NO_LABEL, dtype=np.int32)
            label[owners] = codes
            return {"label": pa.array(label)}
        counts = np.bincount(owners, minlength=len(labels))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        unknown = (
            np.zeros(len(labels), dtype=np.bool_)
            if self.settings.unlabelled_is_negative
            else counts == 0
        )
        return {
            "labels": pa.ListArray.from_arrays(
                offsets, pa.array(codes, pa.int32()), mask=pa.array(unknown)
            )
        }


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
    seen = survey(read_parts(SURVEY_COLUMNS), GroupChoice.of(settings.group))
    if not seen.n_samples:
        raise _nothing_left(seen, where)
    seen.check(settings, where=where)
    copies = find_copies(seen.hashes)
    strata, named = _join(seen.strata), _join(seen.splits)
    given, is_wrong = put_apart(named, _join(seen.generated), copies.first_rows)
    refuse_verifying(is_wrong, _keys(read_parts), where=where)
    groups, group_note = _groups(seen, copies, where=where)
    splits = choose_splits(
        given,
        strata,
        copies.first_rows if groups is None else groups.first_rows,
        settings,
        has_groups=groups is not None,
    )
    burst_note = ""
    if groups is None and settings.group != NONE:
        is_evaluated = np.isin(splits, EVALUATED) & (strata != UNLABELLED)
        burst_note = burst_sentence(find_bursts(seen.moments.moments(), strata, is_evaluated))
    task = seen.task(settings)
    is_labelled = (
        np.ones(len(strata), dtype=np.bool_)
        if settings.unlabelled_is_negative
        else strata != UNLABELLED
    )
    return Assembly(
        settings=settings,
        class_names=seen.class_names(settings),
        task=task,
        splits=splits,
        is_labelled=is_labelled,
        is_renamed=(given != named) & (named != NO_SPLIT),
        n_dealt=_n_dealt(given, strata, settings),
        copies=copies,
        groups=groups,
        group_note=group_note,
        burst_note=burst_note,
        seen=seen,
        read_parts=read_parts,
    )


def _n_dealt(given: AnyArray, strata: AnyArray, settings: AssemblySettings) -> int:
    if settings.default_split is not None:
        return 0
    return int(((given == NO_SPLIT) & (strata != UNLABELLED)).sum())


def _groups(seen: ExaminedSurvey, copies: Copies, *, where: str) -> tuple[NamedGroups | None, str]:
    """Return the groups, and why those of a column were not taken.

    Raises:
        DataError: if the user says where groups stand, and no sample has one there.
    """
    codes, choice = seen.groups.codes(), seen.groups.choice
    if codes is None:
        if choice.kind == "none" or not choice.is_told:
            return None, ""
        raise DataError(
            f"No sample has a group: the {choice.kind} {choice.value!r} is found nowhere.",
            where=where,
            given=choice.value,
            fix='Correct [data] group: a column, "folder:1", "file-name", a pattern with one capture, or "none".',
        )
    note = seen.groups.why_not(codes)
    return (None if note else named_groups(codes, seen.groups.names, copies.first_rows)), note


def _join(parts: list[AnyArray]) -> AnyArray:
    """Return the parts in one piece; the list is emptied, because memory counts here."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _keys(read_parts: ReadParts) -> Iterator[str]:
    for part in read_parts(("key", "reason")):
        yield from part.filter(pc.is_null(part.column("reason"))).column("key").to_pylist()


def _nothing_left(seen: ExaminedSurvey, where: str) -> NotEnoughDataError:
    if not seen.reasons:
        return NotEnoughDataError(
            "The source has no samples.",
            where=where,
            fix="Check the path and the kind of the source.",
        )
    counted = ", ".join(f"{count} {reason}" for reason, count in seen.reasons.most_common())
    return NotEnoughDataError(
        f"Not one of {seen.reasons.total()} samples can be used: {counted}.",
        where=where,
        fix="Look at one of the files by hand; if paths are relative, check what they are relative to.",
    )
