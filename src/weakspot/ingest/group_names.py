"""Which samples belong together, as the user says: by a column, a folder or a pattern in the file's name."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.dataset import GROUP
from weakspot.core.errors import ConfigError
from weakspot.core.groups import join_groups
from weakspot.ingest.metadata_columns import METADATA, values_of

AUTO, NONE, FILE_NAME = "auto", "none", "file-name"
STEM_PATTERN = "^(.*?)[-_ ]?[0-9]+[.][^./]+$"
"""What `file-name` means: what stands before the number at the end of the file's name."""
ON_ITS_OWN = -1
FEW_GROUPS = 10
MANY_SAMPLES = 100
LARGEST_SHARE = 0.25
_FOLDER = re.compile(r"folder:([1-9]\d*)")


@dataclass(frozen=True, kw_only=True)
class GroupChoice:
    """Where the name of a sample's group stands.

    Args:
        kind: a free column, a folder above the image, or a pattern with one capture.
        value: name of the column, number of the folder (1 holds the image), or the pattern.
        is_told: whether the user said so; a column that merely is called `group` need not be one of objects.
    """

    kind: Literal["none", "column", "folder", "pattern"]
    value: str = ""
    is_told: bool = True

    @classmethod
    def of(cls, setting: str) -> "GroupChoice":
        """Read the setting `[data] group`.

        Raises:
            ConfigError: for a pattern that is none, or that does not have exactly one capture.

        >>> GroupChoice.of("patient_id").kind, GroupChoice.of("folder:1").kind, GroupChoice.of("file-name").kind
        ('column', 'folder', 'pattern')
        """
        if setting in (AUTO, ""):
            return cls(kind="column", value=GROUP, is_told=False)
        if setting == NONE:
            return cls(kind="none")
        if setting == FILE_NAME:
            return cls(kind="pattern", value=STEM_PATTERN)
        folder = _FOLDER.fullmatch(setting)
        if folder:
            return cls(kind="folder", value=folder.group(1))
        if "(" not in setting:
            return cls(kind="column", value=setting)
        _check_pattern(setting)
        return cls(kind="pattern", value=setting)

    def names(self, part: pa.Table) -> pa.Array | None:
        """Return the group of every sample of a part, null for one on its own; None if there is none at all."""
        if self.kind == "none":
            return None
        if self.kind == "column":
            return _column_values(part, self.value)
        keys, places = part.column("key").to_pylist(), part.column("location").to_pylist()
        find = (
            partial(_folder_above, int(self.value))
            if self.kind == "folder"
            else partial(_capture, re.compile(self.value))
        )
        names = [find(key) or find(place) for key, place in zip(keys, places, strict=True)]
        return pa.array(names, pa.string()) if any(names) else None


def _check_pattern(setting: str) -> None:
    try:
        n_captures = re.compile(setting).groups
    except re.error as error:
        raise ConfigError(
            f"The pattern is no regular expression: {error}.", where="[data] group", given=setting
        ) from error
    if n_captures != 1:
        raise ConfigError(
            f"The pattern must have exactly one capture, and has {n_captures}.",
            where="[data] group",
            given=setting,
            fix="Put ( ) around the part of the file's name that is the same for images that belong together, and (?: ) around others.",
        )


def _folder_above(number: int, place: str | None) -> str | None:
    """Return the path up to the folder, so that folders of the same name in different places differ."""
    parts = (place or "").partition("#")[0].replace("\\", "/").split("/")
    return "/".join(parts[: max(len(parts) - number, 0)]) or None


def _capture(pattern: re.Pattern[str], place: str | None) -> str | None:
    found = pattern.search(place or "")
    return found.group(1) if found else None


def _column_values(part: pa.Table, name: str) -> pa.Array | None:
    held = values_of(part).get(name)
    if held is not None:
        return held if pa.types.is_string(held.type) else _texts(held.to_pylist())
    metadata = part.column(METADATA)
    has_it = pc.fill_null(
        pc.match_substring(metadata, f"{json.dumps(name)}: "),
        fill_value=False,
    )
    if not pc.any(has_it).as_py():
        return None
    rows = json.loads("[" + ",".join(text or "{}" for text in metadata.to_pylist()) + "]")
    return _texts([row.get(name) for row in rows])


