import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.data.ingest.assembling import assembled_parts, table_of

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.data.columns import METADATA_VALUES
from weakspot.data.examine import EXAMINED_SCHEMA, examine, examined_table
from weakspot.data.table_source import PredictionsSource

NAMED = ("key", "label", "prediction", "split", "colour", "is_big", "count", "weight", "group")
ROWS = [
    ("a", " cat", "cat ", "val", "red", "true", "3", "0.5", "g1"),
    ("b", "dog", "", "", "", "False", "-0", "1e3", "g1"),
    ("", "cat", "dog", "train", "naïve, 日本", "TRUE", " 12 ", "-.5", ""),
    ("d", "", "dog", "", 'says "no"', "", "", "", "g2"),
    ("e", "dog", "dog", "test", " ", "false", "7", "3", "g3"),
]


def write_csv(path, names, rows):
    import csv

    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([names, *rows])
    return str(path)


def by_rows(source):
    return examined_table([examine(raw) for raw in source.read()])


def assembled(tables, **settings):
    made = assembled_parts(tables, **settings)
    batches = list(made.batches())
    given = {
        name: np.concatenate([predictions[name] for _, predictions in batches])
        for name in batches[0][1]
    }
    return table_of(made), given


def assert_alike(source, **settings):
    """Compare the columns with what every row by itself gives, as examined samples and as the final table."""
    columns = list(source.read_examined())
    rows = by_rows(source)
    plain = [name for name in EXAMINED_SCHEMA.names if name != "metadata"]
    for name in plain:
        joined = pa.concat_tables([table.select([name]) for table in columns])
        assert joined.column(name).to_pylist() == rows.column(name).to_pylist(), name
    ours, given = assembled(columns, **settings)
    theirs, wanted = assembled([rows], **settings)
    assert ours.schema == theirs.schema
    assert ours.to_pylist() == theirs.to_pylist()
    assert given.keys() == wanted.keys()
    for name, values in given.items():
        np.testing.assert_array_equal(values, wanted[name])


def test_examined_columns__as_row_by_row(tmp_path):
    source = PredictionsSource(location=write_csv(tmp_path / "t.csv", NAMED, ROWS))
    assert_alike(source, group="group")
    assert METADATA_VALUES in next(source.read_examined()).column_names


def test_examined_columns__hashes_and_ids_are_those_of_earlier_versions(tmp_path):
    source = PredictionsSource(location=write_csv(tmp_path / "t.csv", NAMED, ROWS))
    table = next(source.read_examined())
    assert table.column("content_hash").to_pylist()[:3] == [
        "547a0ca09e0b75dabc85688dce671a58",
        "7261b95c7cc89ff58ee213b27b14f231",
        "51e862b492d8771173aa832596d022af",
    ]


def test_examined_columns__generated_rows_go_apart(tmp_path):
    names = ("label", "prediction", "split", "synthetic", "generator")
    rows = [
        ("cat", "cat", "", "true", ""),
        ("cat", "dog", "", "", "a model"),
        ("dog", "dog", "train", "no", "diesel"),
        ("dog", "cat", "", "", ""),
    ]
    source = PredictionsSource(
        location=write_csv(tmp_path / "t.csv", names, rows), default_split=Split.VALIDATION
    )
    assert_alike(source)
    table = next(source.read_examined())
    assert table.column("split").to_pylist() == ["synthetic", "synthetic", "train", "validation"]


def test_examined_columns__several_labels_probabilities_and_names_without_letters(tmp_path):
    names = ("", "labels", "predictions", "prob_a", "prob_b", "note")
    rows = [
        ("0", "a;b", "a|b", "0.9", "0.5", "x"),
        ("1", "b", "", "", "", "x"),
        ("2", '["a"]', "b", "1", "0", "y.z"),
    ]
    assert_alike(PredictionsSource(location=write_csv(tmp_path / "t.csv", names, rows)))


