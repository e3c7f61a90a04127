import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.figures import read_figures
from weakspot_lab.reproduce.refine.protocol import PROTOCOL
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.reproduce.running import run_protocol

NOT_IN_SMALL = {
    "inaturalist",
    "predefined",
    "directions",
    "cutmix",
    "other_held_out",
    "other_random",
}


@pytest.fixture(scope="module")
def small(small_run):
    return small_run("refine")


def test_protocol__every_figure_of_the_paper_is_answered(small):
    found, _ = small
    assert {one.figure.key for one in found.figures} == {
        one.key for one in read_figures("refine").figures
    }
    unmeasured = {one.figure.key for one in found.figures if one.measured.value is None}
    assert unmeasured == NOT_IN_SMALL


def test_protocol__columns_of_the_paper_and_as_many_networks_as_asked_for(small):
    found, _ = small
    individual = found.tables[0]
    assert individual.header[3:9] == (
        "clean",
        "failure",
        "seed",
        "held-out",
        "random seed",
        "random held-out",
    )
    assert [row[0] for row in individual.rows] == [
        "coarse-8-0",
        "coarse-10-1",
        "plain-8-0",
        "plain-10-1",
    ]
    many = next(one for one in found.tables if one.title.startswith("One set"))
    assert [row[0] for row in many.rows] == ["2", "4"]
    common = next(one for one in found.tables if one.title.startswith("Figure 4 b"))
    assert [row[0] for row in common.rows] == ["coarse", "plain"]
    assert common.rows[0][2] == common.rows[1][1]
    sweep = next(one for one in found.tables if "lambda" in one.header)
    assert {(row[0], row[1]) for row in sweep.rows} == {
        (a, b) for a in ("0.1", "0.5") for b in ("1", "3")
    }


def test_protocol__every_table_says_stand_in(small):
    text = (small[1].out / "tables.md").read_text()
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(headings) > 1
    assert all("stand-in, small" in line for line in headings)
    assert {"lambda.svg", "overlap.svg", "k.svg"} == set(small[0].plots)


def test_protocol__killed_before_the_sweep_and_resumed_gives_the_same_tables(small, resumed):
    assert resumed(small, without="sweep") == ["sweep"]


def test_protocol__without_data_it_says_what_it_expects(tmp_path):
    with pytest.raises(DataError, match="needs data") as caught:
        PROTOCOL.open(ReproduceRequest(paper="refine", out=tmp_path))
    for name in ("LOC_synset_mapping.txt", "fine_label_names.txt", "train2018.json"):
        assert name in caught.value.fix


def test_protocol__the_same_again_runs_nothing(small):
    found, request = small
    said = []
    again = run_protocol(PROTOCOL.open(request), request, say=said.append)
    assert again.figures == found.figures
    assert not any(" of 5: " in line for line in said)