def _texts(values: list[object]) -> pa.Array:
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: object) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(kw_only=True)
class GroupsSeen:
    """Groups of all parts that were looked at; four bytes a sample, and nothing while there is none.

    Args:
        choice: where names stand.
        names: number of every name.
    """

    choice: GroupChoice = field(default_factory=lambda: GroupChoice(kind="none"))
    names: dict[str, int] = field(default_factory=dict)
    _codes: list[AnyArray | None] = field(default_factory=list)
    _lengths: list[int] = field(default_factory=list)

    def observe(self, part: pa.Table) -> None:
        """Look at the samples of one part."""
        found = self.choice.names(part)
        self._lengths.append(part.num_rows)
        self._codes.append(None if found is None else self._number(found))

    def _number(self, names: pa.Array) -> AnyArray:
        encoded = names.dictionary_encode()
        numbers = [
            self.names.setdefault(name, len(self.names)) for name in encoded.dictionary.to_pylist()
        ]
        by_position = np.array([*numbers, ON_ITS_OWN], dtype=np.int32)
        return np.asarray(by_position[np.asarray(pc.fill_null(encoded.indices, len(numbers)))])

    def codes(self) -> AnyArray | None:
        """Return the number of every sample's group, -1 on its own [n]; None if no sample names one. Empties the parts."""
        if not self.names:
            return None
        parts = [
            np.full(length, ON_ITS_OWN, dtype=np.int32) if part is None else part
            for part, length in zip(self._codes, self._lengths, strict=True)
        ]
        self._codes.clear()
        return np.concatenate(parts)

    def why_not(self, codes: AnyArray) -> str:
        """Return why groups that nobody told of are not taken for objects; empty if they are."""
        sizes = np.bincount(codes[codes >= 0])
        if self.choice.is_told or len(codes) < MANY_SAMPLES:
            return ""
        if len(sizes) >= FEW_GROUPS and sizes.max() <= LARGEST_SHARE * len(codes):
            return ""
        return (
            f"The column {GROUP!r} has {len(sizes)} values for {len(codes)} images, so it was not taken for groups of images that "
            f'belong together; [data] group = "{GROUP}" takes it.'
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedGroups:
    """Groups of the samples of a source.

    Args:
        codes: number of every sample's group, -1 on its own [n].
        names: the names behind the numbers.
        first_rows: the first row of the same group or content [n].
    """

    codes: AnyArray
    names: pa.Array
    first_rows: IntArray

    def column(self, rows: IntArray) -> pa.Array:
        """Return the names of the groups of some rows, null for a sample on its own."""
        codes = self.codes[rows]
        return self.names.take(pa.array(codes, mask=codes < 0))

    def counts(self, splits: AnyArray) -> Iterator[int]:
        """Yield groups of several samples, samples in them, and groups that are in several splits."""
        _, inverse, sizes = np.unique(self.first_rows, return_inverse=True, return_counts=True)
        lowest, highest = np.full(len(sizes), 127), np.full(len(sizes), -1)
        np.minimum.at(lowest, inverse, splits)
        np.maximum.at(highest, inverse, splits)
        yield int(np.sum(sizes > 1))
        yield int(sizes[sizes > 1].sum())
        yield int(np.sum(lowest < highest))


def named_groups(codes: AnyArray, names: dict[str, int], contents: AnyArray) -> NamedGroups:
    """Put groups and copies of the same image together.

    Args:
        codes: number of every sample's group, -1 on its own [n].
        names: number of every name.
        contents: the first row with the same content [n].
    """
    units = join_groups(codes.astype(np.int64), np.asarray(contents, dtype=np.int64))
    _, first, inverse = np.unique(units, return_index=True, return_inverse=True)
    return NamedGroups(
        codes=codes, names=pa.array(list(names), pa.string()), first_rows=first[inverse]
    )
