"""Tables as people save them: those that can be read are read, the others get a clear sentence and exit code 2."""

import sys

import pytest

from weakspot.cli.main import main
from weakspot.core.errors import WeakspotError
from weakspot.project.project import Project

HEADER = ["label", "prediction", "colour"]
ROWS = [
    [label, label if number % 3 else other, colour]
    for number in range(40)
    for label, other in (("apple", "pear"), ("pear", "apple"))
    for colour in ("red", "green")
]


def _text(header=HEADER, rows=ROWS, mark=","):
    return "".join(mark.join(cells) + "\n" for cells in [header, *rows])


def _project(folder, data):
    table = folder / "table.csv"
    table.write_bytes(data if isinstance(data, bytes) else data.encode())
    return Project.create(folder / "t", data=str(table))


READABLE = {
    "byte order mark": b"\xef\xbb\xbf" + _text().encode(),
    "semicolons": _text(mark=";"),
    "semicolons, and a comma in a name": _text(
        [*HEADER, "note, more"], [[*row, "x, y"] for row in ROWS], mark=";"
    ),
    "tabs": _text(mark="\t"),
    "bars": _text(mark="|"),
    "quoted names": _text(['"label"', '"prediction"', '"colour; of it"']),
    "Windows line ends": _text().replace("\n", "\r\n"),
    "some predictions missing": _text(rows=[[row[0], "", row[2]] for row in ROWS[:9]] + ROWS),
    "some labels missing": _text(rows=[["", *row[1:]] for row in ROWS[:9]] + ROWS),
}


@pytest.mark.parametrize("data", READABLE.values(), ids=READABLE)
def test_readable_tables__are_read(data, tmp_path):
    summary = _project(tmp_path, data).ingest()
    assert summary.class_names == ("apple", "pear")
    assert summary.n_samples >= len(ROWS)
    assert summary.has_images is False


REFUSED = {
    "no label": (_text(HEADER[1:], [row[1:] for row in ROWS]), "No column says what is true"),
    "no prediction": (
        _text(["label", "colour"], [[row[0], row[2]] for row in ROWS]),
        "none what was predicted",
    ),
    "all predictions empty": (
        _text(rows=[[row[0], "", row[2]] for row in ROWS]),
        "Nothing is known of what the classifier predicts",
    ),
    "unknown class": (
        _text(rows=[*ROWS, ["apple", "banana", "red"]]),
        "unknown class 'banana'.*row 161",
    ),
    "mixed labels": (
        _text(rows=[["1", "1", "red"], *ROWS]),
        "mixed types: numbers \\('1'\\) and words",
    ),
    "a name twice": (
        _text([*HEADER, "colour"], [[*row, "x"] for row in ROWS]),
        "The column 'colour' is there 2 times",
    ),
    "empty": ("", "The table is empty"),
    "header only": (_text(rows=[]), "The table has no rows"),
    "ragged": (_text(rows=[*ROWS, ["apple", "pear"]]), "2 fields where the header has 3.*row 161"),
    "Latin-1": (_text(rows=[["apple", "pear", "grün"]]).encode("latin-1"), "not UTF-8"),
    "UTF-16": (_text().encode("utf-16"), "not UTF-8"),
    "open quote": (_text() + 'apple,"pear,red\n', "2 fields where the header has 3"),
    "unknown split": (
        _text([*HEADER, "split"], [[*row, "evaluation"] for row in ROWS]),
        "The split 'evaluation' is unknown \\(did you mean 'validation'",
    ),
}


@pytest.mark.parametrize(("data", "says"), REFUSED.values(), ids=REFUSED)
def test_bad_tables__are_refused_with_a_reason(data, says, tmp_path):
    with pytest.raises(WeakspotError, match=f"(?s){says}") as refused:
        _project(tmp_path, data).run()
    assert refused.value.exit_code == 2


def test_bad_tables__exit_with_2_and_no_traceback(tmp_path, monkeypatch, capsys):
    project = _project(tmp_path, _text(HEADER[1:], [row[1:] for row in ROWS]))
    monkeypatch.setattr(sys, "argv", ["weakspot", "run", "-p", str(project.folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: The table cannot be used.")


def test_mixed_types__are_text_and_many_values_are_left_out_with_a_note(tmp_path):
    rows = [
        [*row, ("3", "x", "4.5", "")[number % 4], f"id {number}"] for number, row in enumerate(ROWS)
    ]
    header = [*HEADER, "mixed", "serial", "split"]
    project = _project(tmp_path, _text(header, [[*row, "validation"] for row in rows]))
    record = project.run()
    summaries = {stage.stage: stage.summary for stage in record.stages}
    assert summaries["methods"].startswith("Uses 2 columns;")
    assert "serial" in summaries["attributes"]
    assert set(project.samples().dataset.metadata("mixed").unique().to_pylist()) == {
        "3",
        "x",
        "4.5",
        None,
    }
