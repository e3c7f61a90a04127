"""WebDataset tar shards."""

import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath

from weakspot.core.dataset import RawSample
from weakspot.core.errors import DataError
from weakspot.data.columns import ColumnRoles, resolve_columns
from weakspot.data.image_folder import is_image_name
from weakspot.data.locations import (
    file_facts,
    find_shards,
    is_local,
    open_location,
    range_location,
    shown_location,
    stamp_of,
)
from weakspot.data.rows import RowLayout, metadata_kind, samples_of
from weakspot.data.source import ColumnSource, Problems, fingerprint_of_listing, split_of_file_name
from weakspot.data.tables import TableBatch, TableHeader

_MAX_SIDE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class TarMember:
    """One file in a tar file.

    Args:
        offset: where its bytes begin in the tar file; None when the tar file is compressed and nothing can point into it.
        size: how many bytes.
        data: its bytes, for small files beside images and in compressed tar files.
    """

    offset: int | None
    size: int
    data: bytes | None = field(default=None, repr=False)


TarGroup = tuple[str, dict[str, TarMember]]
"""What consecutive members are called before the first dot, and each of them by what follows that dot, in lower case."""


def read_groups(location: str, *, side_extensions: frozenset[str]) -> Iterator[TarGroup]:
    """Yield the groups of a tar file in order.

    Args:
        location: the tar file.
        side_extensions: last extensions of the small members whose bytes are wanted.
    """
    key: str | None = None
    members: dict[str, TarMember] = {}
    for name, member in _members(location, side_extensions):
        found, extension = _split_name(name)
        if found != key and members:
            yield key or "", members
            members = {}
        key = found
        members[extension] = member
    if members:
        yield key or "", members


def _members(location: str, side_extensions: frozenset[str]) -> Iterator[tuple[str, TarMember]]:
    is_packed = not location.lower().endswith(".tar")
    try:
        with (
            open_location(location) as raw,
            tarfile.open(fileobj=raw, mode="r|*" if is_packed else "r:") as archive,
        ):
            while (info := archive.next()) is not None:
                # The archive would keep every member it has seen.
                archive.__dict__["members"].clear()
                if info.isfile() and not info.name.rsplit("/", 1)[-1].startswith("."):
                    wants = is_packed or info.name.rsplit(".", 1)[-1].lower() in side_extensions
                    yield info.name, _member(archive, info, wants_data=wants, is_packed=is_packed)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(
            f"The tar file cannot be read: {error}.",
            where=shown_location(location),
            fix="Check that it is complete; copy it again if not.",
        ) from error


def _member(
    archive: tarfile.TarFile, info: tarfile.TarInfo, *, wants_data: bool, is_packed: bool
) -> TarMember:
    data = None
    if wants_data and (is_packed or info.size <= _MAX_SIDE_BYTES):
        file = archive.extractfile(info)
        data = file.read() if file is not None else b""
    return TarMember(offset=None if is_packed else info.offset_data, size=info.size, data=data)


def _split_name(name: str) -> tuple[str, str]:
    folder, slash, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    return folder + slash + stem, extension.lower()


_SIDE_EXTENSIONS = frozenset({"cls", "json", "txt", "text", "caption"})
_TEXT_EXTENSIONS = ("txt", "text", "caption")


