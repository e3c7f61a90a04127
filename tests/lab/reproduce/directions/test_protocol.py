import pytest

from weakspot.core.errors import DataError
from weakspot.lab.reproduce.directions.protocol import protocol
from weakspot.lab.reproduce.figures import read_figures
from weakspot.lab.reproduce.request import ReproduceRequest
from weakspot.lab.reproduce.running import run_protocol


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The small version, run once, with its request."""
    out = tmp_path_factory.mktemp("directions")
    request = ReproduceRequest(paper="directions", out=out, is_stand_in=True, is_small=True)
    return run_protocol(protocol(request), request), request


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
        protocol(ReproduceRequest(paper="directions", out=tmp_path))
    assert "list_attr_celeba.txt" in caught.value.fix
