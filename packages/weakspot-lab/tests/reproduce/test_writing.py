import csv
import io
from dataclasses import replace

import pytest

from weakspot_lab.reproduce.figures import ComparedFigure, Measured, PaperFigure
from weakspot_lab.reproduce.protocol import PaperTable
from weakspot_lab.reproduce.running import run_protocol
from weakspot_lab.reproduce.writing import MAX_ROWS, Reproduction, figure_table


def test_markdown__every_table_says_stand_in(toy_request, make_protocol):
    run_protocol(make_protocol([]), toy_request)
    text = (toy_request.out / "tables.md").read_text()
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(headings) == 2
    assert all("(stand-in)" in line for line in headings)
    assert "weakspot lab reproduce toy --stand-in" in text


def test_figures_csv__one_line_a_figure_with_its_data(toy_request, make_protocol):
    run_protocol(make_protocol([]), toy_request)
    rows = list(csv.DictReader(io.StringIO((toy_request.out / "figures.csv").read_text())))
    assert [row["where"] for row in rows] == ["Table 1", "Fig. 2"]
    assert {row["data"] for row in rows} == {"stand-in"}
    assert float(rows[0]["difference"]) == pytest.approx(float(rows[0]["ours"]) - 50, abs=1e-3)
    assert rows[1]["ours"] == ""


def test_results__the_same_in_json(toy_request, make_protocol):
    found = run_protocol(make_protocol([]), toy_request)
    content = (toy_request.out / "results.json").read_bytes()
    assert Reproduction.model_validate_json(content) == found


def test_figure_table__cells_stay_cells():
    figure = PaperFigure(key="a", where="Fig. 1", what="a | b", unit="correlation")
    one = ComparedFigure(
        figure=figure,
        measured=Measured(value=0.5, low=0.25, high=0.75),
        difference=None,
        effect="",
        why="so",
    )
    assert figure_table([one]).splitlines()[2] == (
        r"| Fig. 1 | a \| b | shown only | 0.50 (0.25 to 0.75) |  | so |"
    )


def test_tables__a_long_one_is_a_file_of_its_own(toy_request, make_protocol):
    rows = tuple((f"model | {number}", number / 2) for number in range(MAX_ROWS + 1))
    table = PaperTable(title="Table 4: all models", header=("model", "held-out"), rows=rows)
    protocol = make_protocol([])
    outcome = replace(protocol.outcome, tables=lambda _results: (table,))
    run_protocol(replace(protocol, outcome=outcome), toy_request)
    assert "25 rows: [table-4.csv](table-4.csv)." in (toy_request.out / "tables.md").read_text()
    written = csv.reader(io.StringIO((toy_request.out / "table-4.csv").read_text()))
    assert [*written][-1] == ["model | 24", "12.0"]
