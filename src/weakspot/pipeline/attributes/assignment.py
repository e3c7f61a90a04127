"""Attributes for all samples of a project: proposed or built in, assigned once, and the same ever after."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np
import pyarrow as pa

from weakspot.assign.columns import AssignedColumn, LeftOut, with_free_names
from weakspot.assign.edited_attributes import EditedAttribute
from weakspot.assign.properties import ImageProperties
from weakspot.assign.property_columns import property_columns, size_columns
from weakspot.assign.representatives import LARGEST_SAMPLE, spread_rows
from weakspot.assign.user_columns import user_columns
from weakspot.assign.word_columns import word_columns
from weakspot.core.assistants import Assistants
from weakspot.core.attributes import (
    BOOK_VERSION,
    WORD_SOURCES,
    AttributeBook,
    added_columns,
    mark_added,
    mark_attributes,
    mark_titles,
    mark_told_by_words,
    titles_of,
)
from weakspot.core.dataset import METADATA_PREFIX, Dataset
from weakspot.core.errors import NotEnoughDataError, WeakspotError
from weakspot.core.roles import Engine
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import SampleSet
from weakspot.pipeline.attributes.edit_log import AttributeEditFile
from weakspot.pipeline.attributes.edited_columns import (
    CLIP,
    HAD_EMBEDDING,
    Editions,
    has_embedding,
    has_new_embeddings,
    reference_of,
)
from weakspot.pipeline.attributes.witnessed import witnessed_columns
from weakspot.pipeline.attributes.words import planned_attributes
from weakspot.pipeline.models.embedding import EmbedSettings, embed
from weakspot.pipeline.models.witnesses.seeing import Seeing
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.withheld import withhold
from weakspot.store.columns import ColumnCache, ShelvedColumns
from weakspot.store.project import ProjectStore

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

    Every row gets its values, whatever its split and label, and neither labels nor predictions are read. What was computed once for
    the same samples, encoder and settings is taken from the project; what people edited is done on top of it.
    """
    own = without_attributes(samples)
    group, key = _key(own, assistants, settings, store)
    shelf = ColumnCache(data=store.data)
    base = shelf.load(key, n_rows=len(own.dataset))
    if base is None or has_new_embeddings(base, own):
        work = _Attributing(
            samples=own,
            assistants=assistants,
            settings=settings,
            store=store,
            engine=engine,
            progress=progress,
        )
        base = work.run()
        with store.writing():
            shelf.save(key, base.book, base.columns, group=group)
    log = AttributeEditFile(store).read()
    if not log.version:
        return _with_columns(own, base), base.book.notes
    editions = Editions(samples=own, base=base, log=log, store=store, group=group, key=key)
    found = _edit(editions, assistants, progress)
    with store.writing():
        shelf.show(found.book)
    return _with_columns(own, found, editions.former()), found.book.notes


def assigned_editions(
    samples: SampleSet, assistants: Assistants, settings: Settings, store: ProjectStore
) -> Editions | None:
    """Return the attributes as far as they were assigned already, or None if none were; nothing is computed."""
    own = without_attributes(samples)
    group, key = _key(own, assistants, settings, store)
    base = ColumnCache(data=store.data).load(key, n_rows=len(own.dataset))
    if base is None or has_new_embeddings(base, own):
        return None
    return Editions(
        samples=own,
        base=base,
        log=AttributeEditFile(store).read(),
        store=store,
        group=group,
        key=key,
    )


def unassigned_editions(samples: SampleSet, store: ProjectStore) -> Editions:
    """Return those of the user's own columns that are attributes as they are, for a project without assigned attributes."""
    own = without_attributes(samples)
    found = [
        one
        for one in user_columns(own.dataset, reference_of(own))
        if isinstance(one, AssignedColumn) and one.column is None
    ]
    book = AttributeBook(attributes=tuple(one.attribute for one in found))
    base = ShelvedColumns(
        book=book, columns=pa.table({HAD_EMBEDDING: pa.array(has_embedding(own))})
    )
    return Editions(
        samples=own,
        base=base,
        log=AttributeEditFile(store).read(),
        store=store,
        group="",
        key="unassigned",
    )


