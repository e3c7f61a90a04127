import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.reproduce.search.protocol import PROTOCOL


@pytest.fixture(scope="module")
def small(small_run):
    return small_run("search")


def test_protocol__every_figure_of_the_paper_is_answered(small, answers_every_figure):
    answers_every_figure(*small)


def test_protocol__every_network_is_put_to_both_sets(small):
    table = next(one for one in small[0].tables if one.title.startswith("Figure 4"))
    assert [row[0] for row in table.rows] == sorted(
        ["residual", "residual, other seed", "coarse", "plain, pretrained"]
    )


def test_protocol__killed_before_the_sets_and_resumed_gives_the_same_tables(small, resumed):
    assert resumed(small, without="transfer") == ["transfer"]


def test_protocol__without_data_it_says_what_it_expects(tmp_path):
    with pytest.raises(DataError, match="needs data") as caught:
        PROTOCOL.open(ReproduceRequest(paper="search", out=tmp_path))
    assert "batches.meta.txt" in caught.value.fix
