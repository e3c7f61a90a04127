"""Attributes for all samples of a project: proposed or built in, assigned once, and the same ever after."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np
import pyarrow as pa

from weakspot.app.attribute_words import planned_attributes
from weakspot.app.config import Settings
from weakspot.app.embedding import EmbedSettings, embed
from weakspot.assign.columns import AssignedColumn, LeftOut, with_free_names
from weakspot.assign.properties import PictureProperties
from weakspot.assign.property_columns import property_columns, size_columns
from weakspot.assign.representatives import LARGEST_SAMPLE, spread_rows
from weakspot.assign.user_columns import user_columns
from weakspot.assign.word_columns import word_columns
from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.assistants import Assistants
from weakspot.core.attributes import BOOK_VERSION, AttributeBook, mark_attributes, mark_told_by_words
from weakspot.core.dataset import METADATA_PREFIX, Dataset
from weakspot.core.errors import NotEnoughDataError, WeakspotError
from weakspot.core.roles import Engine
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import SampleSet, VectorSpace
from weakspot.store.columns import ColumnShelf, ShelvedColumns
from weakspot.store.project import ProjectStore

JOINT = "joint"
HAD_VECTOR = "had_vector"
MEASURE_BATCH = 64


def with_attributes(
    samples: SampleSet,
    *,
    assistants: Assistants,
    settings: Settings,
    store: ProjectStore,
    engine: Engine,
    progress: Progress = no_progress,
) -> tuple[SampleSet, tuple[str, ...]]:
    """Return the samples with attributes as metadata columns, and notes on what was left out.

    Every row gets its values, whatever its split and label, and neither labels nor outcomes are read. What was computed once for
    the same samples, encoder and settings is taken from the project.
    """
    group, key = _key(samples, assistants, settings, store)
    shelf = ColumnShelf(data=store.data)
    found = shelf.load(key, n_rows=len(samples.dataset))
    if found is None or _has_new_vectors(found, samples):
        work = _Attributing(
            samples=samples, assistants=assistants, settings=settings, store=store, engine=engine, progress=progress
        )
        found = work.run()
        with store.writing():
            shelf.save(key, found.book, found.columns, group=group)
    return _with_columns(samples, found), found.book.notes


@dataclass(frozen=True, kw_only=True, eq=False)
class _Attributing:
    """One pass that makes all attributes."""

    samples: SampleSet
    assistants: Assistants
    settings: Settings
    store: ProjectStore
    engine: Engine
    progress: Progress

    def run(self) -> ShelvedColumns:
        dataset, wishes = self.samples.dataset, self.settings.attributes
        notes: list[str] = []
        found: list[AssignedColumn] = []
        found += _kept(user_columns(dataset, _reference(self.samples), wishes.columns), notes)
        if wishes.use_vocabulary:
            found += _kept(self._words(notes), notes)
        if wishes.use_properties:
            found += _kept(self._properties(notes), notes)
        named = with_free_names(found, dataset.metadata_names)
        columns = {METADATA_PREFIX + each.attribute.column: each.column for each in named if each.column is not None}
        has_vector = pa.array(_has_vector(self.samples))
        space = self.samples.spaces.get(JOINT)
        book = AttributeBook(
            encoder_id="" if space is None else space.encoder_id,
            attributes=tuple(each.attribute for each in named),
            notes=tuple(dict.fromkeys(notes)),
        )
        return ShelvedColumns(book=book, columns=pa.table({**columns, HAD_VECTOR: has_vector}))

    def _words(self, notes: list[str]) -> Iterator[AssignedColumn | LeftOut]:
        try:
            yield from told_from_words(self.samples, self.assistants, self.settings, notes=notes, progress=self.progress)
        except WeakspotError as error:
            notes.append(f"No attribute is told from words: {error}")

    def _properties(self, notes: list[str]) -> Iterator[AssignedColumn | LeftOut]:
        dataset = self.samples.dataset
        if not dataset.has_pictures:
            notes.append("Nothing is measured in pictures: there are none.")
            return
        try:
            settings = EmbedSettings(batch_size=MEASURE_BATCH)
            measures = embed(
                self.store, dataset, PictureProperties(), engine=self.engine, progress=self.progress, settings=settings
            )
        except NotEnoughDataError as error:
            notes.append(f"Nothing is measured in pictures: {error}")
            return
        if measures.unreadable:
            notes.append(f"{len(measures.unreadable)} pictures could not be read and were not measured.")
        yield from property_columns(measures.space.vectors, _reference(self.samples))
        width, height = (np.asarray(dataset.table.column(side).combine_chunks()) for side in ("width", "height"))
        yield from size_columns(width, height, _reference(self.samples))


def _kept(found: Iterable[AssignedColumn | LeftOut], notes: list[str]) -> Iterator[AssignedColumn]:
    for each in found:
        if isinstance(each, LeftOut):
            notes.append(each.sentence)
        else:
            yield each


def _with_columns(samples: SampleSet, found: ShelvedColumns) -> SampleSet:
    names = [name for name in found.columns.column_names if name != HAD_VECTOR]
    columns = {name.removeprefix(METADATA_PREFIX): found.columns.column(name) for name in names}
    told = [each.column for each in found.book.attributes if each.source in ("built-in", "proposed")]
    return replace(samples, dataset=with_attribute_columns(samples.dataset, columns, found.book.columns, told=told))


def with_attribute_columns(
    dataset: Dataset, columns: Mapping[str, pa.ChunkedArray], attributes: Sequence[str], *, told: Sequence[str]
) -> Dataset:
    """Return the data set with further columns, marked as attributes.

    Args:
        dataset: the samples.
        columns: new columns by name.
        attributes: names of all columns that are attributes, new or not.
        told: those among them that were told from words, and so are no independent witness of words.
    """
    table = dataset.with_metadata(columns).table
    return replace(dataset, table=mark_told_by_words(mark_attributes(table, attributes), told))


def told_from_words(
    samples: SampleSet, assistants: Assistants, settings: Settings, *, notes: list[str], progress: Progress = no_progress
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield the columns of all attributes that phrases can tell, or why one cannot be told; nothing without a text side."""
    space, embed_texts = samples.spaces.get(JOINT), assistants.embed_texts
    if space is None or embed_texts is None:
        notes.append("No attribute is told from words: there is no encoder with a text side.")
        return
    rows = spread_rows(_reference(samples), LARGEST_SAMPLE)
    plans = planned_attributes(samples, assistants, settings, rows)
    notes += plans.notes
    yield from word_columns(
        plans.attributes,
        embed_texts=embed_texts,
        vectors=space.vectors,
        reference=samples.vectors(JOINT, rows),
        progress=progress,
    )


