import base64
import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.data.table_source import ManifestSource, PredictionsSource


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def read_all(location, **settings):
    return list(ManifestSource(location=location, **settings).read())


def message_of(location, **settings) -> str:
    with pytest.raises(DataError) as caught:
        read_all(location, **settings)
    return str(caught.value)


def test_read__csv_with_everything(tmp_path):
    location = write(
        tmp_path / "table.csv",
        "path,label,split,prediction,prob_cat,prob_dog,age,weight,wild,zip\n"
        "a/1.jpg,cat,val,dog,0.25,0.75,3,1.5,true,00712\n"
        "https://example.org/2.jpg,dog,unlabeled,dog,,,,2,false,12345\n",
    )
    first, second = read_all(location)
    assert (first.key, first.location, first.labels, first.split) == (
        "row 1",
        str(tmp_path / "a/1.jpg"),
        ("cat",),
        "validation",
    )
    assert (first.predictions, first.probabilities) == (("dog",), {"cat": 0.25, "dog": 0.75})
    assert first.metadata == {"age": 3, "weight": 1.5, "wild": True, "zip": "00712"}
    assert (second.location, second.split, second.probabilities) == (
        "https://example.org/2.jpg",
        "pool",
        None,
    )
    assert second.metadata == {"age": None, "weight": 2.0, "wild": False, "zip": "12345"}


def test_read__semicolons_byte_order_mark_and_tabs(tmp_path):
    (tmp_path / "excel.csv").write_bytes("\ufeffpath;label\na.jpg;Äpfel\n".encode())
    assert read_all(str(tmp_path / "excel.csv"))[0].labels == ("Äpfel",)
    location = write(tmp_path / "table.tsv", "file_name\tlabel\na.jpg\tcat, big\n")
    assert read_all(location)[0].labels == ("cat, big",)


def test_read__bytes_in_parquet_and_base64_in_json_lines(tmp_path):
    pq.write_table(pa.table({"image": [b"abc", None], "label": ["x", "y"]}), tmp_path / "m.parquet")
    assert [sample.data for sample in read_all(str(tmp_path / "m.parquet"))] == [b"abc", b""]
    location = write(
        tmp_path / "m.jsonl", json.dumps({"bytes": base64.b64encode(b"abc").decode(), "label": "x"})
    )
    assert read_all(location)[0].data == b"abc"


def test_read__listed_probabilities_with_a_list_of_classes(tmp_path):
    write(tmp_path / "classes.txt", "cat\ndog\n")
    location = write(
        tmp_path / "m.jsonl",
        '{"path": "1.jpg", "label": 1, "prediction": 0, "probabilities": [0.25, 0.75]}',
    )
    (sample,) = read_all(location)
    assert (sample.labels, sample.predictions, sample.probabilities) == (
        ("dog",),
        ("cat",),
        {"cat": 0.25, "dog": 0.75},
    )


def test_read__listed_probabilities_with_codes_as_labels(tmp_path):
    location = write(
        tmp_path / "m.jsonl", '{"path": "1.jpg", "label": 1, "probabilities": [0.25, 0.75]}'
    )
    assert read_all(location)[0].probabilities == {"0": 0.25, "1": 0.75}


def test_read__listed_probabilities_without_names_are_refused(tmp_path):
    location = write(
        tmp_path / "m.jsonl", '{"path": "1.jpg", "label": "dog", "probabilities": [0.25, 0.75]}'
    )
    assert "do not say which class is which" in message_of(location)


def test_read__given_columns(tmp_path):
    location = write(tmp_path / "m.csv", "where,what,path\n1.jpg,cat,blue\n")
    (sample,) = read_all(
        location, columns={"url": "where", "label": "what"}, default_split=Split.TEST
    )
    assert (sample.location, sample.labels, sample.split) == (
        str(tmp_path / "1.jpg"),
        ("cat",),
        "test",
    )
    assert sample.metadata == {"path": "blue"}


def test_read__given_columns_that_are_wrong(tmp_path):
    location = write(tmp_path / "m.csv", "path,lable\n1.jpg,cat\n")
    message = message_of(location, columns={"labl": "lable", "split": "splitt"})
    assert "There is no column role 'labl' (did you mean 'label'?)" in message
    assert "The column 'splitt' given for 'split' is missing" in message


def test_read__two_columns_that_could_be_the_image(tmp_path):
    location = write(tmp_path / "m.csv", "path,url,label\n1.jpg,http://a/1.jpg,cat\n")
    assert "'path' and 'url' could both be the path" in message_of(location)
    assert read_all(location, columns={"path": "url"})[0].location == "http://a/1.jpg"


