import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from weakspot.core.errors import ConfigError
from weakspot_lab.reproduce.page import write_page
from weakspot_lab.reproduce.running import run_protocol

RESULTS = Path(__file__).parents[4] / "docs" / "results"


def test_write_page__headline_figures_from_files(toy_request, make_protocol, tmp_path):
    run_protocol(make_protocol([]), replace(toy_request, out=tmp_path / "papers" / "toy"))
    text = write_page(tmp_path).read_text()
    rows = [line for line in text.splitlines() if line.startswith("| Table 1")]
    assert len(rows) == 1
    assert rows[0].split("|")[5].strip() == ""
    assert "a picture only" not in text
    assert "(papers/toy/toy.svg)" in text


def test_write_page__true_data_beside_the_stand_in(toy_request, make_protocol, tmp_path):
    for name, is_stand_in in (("toy", True), ("toy-data", False)):
        request = replace(
            toy_request,
            out=tmp_path / "papers" / name,
            is_stand_in=is_stand_in,
            seed=int(is_stand_in),
        )
        run_protocol(make_protocol([]), request)
    cells = next(
        line for line in write_page(tmp_path).read_text().splitlines() if line.startswith("| Table")
    ).split("|")
    assert cells[4].strip()
    assert cells[5].strip()
    assert cells[4] != cells[5]


def test_write_page__several_data_sets_of_a_paper_fill_the_figures_that_each_measures(
    toy_request, make_protocol, tmp_path
):
    whole = make_protocol([])
    for name, protocol in (
        ("toy", whole),
        ("toy-faces", whole),
        (
            "toy-radiographs",
            replace(whole, outcome=replace(whole.outcome, measured=lambda _results: {})),
        ),
    ):
        out = tmp_path / "papers" / name
        run_protocol(protocol, replace(toy_request, out=out, is_stand_in=name == "toy"))
    row = next(
        line for line in write_page(tmp_path).read_text().splitlines() if line.startswith("| Table")
    )
    assert row.split("|")[5].strip() not in ("", "–")


def test_write_page__nothing_there(tmp_path):
    with pytest.raises(ConfigError, match="no results"):
        write_page(tmp_path)


def test_write_page__small_runs_are_not_shown(toy_request, make_protocol, tmp_path):
    request = replace(toy_request, out=tmp_path / "papers" / "toy", is_small=True)
    run_protocol(make_protocol([]), request)
    with pytest.raises(ConfigError, match="no results"):
        write_page(tmp_path)


def test_page__is_what_the_committed_files_say(tmp_path):
    # Every figure on the page comes from a file that a command wrote; after a new run: weakspot lab reproduce page.
    shutil.copytree(RESULTS / "papers", tmp_path / "papers")
    assert write_page(tmp_path).read_text() == (RESULTS / "papers.md").read_text()
