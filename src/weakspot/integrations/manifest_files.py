"""Tables that `weakspot ingest` and `weakspot repair --labels` read."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weakspot.core.errors import ConfigError, DataError
from weakspot.integrations.bundle import Written
from weakspot.integrations.image_files import replacing


@dataclass
class AgreedLabels:
    """Collects what people said of samples; a sample of which they said different things has no label."""

    _said: dict[tuple[str, str], set[tuple[str, ...]]] = field(default_factory=dict)

    def add(self, labels: tuple[str, ...], *, sample_id: str, path: str) -> None:
        """Note what one person said; nothing, if they did not say."""
        answers = self._said.setdefault((sample_id, path), set())
        if labels:
            answers.add(tuple(sorted(labels)))

    def written(self, source: Path, target: Path) -> Written:
        """Write the table of all labels that nobody contradicted.

        Raises:
            DataError: if there are none.
        """
        agreed = {place: next(iter(said)) for place, said in self._said.items() if len(said) == 1}
        n_disputed = sum(len(said) > 1 for said in self._said.values())
        if not agreed:
            disputed = f" People disagree on {n_disputed} samples." if n_disputed else ""
            raise DataError(
                f"There are no labels yet.{disputed}",
                where=str(source),
                fix="Label some samples and export again.",
            )
        is_many = any(len(labels) > 1 for labels in agreed.values())
        columns: dict[str, list[object]] = {
            "sample_id": [name or None for name, _ in agreed],
            "path": [path or None for _, path in agreed],
            "labels" if is_many else "label": [
                list(given) if is_many else given[0] for given in agreed.values()
            ],
        }
        written = labels_written(
            target, columns, left_out=len(self._said) - len(agreed) - n_disputed
        )
        if not n_disputed:
            return written
        sentence = (
            f"People disagree on {n_disputed} samples, which were left out. {written.sentence}"
        )
        return Written(files=written.files, sentence=sentence)


EXTENSIONS = (".csv", ".tsv", ".jsonl", ".parquet")
_LARGEST_NUMBER = 2**63 - 1
Columns = Mapping[str, Sequence[object]]


def write_manifest(target: Path, columns: Columns) -> Path:
    """Write columns of equal length as a table and return its path; the extension says which kind of table.

    Lists in text tables are written with `|` between their items. Columns in which nothing is known are left out.

    Raises:
        ConfigError: if the extension is none of `EXTENSIONS`, or the file cannot be written.
    """
    refuse_extension(target)
    known = {
        name: values
        for name, values in columns.items()
        if any(value is not None for value in values)
    }
    with replacing(target) as temporary:
        if target.suffix.lower() == ".parquet":
            pq.write_table(
                pa.table({name: pa.array(_plain(values)) for name, values in known.items()}),
                temporary,
            )
        elif target.suffix.lower() == ".jsonl":
            _write_lines(temporary, known)
        else:
            _write_text(temporary, known, "," if target.suffix.lower() == ".csv" else "\t")
    return target


def refuse_extension(target: Path) -> None:
    """Raise unless a path ends as a table does."""
    if target.suffix.lower() not in EXTENSIONS:
        raise ConfigError(
            "The table to write has an extension that weakspot does not read.",
            where="--out",
            given=str(target),
            fix=f"Let it end in {', '.join(EXTENSIONS)}.",
        )


def labels_written(target: Path, columns: Columns, *, left_out: int = 0) -> Written:
    """Write a table of labels and return it with the lines to type.

    Args:
        target: where to.
        columns: with `label` or `labels`, and `sample_id` or `path`.
        left_out: how many entries had no label yet.
    """
    path = write_manifest(target, columns)
    n_labels = len(next(iter(columns.values())))
    waiting = f" {left_out} have no label yet and were left out." if left_out else ""
    as_labels = (
        f"weakspot repair --labels {target}"
        if target.suffix.lower() in (".csv", ".tsv")
        else "a .csv table for repair --labels"
    )
    as_source = f"[data] source = {str(target)!r}"
    sentence = f"{n_labels} labels.{waiting} For pool samples: {as_labels}. As a source of samples: {as_source}."
    return Written(files=(path,), sentence=sentence)


def _plain(values: Sequence[object]) -> list[object]:
    kinds = {type(value) for value in values if value is not None}
    is_large = any(isinstance(value, int) and abs(value) > _LARGEST_NUMBER for value in values)
    if not is_large and (len(kinds) <= 1 or kinds <= {int, float}):
        return [
            float(value) if float in kinds and isinstance(value, int) else value for value in values
        ]
    return [None if value is None else _cell(value) for value in values]


def _write_lines(path: Path, columns: Columns) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for values in zip(*columns.values(), strict=True):
            line = {
                name: value
                for name, value in zip(columns, values, strict=True)
                if value is not None
            }
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")


def _write_text(path: Path, columns: Columns, delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        for values in zip(*columns.values(), strict=True):
            writer.writerow([_cell(value) for value in values])


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "|".join(str(item) for item in value)
    return str(value)