def test_read__every_problem_in_one_message(tmp_path):
    rows = [
        {
            "path": "1.jpg",
            "label": "cat",
            "split": "trian",
            "probabilities": {"cat": 0.5, "dog": 0.5},
        },
        {"path": "", "label": 3, "split": "train", "probabilities": {"cat": -0.5, "dog": 1.5}},
        {"label": "dog", "split": "green", "probabilities": {"cat": 1.0}},
        {"path": "4.jpg", "label": {"a": 1}, "probabilities": {"cat": float("nan"), "dog": 0}},
        {"path": "5.jpg", "label": ["cat"], "probabilities": "many"},
    ]
    location = write(
        tmp_path / "m.jsonl",
        "\n".join(json.dumps(row) for row in rows) + "\nno json\n" + '{"path": 1, "path": 2}',
    )
    assert "A line is not a JSON object. (line 6)" in message_of(location)
    assert "the same name twice. (line 7)" in message_of(location)
    location = write(tmp_path / "m.jsonl", "\n".join(json.dumps(row) for row in rows))
    message = message_of(location)
    for part in (
        "The split 'trian' is unknown (did you mean 'train'?). Column 'split'. (row 1)",
        "The split 'green' is unknown, use train, validation, test, pool or synthetic. Column 'split'. (row 3)",
        "The image is missing: the cell is empty. Column 'path'. (row 2, row 3)",
        "A probability is negative; give probabilities, not logits. Column 'probabilities'. (row 2)",
        "A probability is not finite. Column 'probabilities'. (row 4)",
        "Probabilities are ragged: other classes than in the first row. (row 3)",
        "Probabilities in text must be a JSON list or object. Column 'probabilities'. (row 5)",
        "A label cannot be {'a': 1}; give a name or a whole number. Column 'label'. (row 4)",
        "Labels are of mixed types: lists (row 5) and numbers (row 2) and words (row 1).",
        str(tmp_path / "m.jsonl"),
    ):
        assert part in message


def test_read__at_most_twenty_kinds_are_shown(tmp_path):
    rows = "".join(f"{number}.jpg,cat,split{number}\n" for number in range(30))
    message = message_of(write(tmp_path / "m.csv", "path,label,split\n" + rows))
    assert message.count("is unknown") == 20
    assert "and 10 more like these" in message


def test_read__alike_problems_are_counted(tmp_path):
    message = message_of(
        write(tmp_path / "m.csv", "path,label,split\n" + "1.jpg,cat,green\n" * 5000)
    )
    assert "(5000 times, first: row 1, row 2, row 3)" in message


def test_read__ragged_rows_and_repeated_columns(tmp_path):
    assert "A row has 3 fields where the header has 2. (row 2)" in message_of(
        write(tmp_path / "a.csv", "path,label\n1,a\n2,b,c\n")
    )
    assert "The column 'label' is there 2 times" in message_of(
        write(tmp_path / "b.csv", "path,label,label\n1,a,b\n")
    )
    assert "ragged: 3 where the first row has 2. (row 2)" in message_of(
        write(
            tmp_path / "c.jsonl",
            '{"path": "1", "label": 0, "probabilities": [1, 0]}\n{"path": "2", "label": 0, "probabilities": [1, 0, 0]}',
        )
    )
    assert "A probability is missing where others of the row are given" in message_of(
        write(tmp_path / "d.csv", "path,label,prob_a,prob_b\n1,a,0.5,\n")
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "there is no header line"),
        ("b.csv", b"path,label\n", "has no rows"),
        ("c.csv", b"path,label\n\xff\xfe\x00,a\n", "not UTF-8"),
        ("d.csv", b"colour,label\nred,a\n", "No column says where the image is"),
        ("e.parquet", b"PAR1 but not really", "cannot be read"),
        ("f.jsonl", b"\n\n", "no line holds a JSON object"),
        ("g.xlsx", b"", "extension '.xlsx'"),
    ],
)
def test_read__files_that_are_no_tables(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    assert said in message_of(str(tmp_path / name))


def test_read__unknown_labels_when_the_classes_are_known(tmp_path):
    location = write(tmp_path / "m.csv", "path,label\n1.jpg,cat\n2.jpg,cow\n3.jpg,7\n")
    message = message_of(location, class_names=("cat", "dog"))
    assert "The label 'cow' is none of the 2 classes" in message
    assert "The label '7' is none of the 2 classes" in message


@pytest.mark.parametrize("name", ["m.csv", "m.jsonl", "m.parquet"])
@pytest.mark.parametrize("start", [0, 1, 4095, 4096, 5000, 9000])
def test_read__from_any_position(tmp_path, name, start):
    paths = [f"{number}.jpg" for number in range(5001)]
    if name == "m.csv":
        write(tmp_path / name, "path\n" + "\n".join(paths))
    elif name == "m.jsonl":
        write(tmp_path / name, "\n".join(json.dumps({"path": path}) for path in paths))
    else:
        pq.write_table(pa.table({"path": paths}), tmp_path / name, row_group_size=700)
    source = ManifestSource(location=str(tmp_path / name))
    found = [(sample.key, sample.location) for sample in source.read(start)]
    assert found == [
        (f"row {number + 1}", str(tmp_path / f"{number}.jpg")) for number in range(start, 5001)
    ]
    assert source.count() == 5001


def test_fingerprint__changes_with_content_and_settings_only(tmp_path):
    location = write(tmp_path / "m.csv", "path,label\n1.jpg,a\n")
    first = ManifestSource(location=location).fingerprint()
    write(tmp_path / "m.csv", "path,label\n1.jpg,a\n")
    assert ManifestSource(location=location).fingerprint() == first
    assert ManifestSource(location=location, default_split=Split.TEST).fingerprint() != first
    write(tmp_path / "m.csv", "path,label\n1.jpg,b\n")
    assert ManifestSource(location=location).fingerprint() != first


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8
).map(lambda text: f"w{text}")
LABELS = WORDS.filter(lambda text: not set(text) & set(";|"))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "path": WORDS,
            "labels": st.lists(LABELS, unique=True, max_size=3),
            "split": st.sampled_from([None, "train", "val", "test", "pool"]),
            "probabilities": st.none()
            | st.floats(0, 1).map(lambda share: {"cat": share, "dog": 1 - share}),
            "word": st.none() | WORDS,
            "whole": st.none() | st.integers(-(10**17), 10**17),
            "part": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "yes": st.none() | st.booleans(),
        }
    ),
    min_size=1,
    max_size=8,
)


