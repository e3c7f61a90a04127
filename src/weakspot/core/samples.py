"""Rows of a data set together with their embeddings and attributes, as methods read them, and what a method needs of them."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BLOCK_ROWS, AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import DataError
from weakspot.core.failures import ClassProblem
from weakspot.core.record import Record


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddingSpace:
    """Embeddings of one encoder for every row of a data set.

    Args:
        encoder_id: which encoder made them, with version or hash.
        embeddings: [n, d], aligned with the rows of the data set; may be memory-mapped. A row of NaN means: no embedding.
        has_text: whether phrases can be embedded into the same space.
        text_id: which text side embeds them; empty if the encoder's id says so.
    """

    encoder_id: str
    embeddings: FloatArray
    has_text: bool = False
    text_id: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleSet:
    """The rows that a method may look at.

    Args:
        dataset: all samples of the project.
        rows: the rows meant, ascending.
        spaces: embeddings by space name; `joint` is shared with text, `own` is the classifier's last layer input.
        name: how the set is called in reports, for example `validation, discovery half`.
        reference_rows: rows whose embeddings (never labels) may be used for means and deviations; training rows.
    """

    dataset: Dataset
    rows: IntArray
    spaces: Mapping[str, EmbeddingSpace] = field(default_factory=dict)
    name: str = "samples"
    reference_rows: IntArray | None = None

    def __len__(self) -> int:
        """Return the number of rows meant."""
        return len(self.rows)

    def space(self, name: str) -> EmbeddingSpace:
        if name not in self.spaces:
            raise DataError(
                f"There are no embeddings called {name!r}.",
                given=name,
                fix=f"Choose one of {sorted(self.spaces)}, or run weakspot embed.",
            )
        return self.spaces[name]

    def embeddings(self, space: str, rows: IntArray | None = None) -> FloatArray:
        """Return embeddings [n, d] of the given rows (its own by default) as float32."""
        wanted = self.rows if rows is None else rows
        return np.asarray(self.space(space).embeddings[wanted], dtype=np.float32)

    def by_blocks(
        self, space: str, rows: IntArray, measure: Callable[[FloatArray], AnyArray]
    ) -> AnyArray:
        """Return what is measured of the embeddings of rows, with a few of them in memory at a time.

        Args:
            space: whose embeddings.
            rows: any rows of the data set.
            measure: gives an array of m rows for embeddings [m, d]; what it gives for a row must not depend on the others.
        """
        if len(rows) <= BLOCK_ROWS:
            return measure(self.embeddings(space, rows))
        starts = range(0, len(rows), BLOCK_ROWS)
        return np.concatenate(
            [measure(self.embeddings(space, rows[start : start + BLOCK_ROWS])) for start in starts]
        )

    def has_embeddings(self, space: str, rows: IntArray) -> BoolArray:
        """Return which rows have an embedding [n]."""
        return self.by_blocks(
            space,
            rows,
            lambda embeddings: np.asarray(np.isfinite(embeddings).all(axis=1), dtype=np.bool_),
        )

    def only(self, rows: IntArray, *, name: str | None = None) -> "SampleSet":
        return replace(self, rows=rows, name=self.name if name is None else name)

    def digest(self) -> str:
        """Return a hash over the ids of the rows: which data was looked at."""
        ids = "\n".join(self.dataset.sample_ids(self.rows))
        return hashlib.sha256(ids.encode()).hexdigest()[:32]


def with_embeddings(
    samples: SampleSet, problem: ClassProblem, space: str
) -> tuple[ClassProblem, FloatArray]:
    """Return the problem without samples that lack an embedding, ordered by sample id, and their embeddings [n, d]."""
    embeddings = samples.embeddings(space, problem.rows)
    ids = np.array(samples.dataset.sample_ids(problem.rows))
    order = np.argsort(ids, kind="stable")
    has_embedding = np.asarray(np.isfinite(embeddings).all(axis=1))
    order = order[has_embedding[order]]
    return problem.only(order), embeddings[order]


def obstacle(
    problem: ClassProblem, *, min_failures: int, min_right: int, n_without: int = 0
) -> str:
    """Return why nothing can be said of a class, or an empty text.

    Args:
        problem: the samples that can be looked at.
        min_failures: least number of failures.
        min_right: least number of samples that did not fail.
        n_without: samples that were left out because they have no embedding.
    """
    missing = f" {n_without} samples have no embedding and were left out." if n_without else ""
    counted = f"{problem.n_failed} of {len(problem.rows)} samples failed"
    if problem.n_failed < min_failures:
        return f"Too few failures to see a pattern: {counted}, at least {min_failures} are needed.{missing}"
    if problem.n_right < min_right:
        return f"Too few samples that did not fail: {counted}, at least {min_right} right ones are needed.{missing}"
    return ""


def separating_cut(scores: AnyArray, failed: BoolArray, *, min_inside: int = 1) -> float | None:
    """Return the score from which on failures stand out most: the largest association of membership with failure.

    The cut lies midway between two neighbouring scores; None when there is none that leaves enough samples on both sides.

    >>> separating_cut(np.array([0.1, 0.2, 0.7, 0.9]), np.array([False, False, True, True])).__round__(2)
    0.45
    """
    order = np.argsort(-scores, kind="stable")
    ranked = np.asarray(scores, dtype=np.float64)[order]
    ends = np.flatnonzero(ranked[:-1] > ranked[1:])
    ends = ends[ends + 1 >= min_inside]
    if not len(ends):
        return None
    share = (ends + 1) / len(ranked)
    both = np.cumsum(failed[order])[ends] / len(ranked)
    # The phi coefficient of every cut, up to a factor that is the same for all.
    strengths = (both - share * failed.mean()) / np.sqrt(share * (1 - share))
    best = ends[int(np.argmax(np.round(strengths, 9)))]
    return float((ranked[best] + ranked[best + 1]) / 2)


BOOK_VERSION = 1
_MARK = b"weakspot.attributes"
_MARK_OF_WORDS = b"weakspot.told-by-words"
_MARK_OF_TITLES = b"weakspot.attribute-titles"
_MARK_OF_ADDED = b"weakspot.added-columns"

AttributeSource = Literal["built-in", "proposed", "property", "metadata", "given"]
WORD_SOURCES: frozenset[AttributeSource] = frozenset({"built-in", "proposed", "given"})
"""Sources whose values are told from embeddings by words."""


class AttributeValue(Record):
    """One value of an attribute.

    Args:
        value: what stands in the column; it never changes, because stored slices read it.
        title: what people call it now; empty for the value itself.
        phrases: what it was told from images by; those at even places are one half of the wordings, the others the second half.
        merged: answers that were taken to mean the same.
        low: lower end of a bin of numbers, included; None for no end.
        high: upper end of a bin of numbers, included; None for no end.
        share: share of all samples that have it.
    """

    value: str
    title: str = ""
    phrases: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    share: float = 0.0

    @property
    def shown(self) -> str:
        """Return what people call it."""
        return self.title or self.value


class Attribute(Record):
    """One attribute, and the metadata column that holds it.

    Args:
        name: what it is, for example `background`.
        column: the metadata column; another than the name where the data set had a column of that name, or where people edited it.
        source: built-in vocabulary, proposed by a language model, measured property of images, metadata that was there, or given
            in words by a person.
        question: what a question answerer was asked.
        values: in the order of their making; every value of the column is among them.
        cut_points: where numbers were cut into bins.
        unsure_share: share of the samples with an embedding whose value could not be told; the column is null there.
        missing_share: share of all samples of which nothing is known: no embedding, no image, or null in the data.
        agreement: share of reference samples on which both halves of the wordings say the same; None where no words were used.
        least_margin: smallest lead of the best value over the second that is believed; None where no words were used.
    """

    name: str
    column: str
    source: AttributeSource
    question: str = ""
    values: tuple[AttributeValue, ...]
    cut_points: tuple[float, ...] = ()
    unsure_share: float = 0.0
    missing_share: float = 0.0
    agreement: float | None = None
    least_margin: float | None = None


class AttributeBook(Record):
    """All attributes of a project's samples, and what was left out.

    Args:
        book_version: layout of this record.
        encoder_id: whose embeddings were compared with phrases; empty if none.
        attributes: in the order in which they were made.
        notes: what was left out or done otherwise, in sentences.
    """

    book_version: int = BOOK_VERSION
    encoder_id: str = ""
    attributes: tuple[Attribute, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(attribute.column for attribute in self.attributes)


def _marked(table: pa.Table, mark: bytes, content: object) -> pa.Table:
    kept = {**(table.schema.metadata or {}), mark: json.dumps(content).encode()}
    return table.replace_schema_metadata(kept)


def _read_mark(table: pa.Table, mark: bytes) -> Any:
    """Return what a mark holds; None where the table has none."""
    content = (table.schema.metadata or {}).get(mark)
    return None if content is None else json.loads(content)


def mark_attributes(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the table with a mark that says which of its metadata columns (names without prefix) are attributes."""
    return _marked(table, _MARK, list(columns))


