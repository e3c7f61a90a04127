"""Renumics Spotlight: a Parquet table with images, predictions, slices and embeddings, and the tables that its users keep."""

from pathlib import Path

import pyarrow as pa

from weakspot.core.errors import DataError
from weakspot.data.locations import is_local
from weakspot.tools.bundle import ExchangeBundle, MarkedSlice, Written, slice_sentence
from weakspot.tools.files import write_bytes, write_json
from weakspot.tools.tables import (
    EMBEDDING,
    IMAGE,
    embedding_column,
    only_known,
    read_table_file,
    refuse_extension,
    sample_table,
    write_manifest,
    write_parquet,
)

TABLE = "samples.parquet"
SLICES = "slices.json"
SCRIPT = "open_in_spotlight.py"
HIGH_GAP, LOW_GAP = 0.3, 0.1
_TYPES = {IMAGE: "Image", EMBEDDING: "Embedding"}
_CATEGORIES = ("label", "prediction", "split")
_IMAGE_NAMES = (
    "image",
    "path",
    "image_path",
    "file_name",
    "filename",
    "filepath",
    "file_path",
    "file",
    "url",
    "img",
    "image_url",
)
_OPEN = '''"""Shows the samples in Renumics Spotlight, every slice as an issue."""

import json
from pathlib import Path

import pandas as pd
from renumics import spotlight

HERE = Path(__file__).resolve().parent


def load():
    """Return the table, the types of its columns and the slices as issues."""
    table = pd.read_parquet(HERE / "samples.parquet")
    plan = json.loads((HERE / "slices.json").read_text(encoding="utf-8"))
    issues = [spotlight.DataIssue(**issue) for issue in plan["issues"]]
    categories = {name: spotlight.dtypes.CategoryDType(values) for name, values in plan["categories"].items()}
    return table, {**plan["dtype"], **categories}, issues


if __name__ == "__main__":
    table, dtype, issues = load()
    spotlight.show(table, dtype=dtype, issues=issues)
'''


def write_table(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write `samples.parquet`, `slices.json` (column types and issues) and a script that opens both."""
    table = sample_table(bundle, folder)
    embeddings = embedding_column(bundle)
    if embeddings is not None:
        table = table.append_column(EMBEDDING, embeddings)
    plan = {
        "dtype": {name: kind for name, kind in _TYPES.items() if name in table.column_names},
        "categories": {
            name: _values(table, name) for name in _CATEGORIES if name in table.column_names
        },
        "issues": [_issue(marked, table.column_names) for marked in bundle.slices],
    }
    files = (
        write_parquet(folder / TABLE, table),
        write_json(folder / SLICES, plan),
        write_bytes(folder / SCRIPT, _OPEN.encode()),
    )
    return Written(
        files=files, sentence=f"Open it where Spotlight is installed: python {folder / SCRIPT}"
    )


def read_table(source: Path, target: Path) -> Written:
    """Turn a table that was shown in Spotlight into a manifest; boolean and category columns stay as free columns.

    Embeddings and other nested columns stay behind. Paths are taken from the folder of the table.
    """
    refuse_extension(target)
    table = only_known(read_table_file(source))
    image = next((name for name in _IMAGE_NAMES if name in table.column_names), None)
    if image is None:
        names = ", ".join(table.column_names[:20])
        raise DataError(
            "No column holds images.",
            where=str(source),
            given=names,
            fix=f"Call one of them {IMAGE!r}.",
        )
    kept = [
        name
        for name in table.column_names
        if name == image or not pa.types.is_nested(table.schema.field(name).type)
    ]
    columns: dict[str, list[object]] = {name: table.column(name).to_pylist() for name in kept}
    columns["path"] = [
        _absolute(_path_in(cell, source), source.parent) for cell in columns.pop(image)
    ]
    dropped = [name for name in table.column_names if name not in kept]
    path = write_manifest(target, {"path": columns.pop("path"), **columns})
    behind = f" These stay behind: {', '.join(dropped)}." if dropped else ""
    return Written(
        files=(path,),
        sentence=f"{len(table)} samples.{behind} As a source of samples: [data] source = {str(target)!r}.",
    )


def _values(table: pa.Table, name: str) -> list[str]:
    """Return the values of a column; Spotlight cannot find them itself where some are missing."""
    return sorted(value for value in table.column(name).unique().to_pylist() if value is not None)


def _issue(marked: MarkedSlice, columns: list[str]) -> dict[str, object]:
    gap = marked.evidence.headline_gap
    return {
        "title": marked.found.title,
        "rows": marked.rows.tolist(),
        "severity": "high" if gap >= HIGH_GAP else "medium" if gap >= LOW_GAP else "low",
        "columns": [name for name in (IMAGE, "label", "prediction", marked.tag) if name in columns],
        "description": slice_sentence(marked),
    }


def _path_in(cell: object, source: Path) -> str | None:
    if isinstance(cell, dict):
        cell = cell.get("path")
        if cell is None:
            raise DataError(
                "The table holds images themselves, not paths.",
                where=str(source),
                fix="Give it to weakspot as it is: [data] source.",
            )
    return None if cell is None else str(cell)


def _absolute(path: str | None, folder: Path) -> str | None:
    if path is None or not is_local(path) or Path(path).is_absolute():
        return path
    return str((folder / path).resolve())
