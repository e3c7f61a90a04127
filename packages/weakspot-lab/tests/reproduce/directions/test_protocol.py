import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.directions.protocol import PROTOCOL
from weakspot_lab.reproduce.figures import read_figures
from weakspot_lab.reproduce.request import ReproduceRequest


@pytest.fixture(scope="module")
def found(small_run):
    """The small version, run once, with its request."""
    return small_run("directions")


def test_protocol__killed_before_the_conditions_and_resumed_gives_the_same_tables(found, resumed):
    assert resumed(found, without="conditions-0") == ["conditions-0"]


def test_protocol__every_kind_of_run_has_a_table(found):
    titles = " ".join(one.title for one in found[0].tables)
    for name in (
        "Fig. 2",
        "Fig. 4",
        "Fig. 5",
        "Fig. 6",
        "Fig. 9",
        "Fig. 17",
        "Fig. 19",
        "Fig. 22",
        "Fig. 39",
    ):
        assert name in titles
    rare = next(one for one in found[0].tables if one.title.startswith("Fig. 5"))
    assert "Domino" in [row[0] for row in rare.rows]


def test_protocol__every_figure_of_the_paper_is_answered(found):
    keys = {one.figure.key for one in found[0].figures}
    assert keys == {one.key for one in read_figures("directions").figures}
    unmeasured = {one.figure.key for one in found[0].figures if one.measured.value is None}
    assert unmeasured == set()
    assert all(one.why.endswith(".") for one in found[0].figures)


def test_protocol__every_table_says_stand_in_and_small(found):
    text = (found[1].out / "tables.md").read_text()
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(headings) == len(found[0].tables) + 1
    assert all("stand-in, small" in line for line in headings)
    assert all((found[1].out / name).read_text().startswith("<svg") for name in found[0].plots)
    assert "fig-4-strength.svg" in found[0].plots


def test_protocol__without_data_it_says_what_it_expects(tmp_path):
    with pytest.raises(DataError, match="needs data") as caught:
        PROTOCOL.open(ReproduceRequest(paper="directions", out=tmp_path))
    assert "list_attr_celeba.txt" in caught.value.fix
