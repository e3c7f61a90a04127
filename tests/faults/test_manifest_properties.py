"""What holds for every manifest: formats agree, reading can begin anywhere, and no bytes make it raise anything unexpected."""

import csv
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weakspot.core.errors import WeakspotError
from weakspot.data.open_source import open_source
from weakspot.data.table_source import ManifestSource

QUIET = settings(
    deadline=None,
    max_examples=60,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
ROWS = st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=12)
COLUMNS = ("path", "label", "colour", "key")
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow")


def cells(rows):
    """Return rows whose cells are never empty and never look like numbers, with a key each."""
    return [
        (f"p{path}", f"l{label}", f"m{colour}", f"k{number}")
        for number, (path, label, colour) in enumerate(rows)
    ]


def write(path, rows):
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t").writerows(
                [COLUMNS, *rows]
            )
    elif path.suffix == ".jsonl":
        lines = [
            json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False) for row in rows
        ]
        path.write_text("\n".join(lines), encoding="utf-8", newline="")
    else:
        table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)})
        if path.suffix == ".parquet":
            pq.write_table(table, path, row_group_size=3)
        else:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=3)
    return ManifestSource(location=str(path))


@given(rows=ROWS, data=st.data())
@QUIET
def test_read__the_same_samples_in_every_format(rows, data):
    written = cells(rows)
    with tempfile.TemporaryDirectory() as folder:
        sources = [write(Path(folder) / f"m{ending}", written) for ending in ENDINGS]
        found = [list(source.read()) for source in sources]
        start = data.draw(st.integers(0, len(rows)))
        assert all(
            list(source.read(start)) == samples[start:]
            for source, samples in zip(sources, found, strict=True)
        )
        assert all(source.count() == len(rows) for source in sources)
    assert all(samples == found[0] for samples in found[1:])
    assert [(one.labels, one.metadata, one.key) for one in found[0]] == [
        ((label.strip(),), {"colour": colour}, key) for _, label, colour, key in written
    ]


@pytest.mark.parametrize("ending", [*ENDINGS, ".tar", ".json"])
@given(content=st.binary(max_size=300))
@QUIET
def test_read__any_bytes_are_rows_or_an_error_of_ours(ending, content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"m{ending}"
        path.write_bytes(content)
        read_or_refuse(path)


@given(
    lines=st.lists(
        st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | TEXT, st.lists),
        max_size=6,
    )
)
@QUIET
def test_read__any_json_in_the_cells(lines):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.jsonl"
        records = [
            {"path": value, "label": value, "probabilities": value, "split": value, "key": value}
            for value in lines
        ]
        path.write_text("\n".join(map(json.dumps, [*records, *lines])), encoding="utf-8")
        read_or_refuse(path)


def read_or_refuse(path):
    for kind in ("auto", "manifest", "predictions"):
        try:
            source = open_source(str(path), kind=kind)
            assert len(source.fingerprint()) == 32
            samples = list(source.read())
        except WeakspotError:
            continue
        assert all(sample.key for sample in samples)