@dataclass(frozen=True, kw_only=True)
class WebDatasetSource(ColumnSource):
    """Samples whose members stand side by side in tar files; images are pointed to where they are, nothing is unpacked.

    The location is a tar file, a folder of them, or a pattern with `*` or `{000..012}`. `.cls` is the label, `.json` an object with
    the columns of a manifest, `.txt` goes to the metadata column `text`; the column `path` is the extension of the image when a
    sample has several. The split is the one that the shard's name begins with (`train-0001.tar`) or a folder above it. Compressed
    shards work, but their images must be copied.
    """

    kind = "webdataset"

    def fingerprint(self) -> str:
        return fingerprint_of_listing(
            map(file_facts, self.shards), self.kind, dict(self.columns), self.default_split
        )

    def count(self) -> int | None:
        """Return the number of samples; None for remote shards, which would have to be fetched to tell."""
        return None if self._counts is None else sum(self._counts)

    def read(self, start: int = 0) -> Iterator[RawSample]:
        counts = self._counts
        done = 0
        for place, shard in enumerate(self.shards):
            if counts is not None and start >= done + counts[place]:
                done += counts[place]
                continue
            problems = Problems()
            for sample in self._samples(shard, problems):
                if done >= start:
                    yield sample
                done += 1
            self._raise(problems)

    @cached_property
    def shards(self) -> tuple[str, ...]:
        """Return the tar files, in order."""
        return tuple(find_shards(self.location))

    @cached_property
    def _counts(self) -> tuple[int, ...] | None:
        # Local shards are looked through once, headers and labels only, so that everything wrong is said before work begins.
        if not all(is_local(shard) for shard in self.shards):
            return None
        problems = Problems()
        counts = tuple(sum(1 for _ in self._samples(shard, problems)) for shard in self.shards)
        if not problems and sum(counts) == 0:
            problems.add("There is no sample in any shard.")
        self._raise(problems)
        return counts

    def _raise(self, problems: Problems) -> None:
        problems.raise_if_any(
            what="The shards cannot be used.",
            where=shown_location(self.location),
            fix="Correct these, then run again.",
        )

    def _samples(self, shard: str, problems: Problems) -> Iterator[RawSample]:
        name = shard.rsplit("/", 1)[-1]
        parts = shown_location(shard).rsplit("/", 2)
        named = split_of_file_name("/".join(parts[-2:]))
        roles: dict[tuple[str, ...], ColumnRoles] = {}
        stamp = stamp_of(shard)
        for key, members in read_groups(shard, side_extensions=_SIDE_EXTENSIONS):
            row = f"{name}/{key}"
            image = self._image(members, problems, row)
            record = _record(members, problems, row)
            columns = tuple(record)
            if columns not in roles:
                roles[columns] = self._roles(columns, problems)
            kinds = {
                column: metadata_kind(record[column], is_text=False)
                for column in roles[columns].metadata
            }
            layout = RowLayout(
                roles=roles[columns],
                split=self.default_split,
                named_split=named,
                metadata_kinds=kinds,
                row_prefix=f"{row} ",
            )
            batch = TableBatch(
                first_row=0, n_rows=1, columns={column: [value] for column, value in record.items()}
            )
            (sample,) = samples_of(batch, layout, problems)
            yield _with_image(replace(sample, key=row, stamp=stamp), shard, image)

    def _roles(self, columns: tuple[str, ...], problems: Problems) -> ColumnRoles:
        given = {
            role: column
            for role, column in self.columns.items()
            if role != "path" and column in columns
        }
        roles = resolve_columns(TableHeader(names=columns), given, problems, with_images=False)
        # Keys in `.json` are unique in their shard only.
        return replace(
            roles,
            key=None,
            metadata=tuple(dict.fromkeys((*roles.metadata, *filter(None, [roles.key])))),
        )

    def _image(
        self, members: Mapping[str, TarMember], problems: Problems, row: str
    ) -> TarMember | None:
        wanted = self.columns.get("path")
        if wanted is not None and wanted.lower().lstrip(".") in members:
            return members[wanted.lower().lstrip(".")]
        images = [extension for extension in members if is_image_name(f"x.{extension}")]
        plain = [extension for extension in images if "." not in extension]
        if len(plain) == 1 or len(images) == 1:
            return members[(plain if len(plain) == 1 else images)[0]]
        if not images:
            problems.add(f"A sample has no image, only {', '.join(sorted(members))}.", row=row)
        else:
            problems.add(
                f"A sample has several images: {', '.join(images)}; say which with columns = {{path = ...}}.",
                row=row,
            )
        return None


def _record(members: Mapping[str, TarMember], problems: Problems, row: str) -> dict[str, object]:
    record: dict[str, object] = {}
    texts = {
        name: _text(member, problems, row)
        for name, member in members.items()
        if member.data is not None and _is_side(name)
    }
    if "json" in texts:
        record.update(_json_record(texts["json"], problems, row))
    if "cls" in texts:
        record = {name: value for name, value in record.items() if name not in ("label", "labels")}
        record["label"] = texts["cls"].strip()
    for name in _TEXT_EXTENSIONS:
        if name in texts:
            record["text"] = texts[name].strip()
    return record


def _is_side(extension: str) -> bool:
    return PurePosixPath(f"x.{extension}").suffix[1:] in _SIDE_EXTENSIONS


def _text(member: TarMember, problems: Problems, row: str) -> str:
    try:
        return (member.data or b"").decode("utf-8-sig")
    except UnicodeDecodeError:
        problems.add("A member is not UTF-8 text.", row=row)
        return ""


def _json_record(text: str, problems: Problems, row: str) -> dict[str, object]:
    try:
        stored = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        stored = None
    if not isinstance(stored, dict):
        problems.add("The .json member holds no JSON object.", row=row)
        return {}
    return {str(name): value for name, value in stored.items()}


def _with_image(sample: RawSample, shard: str, image: TarMember | None) -> RawSample:
    if image is None:
        return sample
    if image.offset is None:
        return replace(sample, data=image.data)
    return replace(sample, location=range_location(shard, offset=image.offset, length=image.size))