def marked_attributes(table: pa.Table) -> tuple[str, ...] | None:
    """Return which metadata columns are attributes, or None if nobody has said so.

    >>> marked_attributes(mark_attributes(pa.table({"meta.site": ["north"]}), ["site"]))
    ('site',)
    """
    names = _read_mark(table, _MARK)
    return None if names is None else tuple(names)


def mark_told_by_words(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the table with a mark that says which metadata columns were told from embeddings by words.

    Such a column repeats what the encoder says, so it is no independent witness of words that the encoder chose.
    """
    return _marked(table, _MARK_OF_WORDS, list(columns))


def told_by_words(table: pa.Table) -> frozenset[str]:
    """Return which metadata columns were told from embeddings by words.

    >>> sorted(told_by_words(mark_told_by_words(pa.table({"meta.colour": ["green"]}), ["colour"])))
    ['colour']
    """
    return frozenset(_read_mark(table, _MARK_OF_WORDS) or ())


Titles = Mapping[str, tuple[str, Mapping[str, str]]]
"""Of metadata columns: what the attribute is called, and what those of its values are called that people renamed."""


def titles_of(attributes: Sequence[Attribute]) -> Titles:
    """Return what columns and values are called."""
    return {
        each.column: (
            each.name,
            {
                value.value: value.title
                for value in each.values
                if value.title and value.title != value.value
            },
        )
        for each in attributes
    }


def mark_titles(table: pa.Table, titles: Titles) -> pa.Table:
    """Return the table with a mark that says what its columns and values are called."""
    content = {column: [name, dict(values)] for column, (name, values) in titles.items()}
    return _marked(table, _MARK_OF_TITLES, content)


def shown_as(table: pa.Table, column: str, value: str) -> tuple[str, str]:
    """Return what people call a column and one of its values; as they are where nobody has said otherwise.

    >>> table = mark_titles(pa.table({"meta.colour (1f)": ["green"]}), {"colour (1f)": ("hue", {"green": "unripe"})})
    >>> shown_as(table, "colour (1f)", "green"), shown_as(table, "site", "north")
    (('hue', 'unripe'), ('site', 'north'))
    """
    name, values = (_read_mark(table, _MARK_OF_TITLES) or {}).get(column, (column, {}))
    return str(name), str(values.get(value, value))


def mark_added(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the table with a mark that says which metadata columns were computed, and so are none of the user's."""
    return _marked(table, _MARK_OF_ADDED, list(columns))


def added_columns(table: pa.Table) -> tuple[str, ...]:
    """Return which metadata columns were computed.

    >>> added_columns(mark_added(pa.table({"meta.colour": ["green"]}), ["colour"]))
    ('colour',)
    """
    return tuple(_read_mark(table, _MARK_OF_ADDED) or ())


CLIP = "clip"
CAPTION_COLUMN = "caption"


class Need(StrEnum):
    """Something that a method reads beside labels and predictions."""

    COLUMNS = "columns"
    CAPTIONS = "captions"
    EMBEDDINGS = "embeddings"
    IMAGES = "images"


@dataclass(frozen=True, kw_only=True)
class Material:
    """What there is beside labels and predictions.

    Args:
        n_columns: metadata columns that can be compared.
        has_captions: whether samples come with captions.
        spaces: names of the spaces of embeddings.
        has_images: whether samples have images.
        has_idle_columns: whether there are columns, but none that can be compared.
    """

    n_columns: int = 0
    has_captions: bool = False
    spaces: frozenset[str] = frozenset()
    has_images: bool = False
    has_idle_columns: bool = False

    @classmethod
    def of(cls, samples: SampleSet) -> "Material":
        dataset = samples.dataset
        marked = marked_attributes(dataset.table)
        return cls(
            n_columns=len(dataset.metadata_names if marked is None else marked),
            has_captions=CAPTION_COLUMN in dataset.metadata_names,
            spaces=frozenset(samples.spaces),
            has_images=dataset.has_images,
            has_idle_columns=marked == () and bool(dataset.metadata_names),
        )

    def has(self, need: Need) -> bool:
        return {
            Need.COLUMNS: self.n_columns > 0,
            Need.CAPTIONS: self.has_captions,
            Need.EMBEDDINGS: bool(self.spaces),
            Need.IMAGES: self.has_images,
        }[need]

    def missing(self, part: object) -> tuple[Need, ...]:
        """Return what a method needs and is not there."""
        return tuple(need for need in needs_of(part) if not self.has(need))

    def words(self, needs: Sequence[Need]) -> list[str]:
        """Return what there is of some needs, in words: `8 columns`, `captions`."""
        columns = "1 column" if self.n_columns == 1 else f"{self.n_columns} columns"
        return [columns if need is Need.COLUMNS else need.value for need in needs]


def needs_of(part: object) -> tuple[Need, ...]:
    """Return the needs that a method states; a plug-in may state none."""
    return tuple(Need(need) for need in getattr(part, "needs", ()))
