"""What every source of samples can do, the splits it names, the samples it marks as generated, and all its problems said at once."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray
from weakspot.core.dataset import SPLIT_ORDER, RawSample, Split
from weakspot.core.errors import DataError, raise_all
from weakspot.core.generated import MAKER, MARK, is_generated
from weakspot.data.locations import ListedFile, explained, file_facts, open_location


@runtime_checkable
class SampleSource(Protocol):
    """Samples in an order that never changes, read as a stream.

    Reading needs memory for a bounded number of samples, and can begin again anywhere, so that a killed run goes on.
    """

    @property
    def kind(self) -> str:
        """Which kind of source it is, for example `image-folder`."""

    @property
    def location(self) -> str:
        """Where it is, for people."""

    def fingerprint(self) -> str:
        """Return 32 hexadecimal digits that change when the source does."""

    def count(self) -> int | None:
        """Return the number of samples, or None when only reading to the end can tell."""

    def read(self, start: int = 0) -> Iterator[RawSample]:
        """Yield samples from position `start` on.

        Raises:
            DataError: listing everything that is wrong with the source, before the first sample.
        """


@dataclass(frozen=True, kw_only=True)
class ColumnSource:
    """A place whose samples have columns: what all such sources are told.

    Args:
        location: a file, a folder, a pattern or a name.
        columns: role (`path`, `bytes`, `label`, `labels`, `split`, `prediction`, `predictions`, `probabilities`, `key`) to column
            name, where the names do not tell.
        default_split: split of samples that name none.
    """

    kind: ClassVar[str]
    location: str
    columns: Mapping[str, str] = field(default_factory=dict)
    default_split: Split | None = None


CONTENT_LIMIT_BYTES = 256 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_HASH_BYTES = 16


def fingerprint_of_listing(files: Iterable[ListedFile], *settings: object) -> str:
    """Return a hash over paths, sizes and times of change, and over how they are read."""
    digest = hashlib.blake2b(_encode(settings), digest_size=_HASH_BYTES)
    for file in files:
        digest.update(_encode((file.relative, file.size, file.stamp)))
    return digest.hexdigest()


def fingerprint_of_files(locations: Iterable[str], *settings: object) -> str:
    """Return a hash over the content of files; of huge files, over size and time of change."""
    digest = hashlib.blake2b(_encode(settings), digest_size=_HASH_BYTES)
    for location in locations:
        facts = file_facts(location)
        if 0 <= facts.size <= CONTENT_LIMIT_BYTES:
            digest.update(_content_digest(location))
        else:
            digest.update(_encode((facts.relative, facts.size, facts.stamp)))
    return digest.hexdigest()


def fingerprint_of_values(values: Iterable[object]) -> str:
    """Return a hash over values in memory, each bytes or printable."""
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    for value in values:
        digest.update(value if isinstance(value, bytes) else _encode(value))
    return digest.hexdigest()


def _content_digest(location: str) -> bytes:
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    with open_location(location) as file:
        try:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
        except OSError as error:
            raise explained(error, location) from error
    return digest.digest()


def _encode(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode() + b"\n"


_SYNONYMS: dict[Split, tuple[str, ...]] = {
    Split.TRAIN: ("train", "training", "trn"),
    Split.VALIDATION: ("validation", "val", "valid", "validate", "dev", "development"),
    Split.TEST: ("test", "testing", "tst"),
    Split.POOL: ("pool", "unlabelled", "unlabeled", "unsupervised"),
    Split.SYNTHETIC: ("synthetic",),
}
_BY_NAME = {name: split for split, names in _SYNONYMS.items() for name in names}
_LEADING_WORD = re.compile(r"^[A-Za-z]+")


def parse_split(name: str) -> Split | None:
    """Return the split that a name means, or None when it means none.

    >>> parse_split("Val"), parse_split("unlabeled"), parse_split("green")
    (<Split.VALIDATION: 'validation'>, <Split.POOL: 'pool'>, None)
    """
    return _BY_NAME.get(name.strip().lower())


def split_of_file_name(relative: str) -> Split | None:
    """Return the split that a shard's path tells: the first word of its name, else a folder above it.

    >>> split_of_file_name("data/train-00001-of-00004.parquet")
    <Split.TRAIN: 'train'>
    """
    *folders, name = relative.replace("\\", "/").split("/")
    word = _LEADING_WORD.match(name)
    found = parse_split(word.group()) if word else None
    for folder in reversed(folders):
        found = found or parse_split(folder)
    return found


def split_names() -> str:
    return ", ".join(_BY_NAME)


MAX_SHOWN = 20
_MAX_ROWS_SHOWN = 3


@dataclass
class Problems:
    """Problems met so far; alike ones are counted together and only the first are kept, so memory stays bounded."""

    _counts: Counter[str] = field(default_factory=Counter)
    _first_rows: dict[str, list[str]] = field(default_factory=dict)
    _n_more: int = 0

    def add(self, message: str, *, row: str | None = None) -> None:
        if message not in self._counts and len(self._counts) >= MAX_SHOWN:
            self._n_more += 1
            return
        self._counts[message] += 1
        rows = self._first_rows.setdefault(message, [])
        if row is not None and len(rows) < _MAX_ROWS_SHOWN:
            rows.append(row)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def raise_if_any(self, *, what: str, where: str, fix: str | None = None) -> None:
        """Raise one DataError that lists them all."""
        listed = [self._sentence(message) for message in self._counts]
        if self._n_more:
            listed.append(f"and {self._n_more} more like these.")
        raise_all(listed, error=DataError, what=what, where=where, fix=fix)

    def _sentence(self, message: str) -> str:
        rows, count = self._first_rows[message], self._counts[message]
        if not rows:
            return message
        more = "" if count == len(rows) else f"{count} times, first: "
        return f"{message} ({more}{', '.join(rows)})"


_SYNTHETIC = SPLIT_ORDER.index(Split.SYNTHETIC)
_VERIFYING = [SPLIT_ORDER.index(split) for split in (Split.VALIDATION, Split.TEST)]
_MAX_NAMED = 5


def generated_rows(metadata: pa.Array | pa.ChunkedArray) -> BoolArray:
    """Return which samples were generated [n], given their free columns as JSON objects or null."""
    marks = f'"({MARK}|{MAKER})": '
    candidates = np.flatnonzero(
        np.asarray(pc.fill_null(pc.match_substring_regex(metadata, marks), fill_value=False))
    )
    found = np.zeros(len(metadata), dtype=np.bool_)
    found[candidates] = [is_generated(json.loads(metadata[int(row)].as_py())) for row in candidates]
    return found


def generated_values(columns: Mapping[str, pa.Array], n_rows: int) -> BoolArray:
    """Return which samples were generated [n], given their free columns as values."""
    told = {name: columns[name].to_pylist() for name in (MARK, MAKER) if name in columns}
    if not told:
        return np.zeros(n_rows, dtype=np.bool_)
    rows = zip(*told.values(), strict=True)
    return np.array([is_generated(dict(zip(told, row, strict=True))) for row in rows], np.bool_)


def put_apart(
    given: AnyArray, is_marked: BoolArray, first_rows: AnyArray
) -> tuple[AnyArray, BoolArray]:
    """Return splits with every generated sample in `synthetic`, and which samples must not be where they are [n].

    A copy of a generated image is a generated image, whatever its own row says.

    Args:
        given: position of the given split in `SPLIT_ORDER`, -1 where none is given [n].
        is_marked: which samples the source calls generated [n].
        first_rows: the first row with the same content, itself if it is the first [n].
    """
    of_first = np.zeros(len(given), dtype=np.bool_)
    of_first[first_rows[is_marked | (given == _SYNTHETIC)]] = True
    is_ours = of_first[first_rows]
    return np.where(is_ours, _SYNTHETIC, given).astype(np.int8), is_ours & np.isin(
        given, _VERIFYING
    )


def refuse_verifying(is_wrong: BoolArray, keys: Iterable[str], *, where: str) -> None:
    """Raise if a generated sample is to be verified on.

    Args:
        is_wrong: which samples those are [n].
        keys: what all samples are called, in order; only read if there is something to say.
        where: the source.

    Raises:
        DataError: with their number and the first of them.
    """
    n_wrong = int(is_wrong.sum())
    if not n_wrong:
        return
    named: list[str] = []
    for key, wrong in zip(keys, is_wrong.tolist(), strict=True):
        named += [key] * wrong
        if len(named) == _MAX_NAMED:
            break
    more = f" and {n_wrong - len(named)} more" if n_wrong > len(named) else ""
    raise DataError(
        f"{n_wrong} generated samples, or copies of them, are put into validation or test: {', '.join(named)}{more}. "
        "What a classifier does on generated images proves nothing about real ones.",
        where=where,
        fix="Name the split synthetic for them, or none; if they are real, set their column synthetic to false.",
    )