def test_examined_columns__parquet_of_many_types(tmp_path):
    table = pa.table(
        {
            "label": pa.array([0, 1, 1, None], pa.int64()),
            "prediction": pa.array([0.0, 1.0, 0.0, 1.0]),
            "probabilities": [[0.5, 0.5], None, [0.1, 0.9], [1.0, 0.0]],
            "huge": pa.array([1, 2**63, 3, None], pa.uint64()),
            "share": pa.array([0.5, float("nan"), None, float("inf")]),
            "small": pa.array([0.1, 0.2, None, 0.3], pa.float32()),
            "day": pa.array([0, 1, 2, None], pa.date32()),
            "tags": [["a"], [], None, ["b", "c"]],
            "flag": [True, None, False, True],
            "nothing": pa.nulls(4, pa.string()),
            "word": ["", "x", None, "x"],
            "long": pa.array(["x", "", None, "y"], pa.large_string()),
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    assert_alike(PredictionsSource(location=str(path)))


def test_examined_columns__json_lines(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [
        {"label": "a", "prediction": ["a"], "x": 1, "y": {"z": 1}},
        {"label": "b", "prediction": [], "x": 2.5},
        {"label": "a", "prediction": None, "x": None, "w": 2**70},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert_alike(PredictionsSource(location=str(path)))


def test_examined_columns__reading_can_begin_anywhere(tmp_path):
    rows = [(f"s{place}", "ab"[place % 2], "a", str(place)) for place in range(9_000)]
    path = write_csv(tmp_path / "t.csv", ("key", "label", "prediction", "n"), rows)
    source = PredictionsSource(location=path)
    whole = pa.concat_tables(source.read_examined())
    later = pa.concat_tables(source.read_examined(5_000))
    assert later.to_pylist() == whole.slice(5_000).to_pylist()
    assert whole.num_rows == 9_000


def test_parse_columns__what_is_wrong_is_told_as_row_by_row(tmp_path):
    rows = [
        ("a", "cat", "cat", "train"),
        ("a", "dog", "dog", "trian"),
        ("b", "cat", "dog", "trian"),
        ("a", "dog", "dog", "nowhere"),
    ]
    path = write_csv(tmp_path / "t.csv", ("key", "label", "prediction", "split"), rows)
    with pytest.raises(DataError) as told:
        list(PredictionsSource(location=path).read_examined())
    said = str(told.value)
    assert (
        "The split 'trian' is unknown (did you mean 'train'?). Column 'split'. (row 2, row 3)"
        in said
    )
    assert "'nowhere'" in said
    assert "The key 'a' is there 3 times." in said


def test_read_examined__irregular_quotes_are_read_as_well(tmp_path):
    path = tmp_path / "t.csv"
    lines = ["key,label,prediction,note", *(f"s{place},a,a,n{place}" for place in range(5_000))]
    lines[4_500] = 's4499,b,a,6" wide'
    path.write_text("\n".join(lines))
    source = PredictionsSource(location=str(path))
    assert_alike(source)
    notes = pa.concat_tables(source.read_examined()).column(METADATA_VALUES).to_pylist()
    assert notes[4_499] == {"note": '6" wide'}
    assert notes[4_998] == {"note": "n4998"}


def test_metadata_columns__parts_of_both_kinds_have_one_type(tmp_path):
    source = PredictionsSource(location=write_csv(tmp_path / "t.csv", NAMED, ROWS))
    columns = next(source.read_examined())
    samples = [
        replace(raw, key=f"old {raw.key}", metadata={"count": 2.5, "colour": "blue"})
        for raw in source.read()
    ]
    old = examined_table([examine(raw) for raw in samples])
    table, _ = assembled([old, columns])
    assert table.column("meta.count").to_pylist() == [2.5] * 5 + [3.0, 0.0, 12.0, None, 7.0]
    assert table.column("meta.colour").to_pylist()[4:7] == ["blue", "red", None]
