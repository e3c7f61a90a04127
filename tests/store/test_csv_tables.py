import ast
import csv
import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import weakspot
from weakspot.store.csv_tables import csv_text, plain_cell, safe_cell

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
WRITER = "store/csv_tables.py"


@given(CELLS | st.from_regex(r"-[0-9.e]*", fullmatch=True))
def test_safe_cell__runs_nothing_and_comes_back(text):
    safe = safe_cell(text)
    assert plain_cell(safe) == text
    assert not safe.startswith(("=", "+", "@", "\t", "\r"))
    assert not safe.startswith("-") or float(safe) <= 0


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4))
def test_csv_text__data_is_kept_letter_by_letter(rows):
    text = csv_text(("one", "two"), rows, is_data=True)
    assert [tuple(row) for row in csv.reader(io.StringIO(text, newline=""))][1:] == rows


def test_csv_text__is_the_only_writer():
    root = Path(weakspot.__file__).parent
    writers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] != "lab"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _writes_csv(node)
    }
    assert writers == {WRITER}


def _writes_csv(node):
    name = node.attr if isinstance(node, ast.Attribute) else ""
    if isinstance(node, ast.ImportFrom) and node.module in ("csv", "pyarrow.csv", "_csv"):
        return any(
            one.name in ("writer", "DictWriter", "write_csv", "CSVWriter") for one in node.names
        )
    is_module = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return name in ("DictWriter", "write_csv", "CSVWriter", "to_csv") or (
        name == "writer" and is_module and node.value.id == "csv"
    )