def _reference(samples: SampleSet) -> IntArray:
    rows = samples.reference_rows
    return np.arange(len(samples.dataset)) if rows is None or not len(rows) else rows


def _has_vector(samples: SampleSet) -> BoolArray:
    space = samples.spaces.get(JOINT)
    if space is None:
        return np.zeros(len(samples.dataset), dtype=np.bool_)
    return np.asarray(np.isfinite(space.vectors[:, 0]))


def _has_new_vectors(found: ShelvedColumns, samples: SampleSet) -> bool:
    """Return whether a sample that had no vector when its attributes were assigned has one now."""
    space: VectorSpace | None = samples.spaces.get(JOINT)
    without = np.flatnonzero(~np.asarray(found.columns.column(HAD_VECTOR).combine_chunks()))
    return space is not None and bool(np.isfinite(space.vectors[without, 0]).any())


def _key(samples: SampleSet, assistants: Assistants, settings: Settings, store: ProjectStore) -> tuple[str, str]:
    """Return the group (which samples) and the key (also which encoder, settings and assistants) of the columns."""
    tables = store.current_tables()
    group = tables.folder.name if tables is not None else samples.only(np.arange(len(samples.dataset))).digest()
    space = samples.spaces.get(JOINT)
    content = {
        "book": BOOK_VERSION,
        "weakspot": version("weakspot"),
        "encoder": "" if space is None else space.encoder_id,
        "settings": settings.attributes.model_dump(mode="json"),
        "seed": settings.seed,
        "language": settings.language.model_dump(mode="json") if assistants.propose else None,
        "answerer": settings.answerer.model_dump(mode="json") if assistants.answers else None,
        "has_text": assistants.embed_texts is not None,
        "metadata": list(samples.dataset.metadata_names),
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return group, f"{group}-{digest}"
