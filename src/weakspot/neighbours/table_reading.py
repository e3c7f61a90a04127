"""Tables that users of other tools keep: Parquet, Feather, ORC, CSV, TSV or JSON lines."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.json as pa_json
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq

from weakspot.core.errors import DataError

_TEXTS = pa_csv.ConvertOptions(strings_can_be_null=True)
_READERS = {
    ".parquet": pq.read_table,
    ".feather": pa_feather.read_table,
    ".arrow": pa_feather.read_table,
    ".orc": pa_orc.read_table,
    ".csv": lambda path: pa_csv.read_csv(path, convert_options=_TEXTS),
    ".tsv": lambda path: pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(delimiter="\t"), convert_options=_TEXTS),
    ".jsonl": pa_json.read_json,
}


def read_table_file(source: Path) -> pa.Table:
    """Return the table in a file; its extension says which kind it is.

    Raises:
        DataError: if the extension is not known, or the file is no such table.
    """
    reader = _READERS.get(source.suffix.lower())
    if reader is None:
        raise DataError("This is no table that can be read.", where=str(source), fix=f"Save it as {', '.join(_READERS)}.")
    try:
        return reader(source)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"The table cannot be read: {str(error).splitlines()[0]}", where=str(source)) from error


def only_known(table: pa.Table) -> pa.Table:
    """Return the table without columns in which nothing is known."""
    return table.select([name for name in table.column_names if table.column(name).null_count < len(table)])
