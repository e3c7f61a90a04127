import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.hibug.choosing import WAYS
from weakspot_lab.reproduce.hibug.protocol import PROTOCOL
from weakspot_lab.reproduce.request import ReproduceRequest


@pytest.fixture(scope="module")
def small(small_run):
    return small_run("hibug")


def test_protocol__every_figure_of_the_paper_is_answered(small, answers_every_figure):
    answers_every_figure(*small)


def test_protocol__slices_by_threshold_are_a_table_too(small):
    table = next(one for one in small[0].tables if one.title.startswith("Figure 3"))
    assert [row[0].split()[0] for row in table.rows] == ["two", "many", "few"]
    counts = [int(one) for one in table.rows[0][1:]]
    assert counts == sorted(counts)


def test_protocol__all_ways_of_choosing_have_the_same_budget(small):
    for task in ("two", "many", "few"):
        step = small[0].steps[f"selection-{task}"]
        assert {way: count for way, (count, _) in step["failing"].items()} == dict.fromkeys(
            WAYS, step["budget"]
        )


def test_protocol__killed_before_the_generation_and_resumed_gives_the_same_tables(small, resumed):
    assert resumed(small, without="generation") == ["generation"]


def test_protocol__without_data_it_says_what_it_expects(tmp_path):
    with pytest.raises(DataError, match="needs data") as caught:
        PROTOCOL.open(ReproduceRequest(paper="hibug", out=tmp_path))
    for name in ("list_attr_celeba.txt", "instances_val2019.json", "LOC_synset_mapping.txt"):
        assert name in caught.value.fix
