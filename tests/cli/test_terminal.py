import json

import pytest

from weakspot.cli import terminal
from weakspot.core.errors import DataError


def test_report_error__every_part_on_a_line_of_its_own(capsys):
    terminal.report_error(DataError("Two labels clash.", where="manifest.csv, row 3", given="cat", fix="Choose one."))
    assert capsys.readouterr().err.splitlines() == [
        "error: Two labels clash.",
        "  where: manifest.csv, row 3",
        "  given: cat",
        "  to do: Choose one.",
    ]


def test_showing_progress__interrupted_says_that_nothing_is_lost(capsys):
    with pytest.raises(KeyboardInterrupt), terminal.showing_progress():
        raise KeyboardInterrupt
    assert "the same command continues from there" in capsys.readouterr().err


def test_showing_progress__lines_on_the_error_stream_without_a_terminal(capsys):
    with terminal.showing_progress() as progress:
        for done in range(9):
            progress("embed", done, 8)
        progress("ingest", 5, None)
        progress("ingest", 6, None)
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.splitlines() == [
        "embed: 0 of 8",
        "embed: 2 of 8",
        "embed: 4 of 8",
        "embed: 6 of 8",
        "embed: 8 of 8",
        "ingest: 5 of an unknown number",
    ]


def test_print_json__keeps_letters_as_they_are(capsys):
    terminal.print_json({"name": "pomme café"})
    text = capsys.readouterr().out
    assert "café" in text
    assert json.loads(text) == {"name": "pomme café"}