def as_text(row):
    probabilities = row["probabilities"]
    return {
        "path": row["path"],
        "labels": "|".join(row["labels"]),
        "split": row["split"] or "",
        "probabilities": "" if probabilities is None else json.dumps(probabilities),
        "word": row["word"] or "",
        "whole": "" if row["whole"] is None else str(row["whole"]),
        "part": "" if row["part"] is None else repr(row["part"]),
        "yes": "" if row["yes"] is None else str(row["yes"]).lower(),
    }


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=ROWS)
def test_read__csv_json_lines_and_parquet_give_the_same(tmp_path, rows):
    with (tmp_path / "m.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(as_text(row) for row in rows)
    write(tmp_path / "m.jsonl", "\n".join(json.dumps(row) for row in rows))
    kinds = {
        "word": pa.string(),
        "whole": pa.int64(),
        "part": pa.float64(),
        "yes": pa.bool_(),
        "path": pa.string(),
        "split": pa.string(),
    }
    kinds["labels"] = pa.list_(pa.string())
    kinds["probabilities"] = pa.struct([("cat", pa.float64()), ("dog", pa.float64())])
    columns = {name: pa.array([row[name] for row in rows], kinds[name]) for name in rows[0]}
    pq.write_table(pa.table(columns), tmp_path / "m.parquet")
    from_csv, from_lines, from_parquet = (
        read_all(str(tmp_path / name)) for name in ("m.csv", "m.jsonl", "m.parquet")
    )
    assert from_csv == from_lines
    assert from_lines == from_parquet
    assert [sample.labels for sample in from_csv] == [tuple(row["labels"]) for row in rows]
    assert [sample.metadata["whole"] for sample in from_csv] == [row["whole"] for row in rows]


def read_predictions(path, text):
    path.write_text(text)
    return list(PredictionsSource(location=str(path)).read())


def test_read__labels_predictions_and_free_columns(tmp_path):
    rows = read_predictions(
        tmp_path / "p.csv",
        "sample_id,label,prediction,split,colour,path\na7,cat,dog,test,red,x.jpg\n",
    )
    (sample,) = rows
    assert (sample.key, sample.location, sample.data) == ("a7", None, None)
    assert (sample.labels, sample.predictions, sample.split) == (("cat",), ("dog",), "test")
    assert sample.metadata == {"colour": "red", "path": "x.jpg"}


def test_read__says_both_that_labels_and_predictions_are_missing(tmp_path):
    with pytest.raises(DataError) as caught:
        read_predictions(tmp_path / "p.csv", "colour\nred\n")
    assert "No column says what was predicted" in str(caught.value)
    assert "No column says what is true" in str(caught.value)
