"""People's edits of attributes: the file beside weakspot.toml that keeps them, and the columns that follow."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from weakspot.core.arrays import BoolArray, IntArray, even_part
from weakspot.core.assistants import EmbedTexts
from weakspot.core.dataset import METADATA_PREFIX
from weakspot.core.errors import StoreError
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import Attribute, AttributeBook, EmbeddingSpace, SampleSet
from weakspot.store import atomic
from weakspot.store.columns import ColumnCache, ShelvedColumns
from weakspot.store.project import ProjectStore
from weakspot.words.attribute_columns import AssignedColumn
from weakspot.words.editing import (
    AttributeEdit,
    EditedAttribute,
    EditLog,
    LoggedEdit,
    edited_book,
)
from weakspot.words.representatives import MAX_SAMPLE
from weakspot.words.zero_shot import word_columns

EDITS_FILE = "attribute_edits.json"


class AttributeEditFile:
    """All edits of a project, oldest first; whoever writes holds the project's lock.

    Args:
        store: the project.
    """

    def __init__(self, store: ProjectStore) -> None:
        self._path = store.root / EDITS_FILE

    def version_mark(self) -> str:
        """Return something that differs whenever the file was written anew; cheap."""
        try:
            found = self._path.stat()
        except OSError:
            return ""
        return f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"

    def read(self) -> EditLog:
        """Return all edits; none if there is no file.

        Raises:
            StoreError: if the file cannot be read.
        """
        try:
            return EditLog.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return EditLog()
        except (OSError, ValidationError) as error:
            raise StoreError(
                f"The edits of attributes in {EDITS_FILE} cannot be read.",
                fix="Mend the file, or put an earlier version in its place; slices on edited attributes need it.",
            ) from error

    def add(self, log: EditLog, edit: AttributeEdit, *, by: str, sentence: str) -> EditLog:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        entry = LoggedEdit(number=log.version + 1, edit=edit, by=by, time=time, sentence=sentence)
        added = EditLog(entries=(*log.entries, entry))
        atomic.write_bytes(
            self._path, (added.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode()
        )
        return added


CLIP = "clip"
HAD_EMBEDDING, TOLD = "had_embedding", "told"
NO_TEXT_SIDE = "there is no encoder with a text side"


@dataclass(frozen=True, kw_only=True, eq=False)
class Editions:
    """The attributes of a project, now and at every earlier version of its edits.

    Args:
        samples: all samples, with the user's own columns only.
        base: what was assigned first.
        log: the edits.
        store: the project.
        group: which samples, for the shelf.
        key: of the first assignment on the shelf.
    """

    samples: SampleSet
    base: ShelvedColumns
    log: EditLog
    store: ProjectStore
    group: str
    key: str

    @cached_property
    def now(self) -> tuple[tuple[EditedAttribute, ...], dict[int, str]]:
        """Return the attributes as they are, and why edits that do not fit any more are left out."""
        return edited_book(self.base.book, self.log)

    def former(self) -> tuple[EditedAttribute, ...]:
        """Return one attribute for every column that edits ever made: slices that were found then still read it."""
        found: dict[str, EditedAttribute] = {}
        for version in range(1, self.log.version + 1):
            for attribute in edited_book(self.base.book, self.log.at(version))[0]:
                if not attribute.is_first:
                    found.setdefault(attribute.column, attribute)
        return tuple(found.values())

    def told(self, attribute: EditedAttribute) -> ShelvedColumns | None:
        """Return what telling an attribute from its words came to, or None if that was not done for the embeddings of today."""
        found = self._shelf.load(self._key_of(attribute), n_rows=len(self.samples.dataset))
        return None if found is None or has_new_embeddings(found, self.samples) else found

    def state(self, attribute: EditedAttribute) -> tuple[bool, str, Attribute | None]:
        """Return whether the column of an attribute is known, why it will never be, and what telling came to."""
        if not attribute.is_told_anew:
            return True, "", None
        found = self.told(attribute)
        if found is None:
            return False, "", None
        if not found.book.attributes:
            return False, found.book.notes[0], None
        return True, "", found.book.attributes[0]

    def column(self, attribute: EditedAttribute) -> pa.Array | pa.ChunkedArray | None:
        """Return the column of an attribute, or None if it is not known."""
        if attribute.is_told_anew:
            found = self.told(attribute)
            return (
                None
                if found is None or TOLD not in found.columns.column_names
                else attribute.grouped(found.columns[TOLD])
            )
        if attribute.base is None:
            return None
        first = self._first(attribute.base.column)
        return first if attribute.is_first or first is None else attribute.grouped(first)

    def tell(self, embed_texts: EmbedTexts | None, progress: Progress = no_progress) -> None:
        """Tell all attributes, now and then, whose words have not been told yet, in one pass over the samples; keep the result."""
        waiting = {
            each.telling_key: each
            for each in self.former()
            if each.is_told_anew and self.told(each) is None
        }
        space = self.samples.spaces.get(CLIP)
        if not waiting or space is None or embed_texts is None:
            return
        rows = even_part(reference_of(self.samples), MAX_SAMPLE)
        given = [each.to_tell() for each in waiting.values()]
        reference = self.samples.embeddings(CLIP, rows)
        told = word_columns(
            given,
            embed_texts=embed_texts,
            embeddings=space.embeddings,
            reference=reference,
            progress=progress,
        )
        for prediction in told:
            if isinstance(prediction, AssignedColumn):
                found = prediction.attribute
                self._keep(
                    waiting[found.name],
                    AttributeBook(encoder_id=space.encoder_id, attributes=(found,)),
                    prediction.column,
                )
            else:
                self._keep(
                    waiting[prediction.name],
                    AttributeBook(encoder_id=space.encoder_id, notes=(prediction.why,)),
                    None,
                )

    def all_columns(self) -> Iterator[tuple[str, pa.Array | pa.ChunkedArray]]:
        """Yield every column that edits ever made and that is known, with its name."""
        for attribute in self.former():
            column = self.column(attribute)
            if column is not None:
                yield attribute.column, column

    @property
    def _shelf(self) -> ColumnCache:
        return ColumnCache(data=self.store.data)

    def _key_of(self, attribute: EditedAttribute) -> str:
        return f"{self.key}-{attribute.telling_key}"

    def _first(self, column: str) -> pa.ChunkedArray | None:
        if METADATA_PREFIX + column in self.base.columns.column_names:
            return self.base.columns.column(METADATA_PREFIX + column)
        dataset = self.samples.dataset
        return dataset.metadata(column) if column in dataset.metadata_names else None

    def _keep(
        self, attribute: EditedAttribute, book: AttributeBook, column: pa.Array | None
    ) -> None:
        columns = {HAD_EMBEDDING: pa.array(has_embedding(self.samples))} | (
            {} if column is None else {TOLD: column}
        )
        with self.store.writing():
            self._shelf.save(
                self._key_of(attribute), book, pa.table(columns), group=self.group, is_whole=False
            )


def reference_of(samples: SampleSet) -> IntArray:
    """Return the rows on which offsets, thresholds and cut points are found."""
    rows = samples.reference_rows
    return np.arange(len(samples.dataset)) if rows is None or not len(rows) else rows


def has_embedding(samples: SampleSet) -> BoolArray:
    """Return which samples have an embedding [n]."""
    space = samples.spaces.get(CLIP)
    if space is None:
        return np.zeros(len(samples.dataset), dtype=np.bool_)
    return np.asarray(np.isfinite(space.embeddings[:, 0]))


def has_new_embeddings(found: ShelvedColumns, samples: SampleSet) -> bool:
    """Return whether a sample that had no embedding when its attributes were assigned has one now."""
    space: EmbeddingSpace | None = samples.spaces.get(CLIP)
    without = np.flatnonzero(~np.asarray(found.columns.column(HAD_EMBEDDING).combine_chunks()))
    return space is not None and bool(np.isfinite(space.embeddings[without, 0]).any())
