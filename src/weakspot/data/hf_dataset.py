"""A Hugging Face data set: a folder saved by `datasets`, a folder of Parquet or Arrow shards, or a name on the hub."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weakspot.core.errors import DataError, MissingExtraError, UnavailableError
from weakspot.data.locations import (
    file_facts,
    is_folder,
    is_there,
    join_location,
    list_files,
    read_anew,
    shown_location,
)
from weakspot.data.source import Problems, fingerprint_of_listing, parse_split, split_of_file_name
from weakspot.data.table_source import TableSource, open_table
from weakspot.data.tables import TableFile

SHARD_EXTENSIONS = (".parquet", ".arrow")
_DICT_FILE, _STATE_FILE = "dataset_dict.json", "state.json"


def is_saved_folder(location: str) -> bool:
    """Return whether a folder was written by `save_to_disk`."""
    return any(is_there(join_location(location, name)) for name in (_DICT_FILE, _STATE_FILE))


@dataclass(frozen=True, kw_only=True)
class HfDatasetSource(TableSource):
    """Rows of a Hugging Face data set; the library `datasets` is needed only for names on the hub."""

    kind = "hf-dataset"

    def fingerprint(self) -> str:
        facts = (file_facts(part.location) for part in self.parts)
        names = [part.name for part in self.parts]
        return fingerprint_of_listing(
            facts, self.kind, names, dict(self.columns), self.default_split
        )

    @cached_property
    def parts(self) -> tuple[TableFile, ...]:
        problems = Problems()
        parts = []
        for location, name, split_name in self._shards():
            split = parse_split(split_name) if split_name else split_of_file_name(name)
            if split is None and split_name and self.default_split is None:
                problems.add(f"The split {split_name!r} is unknown.")
            parts.append(open_table(location, name=name, split=split))
        problems.raise_if_any(
            what="The splits of the data set are unclear.",
            where=shown_location(self.location),
            fix="Rename them to train, validation, test, pool or synthetic, or give a default split.",
        )
        return tuple(parts)

    @cached_property
    def _known_names(self) -> None:
        """Return none: the files themselves name their classes."""

    def _shards(self) -> list[tuple[str, str, str | None]]:
        if not is_folder(self.location):
            return _shards_on_hub(self.location)
        if is_there(join_location(self.location, _DICT_FILE)):
            stored = _json_file(join_location(self.location, _DICT_FILE))
            return [
                shard
                for split in stored.get("splits", ())
                for shard in _save(self.location, str(split))
            ]
        if is_there(join_location(self.location, _STATE_FILE)):
            return _save(self.location, None)
        found = [
            file
            for file in list_files(self.location)
            if file.relative.lower().endswith(SHARD_EXTENSIONS)
        ]
        if not found:
            raise DataError(
                "The folder holds no data set: no dataset_dict.json, state.json, Parquet or Arrow file.",
                where=shown_location(self.location),
                fix="Point to a folder written by save_to_disk, or to a folder of Parquet shards.",
            )
        return [(file.location, file.relative, None) for file in found]


def _save(root: str, split: str | None) -> list[tuple[str, str, str | None]]:
    folder = root if split is None else join_location(root, split)
    state = _json_file(join_location(folder, _STATE_FILE))
    if state.get("_indices_data_files"):
        raise DataError(
            "The saved data set is a selection that was not written out.",
            where=shown_location(folder),
            fix="Save it again with dataset.flatten_indices().save_to_disk(...).",
        )
    own = state.get("_split")
    names = [
        str(item["filename"])
        for item in state.get("_data_files", ())
        if isinstance(item, dict) and "filename" in item
    ]
    if not names:
        raise DataError(
            "The saved data set lists no files.",
            where=shown_location(join_location(folder, _STATE_FILE)),
        )
    prefix = "" if split is None else f"{split}/"
    # A set saved alone keeps the name of the split it was cut from, such as `train[:10%]`, which need not be one of ours.
    known = split or (own if isinstance(own, str) and parse_split(own) else None)
    return [(join_location(folder, name), prefix + name, known) for name in names]


def _json_file(location: str) -> dict[str, Any]:
    try:
        stored = json.loads(read_anew(location))
    except ValueError as error:
        raise DataError(
            "The file is not JSON.", where=shown_location(location), fix="Save the data set again."
        ) from error
    if not isinstance(stored, dict):
        raise DataError(
            "The file holds no JSON object.",
            where=shown_location(location),
            fix="Save the data set again.",
        )
    return stored


def _shards_on_hub(name: str) -> list[tuple[str, str, str | None]]:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(
            "datasets", extra="hub", purpose="Data sets by name on the hub"
        ) from error
    try:
        loaded = datasets.load_dataset(name)
    except Exception as error:
        raise UnavailableError(
            f"The data set could not be loaded: {str(error).splitlines()[0] if str(error) else type(error).__name__}.",
            where=name,
            fix="Check the name and the connection, or save the data set to a folder and point to that.",
        ) from error
    return [
        (str(file["filename"]), f"{split}/{place}", str(split))
        for split, part in loaded.items()
        for place, file in enumerate(part.cache_files)
    ]
