"""Attributes for all samples of a project: proposed or built in, assigned once, and edited by people.

The edits are kept in a file beside weakspot.toml.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from weakspot.core.arrays import BoolArray, IntArray, even_part
from weakspot.core.assistants import MIN_TRUST, Assistants, EmbedTexts
from weakspot.core.dataset import METADATA_PREFIX, Dataset, Split
from weakspot.core.errors import (
    ModelError,
    NotEnoughDataError,
    StoreError,
    UnavailableError,
    WeakspotError,
)
from weakspot.core.roles import Engine
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import (
    BOOK_VERSION,
    WORD_SOURCES,
    Attribute,
    AttributeBook,
    AttributeSource,
    EmbeddingSpace,
    SampleSet,
    added_columns,
    mark_added,
    mark_attributes,
    mark_titles,
    mark_told_by_words,
    titles_of,
)
from weakspot.run.embedding import EmbedSettings, embed
from weakspot.run.halves import withhold
from weakspot.run.model_map import ImageBench
from weakspot.run.settings import Settings
from weakspot.run.witnesses import Seeing, witnessed_columns
from weakspot.store import atomic
from weakspot.store.columns import ColumnCache, ShelvedColumns
from weakspot.store.project import ProjectStore
from weakspot.words.attribute_columns import AssignedColumn, LeftOut, user_columns, with_free_names
from weakspot.words.captions import WordedAttribute, built_in_attributes
from weakspot.words.editing import (
    AttributeEdit,
    EditedAttribute,
    EditLog,
    LoggedEdit,
    edited_book,
)
from weakspot.words.planning import (
    Plan,
    Planner,
    built_in_attribute,
    proposed_names,
    values_from_model,
)
from weakspot.words.properties import ImageProperties, property_columns, size_columns
from weakspot.words.representatives import MAX_SAMPLE, medoids, most_unlike
from weakspot.words.wordnet import are_synonyms
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
        for number in range(1, self.log.version + 1):
            for attribute in edited_book(self.base.book, self.log.at(number))[0]:
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


Found = TypeVar("Found")

N_REPRESENTATIVES = 100
N_UNLIKE = 50
MAX_COMPARED = 5000
ASK_AGAIN = "Remove .weakspot/attributes to ask again."


@dataclass
class _Asking:
    """Asks the assistants for words; one that fails is not asked again."""

    samples: SampleSet
    assistants: Assistants
    settings: Settings
    rows: IntArray
    planner: Planner
    notes: list[str] = field(default_factory=list)

    def one(self, name: str) -> Plan:
        known = built_in_attribute(name, are_synonyms)
        is_asked = self.assistants.propose is not None or self.assistants.answers is not None
        return self._plan(name, known, source="proposed" if is_asked else "built-in")

    def run(self) -> tuple[Attribute, ...]:
        names = self._names()
        plans = (
            [self._plan(known.name, known, source="built-in") for known in built_in_attributes()]
            if names is None
            else [
                self._plan(name, built_in_attribute(name, are_synonyms), source="proposed")
                for name in names
            ]
        )
        for plan in plans:
            self.notes += [*plan.notes, *([plan.left_out.sentence] if plan.left_out else [])]
        return tuple(plan.attribute for plan in plans if plan.attribute is not None)

    @property
    def _class_names(self) -> tuple[str, ...]:
        return self.samples.dataset.class_names

    def _names(self) -> tuple[str, ...] | None:
        propose = self.assistants.propose
        if propose is None:
            return None
        task = self.settings.attributes.task
        return self._try_all(
            lambda: proposed_names(propose, task, self._class_names, same_meaning=are_synonyms),
            otherwise="The language model proposed no attributes, so the built-in ones are used",
        )

    def _plan(self, name: str, known: WordedAttribute | None, *, source: AttributeSource) -> Plan:
        question = f"What is the {name} in this image?" if known is None else known.question
        answers = self._answers(question)
        if answers is not None:
            return self.planner.from_answers(
                name, answers, worded=known, question=question, source=source
            )
        listed = self._listed(name) if source == "proposed" else None
        if listed is not None or known is None:
            return self.planner.from_list(name, listed or [], worded=known, question=question)
        return Plan(attribute=self.planner.built_in(known, source=source, name=name))

    def _answers(self, question: str) -> list[str] | None:
        ask = self.assistants.answers
        if ask is None:
            return None
        found = self._try_all(
            lambda: ask(self.rows, question),
            otherwise="The question answerer failed and is not asked again",
        )
        if found is None:
            self.assistants = Assistants(
                embed_texts=self.assistants.embed_texts, propose=self.assistants.propose
            )
        return found

    def _listed(self, name: str) -> list[str] | None:
        propose = self.assistants.propose
        if propose is None:
            return None
        return self._try_all(
            lambda: values_from_model(
                propose, name, self.settings.attributes.task, self._class_names
            ),
            otherwise=f"The language model lists no values of {name!r}",
        )

    def _try_all(self, ask: Callable[[], Found], *, otherwise: str) -> Found | None:
        try:
            return ask()
        except WeakspotError as error:
            self.notes.append(f"{otherwise}: {error} {ASK_AGAIN}")
            return None


def planned_attributes(
    samples: SampleSet, assistants: Assistants, settings: Settings, reference_rows: IntArray
) -> tuple[tuple[Attribute, ...], list[str]]:
    """Return the attributes in words that are to be assigned, with values and phrases, and what to know about them.

    Args:
        samples: with embeddings in CLIP space.
        assistants: who can be asked; none has to be there.
        settings: the task is told to the language model.
        reference_rows: samples among which representative ones are chosen for questions.
    """
    asking = _asking(samples, assistants, settings, reference_rows)
    return asking.run(), asking.notes


def proposed_attribute(
    name: str,
    samples: SampleSet,
    assistants: Assistants,
    settings: Settings,
    reference_rows: IntArray,
) -> tuple[Attribute, tuple[str, ...]]:
    """Return an attribute that a person names, with values from whoever can be asked, and notes.

    Raises:
        UnavailableError: if nobody can be asked, and the name is none of the built-in ones.
        ModelError: if whoever was asked gave no values that can be used.
    """
    if (
        assistants.propose is None
        and assistants.answers is None
        and built_in_attribute(name, are_synonyms) is None
    ):
        raise UnavailableError(
            f"Nobody can be asked for values of {name!r}.",
            fix="Give the values yourself, or configure [language] or [answerer] in weakspot.toml.",
        )
    asking = _asking(samples, assistants, settings, reference_rows)
    plan = asking.one(name)
    if plan.attribute is None:
        why = plan.left_out.why if plan.left_out else "nothing was answered"
        raise ModelError(
            f"No values of {name!r} were found: {why}.", fix="Give the values yourself."
        )
    return plan.attribute, (*asking.notes, *plan.notes)


def given_values(
    name: str, given: Sequence[tuple[str, Sequence[str]]], class_names: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """Return the phrases of values that a person gives, each as a title and phrases.

    A value without phrases gets some; one with a single phrase gets a second in other words, because a sample whose value depends
    on the wording is unsure.
    """
    planner = Planner(class_names=tuple(class_names), same_meaning=are_synonyms)
    known = built_in_attribute(name, are_synonyms)
    planned = planner.given(name, [title for title, _ in given], worded=known)
    found: list[tuple[str, ...]] = []
    for (_, phrases), value in zip(given, planned, strict=True):
        own = tuple(dict.fromkeys(" ".join(phrase.split()) for phrase in phrases if phrase.strip()))
        found.append(
            value.phrases if not own else (own[0], value.phrases[1]) if len(own) == 1 else own
        )
    return tuple(found)


def representatives(samples: SampleSet, reference_rows: IntArray, *, seed: int) -> IntArray:
    """Return the rows that questions are asked about: training samples, and as many evaluation samples.

    A value that training lacks is often the one that fails, so evaluation samples are asked about, half of them those that are least
    like training. Predictions play no part: values are tested as rules that were made without them.
    """
    trained = samples.embeddings("clip", reference_rows)
    found = [reference_rows[medoids(trained, N_REPRESENTATIVES, seed=seed)]]
    evaluated = samples.dataset.rows_of(Split.VALIDATION, Split.TEST)
    fresh = even_part(np.setdiff1d(evaluated, reference_rows), MAX_COMPARED)
    if len(fresh):
        shown = samples.embeddings("clip", fresh)
        few = even_part(np.arange(len(trained)), MAX_COMPARED)
        odd = fresh[most_unlike(shown, trained[few], N_UNLIKE)]
        usual = fresh[medoids(shown, N_REPRESENTATIVES - len(odd), seed=seed)]
        found += [odd, usual]
    return np.unique(np.concatenate(found))


def _known_words(assistants: Assistants, words: Sequence[str]) -> list[bool]:
    trust = None if assistants.trust is None else assistants.trust(words)
    return [True] * len(words) if trust is None else [bool(one >= MIN_TRUST) for one in trust]


def _asking(
    samples: SampleSet, assistants: Assistants, settings: Settings, reference_rows: IntArray
) -> _Asking:
    planner = Planner(
        class_names=samples.dataset.class_names,
        same_meaning=are_synonyms,
        can_be_told=lambda words: _known_words(assistants, words),
    )
    rows = reference_rows[:0]
    if assistants.answers is not None:
        rows = representatives(samples, reference_rows, seed=settings.seed)
    return _Asking(
        samples=samples, assistants=assistants, settings=settings, rows=rows, planner=planner
    )


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
        base = _assigned(own, assistants, settings, store, engine=engine, progress=progress)
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
    notes = [*editions.base.book.notes, *editions.now[1].values()]
    try:
        editions.tell(assistants.embed_texts, progress)
    except WeakspotError as error:
        notes.append(f"What people added is not told from words: {error}")
    columns = {METADATA_PREFIX + name: column for name, column in editions.all_columns()}
    records = []
    for attribute in editions.now[0]:
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


def _assigned(
    samples: SampleSet,
    assistants: Assistants,
    settings: Settings,
    store: ProjectStore,
    *,
    engine: Engine,
    progress: Progress,
) -> ShelvedColumns:
    """Return all attributes, made in one pass."""
    dataset, wishes, reference = samples.dataset, settings.attributes, reference_of(samples)
    own = withhold(samples, settings.repair.groups).dataset
    notes: list[str] = []
    found = [*_kept(user_columns(own, reference, wishes.columns), notes)]
    if wishes.use_vocabulary:
        try:
            told = told_from_words(samples, assistants, settings, notes=notes, progress=progress)
            found += _kept(told, notes)
        except WeakspotError as error:
            notes.append(f"No attribute is told from words: {error}")
    if wishes.use_properties and not dataset.has_images:
        notes.append("Nothing is measured in images: there are none.")
    elif wishes.use_properties:
        bench = ImageBench(
            dataset=dataset, store=store, engine=engine, progress_of=lambda _step: progress
        )
        found += _kept(_properties(bench, reference, notes), notes)
    if isinstance(assistants.seen, Seeing):
        seen = witnessed_columns(assistants.seen, dataset, settings.witnesses, notes)
        found += _kept(seen, notes)
    named = with_free_names(found, dataset.metadata_names)
    columns = {
        METADATA_PREFIX + each.attribute.column: each.column
        for each in named
        if each.column is not None
    }
    space = samples.spaces.get(CLIP)
    book = AttributeBook(
        encoder_id="" if space is None else space.encoder_id,
        attributes=tuple(each.attribute for each in named),
        notes=tuple(dict.fromkeys(notes)),
    )
    known = pa.array(has_embedding(samples))
    return ShelvedColumns(book=book, columns=pa.table({**columns, HAD_EMBEDDING: known}))


def _properties(
    bench: ImageBench, reference: IntArray, notes: list[str]
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield what is measured in images; nothing, and a note, where none can be read."""
    try:
        measures = embed(
            bench.store,
            bench.dataset,
            ImageProperties(),
            engine=bench.engine,
            progress=bench.progress_of("attributes"),
            settings=EmbedSettings(batch_size=MEASURE_BATCH),
        )
    except NotEnoughDataError as error:
        notes.append(f"Nothing is measured in images: {error}")
        return
    if measures.unreadable:
        notes.append(f"{len(measures.unreadable)} images could not be read and were not measured.")
    yield from property_columns(measures.space.embeddings, reference)
    width, height = (
        np.asarray(bench.dataset.table.column(side).combine_chunks())
        for side in ("width", "height")
    )
    yield from size_columns(width, height, reference)


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
    rows = even_part(reference_of(samples), MAX_SAMPLE)
    attributes, planning_notes = planned_attributes(samples, assistants, settings, rows)
    notes += planning_notes
    yield from word_columns(
        attributes,
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