def attributes_mark(
    samples: SampleSet, assistants: Assistants, settings: Settings, store: ProjectStore
) -> str:
    """Return something that differs whenever the attributes may do; cheap enough to ask at every request.

    Up to the second space it says which first assignment it is.
    """
    _, key = _key(without_attributes(samples), assistants, settings, store)
    shelf = ColumnCache(data=store.data)
    return f"{key} {shelf.written(key)} {shelf.changed()} {AttributeEditFile(store).version_mark()}"


def without_attributes(samples: SampleSet) -> SampleSet:
    """Return the samples with the user's own columns only."""
    table = samples.dataset.table
    added = {METADATA_PREFIX + name for name in added_columns(table)}
    if not added:
        return samples
    kept = mark_added(table.select([name for name in table.column_names if name not in added]), ())
    return replace(samples, dataset=replace(samples.dataset, table=kept))


def _edit(editions: Editions, assistants: Assistants, progress: Progress) -> ShelvedColumns:
    """Return what was assigned first together with what edits made of it."""
    notes = [*editions.base.book.notes, *editions.now.notes]
    try:
        editions.tell(assistants.embed_texts, progress)
    except WeakspotError as error:
        notes.append(f"What people added is not told from words: {error}")
    columns = {METADATA_PREFIX + name: column for name, column in editions.all_columns()}
    records = []
    for attribute in editions.now.attributes:
        is_known, why, told = editions.state(attribute)
        if is_known:
            records.append(attribute.record(columns.get(METADATA_PREFIX + attribute.column), told))
        else:
            notes.append(
                LeftOut(
                    name=attribute.name, why=why or "no encoder with a text side could tell it"
                ).sentence
            )
    first = {
        name: editions.base.columns.column(name) for name in editions.base.columns.column_names
    }
    book = editions.base.book.model_copy(
        update={"attributes": tuple(records), "notes": tuple(dict.fromkeys(notes))}
    )
    return ShelvedColumns(book=book, columns=pa.table({**first, **columns}))


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
        own = withhold(self.samples, self.settings.repair.groups).dataset
        notes: list[str] = []
        found: list[AssignedColumn] = []
        found += _kept(user_columns(own, reference_of(self.samples), wishes.columns), notes)
        if wishes.use_vocabulary:
            found += _kept(self._words(notes), notes)
        if wishes.use_properties:
            found += _kept(self._properties(notes), notes)
        seeing = self.assistants.seen
        if isinstance(seeing, Seeing):
            found += _kept(
                witnessed_columns(seeing, dataset, self.settings.witnesses, notes), notes
            )
        named = with_free_names(found, dataset.metadata_names)
        columns = {
            METADATA_PREFIX + each.attribute.column: each.column
            for each in named
            if each.column is not None
        }
        known = pa.array(has_embedding(self.samples))
        space = self.samples.spaces.get(CLIP)
        book = AttributeBook(
            encoder_id="" if space is None else space.encoder_id,
            attributes=tuple(each.attribute for each in named),
            notes=tuple(dict.fromkeys(notes)),
        )
        return ShelvedColumns(book=book, columns=pa.table({**columns, HAD_EMBEDDING: known}))

    def _words(self, notes: list[str]) -> Iterator[AssignedColumn | LeftOut]:
        try:
            yield from told_from_words(
                self.samples, self.assistants, self.settings, notes=notes, progress=self.progress
            )
        except WeakspotError as error:
            notes.append(f"No attribute is told from words: {error}")

    def _properties(self, notes: list[str]) -> Iterator[AssignedColumn | LeftOut]:
        dataset = self.samples.dataset
        if not dataset.has_images:
            notes.append("Nothing is measured in images: there are none.")
            return
        try:
            settings = EmbedSettings(batch_size=MEASURE_BATCH)
            measures = embed(
                self.store,
                dataset,
                ImageProperties(),
                engine=self.engine,
                progress=self.progress,
                settings=settings,
            )
        except NotEnoughDataError as error:
            notes.append(f"Nothing is measured in images: {error}")
            return
        if measures.unreadable:
            notes.append(
                f"{len(measures.unreadable)} images could not be read and were not measured."
            )
        yield from property_columns(measures.space.embeddings, reference_of(self.samples))
        width, height = (
            np.asarray(dataset.table.column(side).combine_chunks()) for side in ("width", "height")
        )
        yield from size_columns(width, height, reference_of(self.samples))


def _kept(found: Iterable[AssignedColumn | LeftOut], notes: list[str]) -> Iterator[AssignedColumn]:
    for each in found:
        if isinstance(each, LeftOut):
            notes.append(each.sentence)
        else:
            yield each


def _with_columns(
    samples: SampleSet, found: ShelvedColumns, former: Sequence[EditedAttribute] = ()
) -> SampleSet:
    names = [name for name in found.columns.column_names if name != HAD_EMBEDDING]
    columns = {name.removeprefix(METADATA_PREFIX): found.columns.column(name) for name in names}
    attributes = found.book.attributes
    before = [each.record(None) for each in former]
    told = dict.fromkeys(
        each.column for each in (*attributes, *before) if each.source in WORD_SOURCES
    )
    titles = {**titles_of(before), **titles_of(attributes)}
    dataset = with_attribute_columns(samples.dataset, columns, found.book.columns, told=list(told))
    table = mark_added(mark_titles(dataset.table, titles), list(columns))
    return replace(samples, dataset=replace(dataset, table=table))


def with_attribute_columns(
    dataset: Dataset,
    columns: Mapping[str, pa.ChunkedArray],
    attributes: Sequence[str],
    *,
    told: Sequence[str],
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
    samples: SampleSet,
    assistants: Assistants,
    settings: Settings,
    *,
    notes: list[str],
    progress: Progress = no_progress,
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield the columns of all attributes that phrases can tell, or why one cannot be told; nothing without a text side."""
    space, embed_texts = samples.spaces.get(CLIP), assistants.embed_texts
    if space is None or embed_texts is None:
        notes.append("No attribute is told from words: there is no encoder with a text side.")
        return
    rows = spread_rows(reference_of(samples), LARGEST_SAMPLE)
    plans = planned_attributes(samples, assistants, settings, rows)
    notes += plans.notes
    yield from word_columns(
        plans.attributes,
        embed_texts=embed_texts,
        embeddings=space.embeddings,
        reference=samples.embeddings(CLIP, rows),
        progress=progress,
    )


def _key(
    samples: SampleSet, assistants: Assistants, settings: Settings, store: ProjectStore
) -> tuple[str, str]:
    """Return the group (which samples) and the key (also which encoder, settings and assistants) of the columns."""
    tables = store.current_tables()
    group = (
        tables.folder.name
        if tables is not None
        else samples.only(np.arange(len(samples.dataset))).digest()
    )
    space = samples.spaces.get(CLIP)
    content = {
        "book": BOOK_VERSION,
        "weakspot": version("weakspot"),
        "encoder": "" if space is None else space.text_id or space.encoder_id,
        "settings": settings.attributes.model_dump(mode="json"),
        "seed": settings.seed,
        "language": settings.language.model_dump(mode="json") if assistants.propose else None,
        "answerer": settings.answerer.model_dump(mode="json") if assistants.answers else None,
        "has_text": assistants.embed_texts is not None,
        "metadata": list(withhold(samples, settings.repair.groups).dataset.metadata_names),
    }
    if isinstance(assistants.seen, Seeing):
        content["witnesses"] = [settings.witnesses.model_dump(mode="json"), assistants.seen.ids()]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return group, f"{group}-{digest}"
